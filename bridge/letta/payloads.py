"""Our values -> the JSON that Letta's message API wants. Pure."""

from __future__ import annotations

import json
import secrets
from datetime import UTC, datetime
from typing import assert_never

from bridge.letta.capabilities import V1_AGENT
from bridge.letta.gateway import HELPER_PREFIX, CallResult, Outgoing, Results, Say
from bridge.turn import Image, JsonObject

HELPER_TAG = HELPER_PREFIX.rstrip("-")


def outgoing(item: Outgoing) -> JsonObject:
    match item:
        case Say(role, text, images, otid):
            content = [*_text_part(text), *map(_image, images)] if images else text
            return {"role": role, "content": content, **({"otid": otid} if otid else {})}
        case Results(results):
            return {"type": "approval", "approvals": [_returned(result) for result in results]}
        case _:
            assert_never(item)


def decision(request_id: str, *, approve: bool, reason: str = "") -> JsonObject:
    """The older form of an answer to an approval request, which every loop that is denied or approved takes."""
    return {"type": "approval", "approve": approve, "approval_request_id": request_id, "reason": reason}


def rewritten_return(text: str, ok: bool) -> JsonObject:
    """The content must be a JSON object with `message`, packed as Letta packs returns: else the agent is poisoned."""
    now = datetime.now(UTC).strftime("%Y-%m-%d %I:%M:%S %p UTC%z")
    packed = {"status": "OK" if ok else "Failed", "message": text, "time": now}
    return {"message_type": "user_message", "content": json.dumps(packed)}


def helper(model: JsonObject, system: str, *, plain: bool) -> JsonObject:
    """An agent that thinks with the model of another. `plain`: the server has agents that answer without a tool."""
    return {
        "name": HELPER_PREFIX + secrets.token_hex(8),
        "agent_type": V1_AGENT if plain else "memgpt_agent",
        "llm_config": {**model["llm_config"], "put_inner_thoughts_in_kwargs": not plain},
        "embedding_config": model["embedding_config"],
        "system": system or "You are a helpful assistant.",
        "tools": [] if plain else ["send_message"],
        "memory_blocks": [],
        "include_base_tools": False,
        "initial_message_sequence": [],
        "hidden": True,
        "tags": [HELPER_TAG],
    }


def _text_part(text: str) -> list[JsonObject]:
    return [{"type": "text", "text": text}] if text else []


def _image(image: Image) -> JsonObject:
    """As base64 where it can be: an address would be fetched by the Letta server."""
    if image.url:
        return {"type": "image", "source": {"type": "url", "url": image.url}}
    source = {"type": "base64", "media_type": image.media_type, "data": image.data, "detail": image.detail}
    return {"type": "image", "source": source}


def _returned(result: CallResult) -> JsonObject:
    status = "success" if result.ok else "error"
    return {"type": "tool", "tool_call_id": result.call_id, "tool_return": result.text, "status": status}
