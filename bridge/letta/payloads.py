"""Turns the bridge's values into the JSON of Letta's API. Pure functions."""

from __future__ import annotations

import json
import secrets
from datetime import UTC, datetime
from typing import assert_never

from bridge.letta.capabilities import V1_AGENT
from bridge.letta.gateway import HELPER_PREFIX, CallResult, Outgoing, Results, Say
from bridge.turn import Image, JsonObject

HELPER_TAG = HELPER_PREFIX.rstrip("-")


def message_payload(item: Outgoing) -> JsonObject:
    match item:
        case Say(role, text, images, otid):
            content = [*_text_part(text), *map(_image_part, images)] if images else text
            return {"role": role, "content": content, **({"otid": otid} if otid else {})}
        case Results(results):
            return {"type": "approval", "approvals": [_result_payload(result) for result in results]}
        case _:
            assert_never(item)


def decision_payload(request_id: str, *, approve: bool, reason: str = "") -> JsonObject:
    """Returns the JSON that approves or denies a held call; `request_id` is the id of the approval request's message.
    Every agent loop with approvals accepts this older form, which has no list of calls.
    """
    return {"type": "approval", "approve": approve, "approval_request_id": request_id, "reason": reason}


def rewritten_return_payload(text: str, ok: bool) -> JsonObject:
    """Content that is not JSON with `message`, as Letta packs tool returns, would fail every later run of the agent."""
    now = datetime.now(UTC).strftime("%Y-%m-%d %I:%M:%S %p UTC%z")
    packed = {"status": "OK" if ok else "Failed", "message": text, "time": now}
    return {"message_type": "user_message", "content": json.dumps(packed)}


def helper_payload(agent: JsonObject, system: str, agent_type: str) -> JsonObject:
    """Returns the JSON that makes a helper agent with the model of `agent`. `system`: "" for a general prompt."""
    v1 = agent_type == V1_AGENT
    return {
        "name": HELPER_PREFIX + secrets.token_hex(8),
        "agent_type": agent_type,
        "llm_config": {**agent["llm_config"], "put_inner_thoughts_in_kwargs": not v1},
        "embedding_config": agent["embedding_config"],
        "system": system or "You are a helpful assistant.",
        "tools": [] if v1 else ["send_message"],
        "memory_blocks": [],
        "include_base_tools": False,
        "initial_message_sequence": [],
        "hidden": True,
        "tags": [HELPER_TAG],
    }


def _text_part(text: str) -> list[JsonObject]:
    return [{"type": "text", "text": text}] if text else []


def _image_part(image: Image) -> JsonObject:
    """Returns a picture as a part of a message: by its address, which the Letta server fetches, or as base64."""
    if image.url:
        return {"type": "image", "source": {"type": "url", "url": image.url}}
    source = {"type": "base64", "media_type": image.media_type, "data": image.data, "detail": image.detail}
    return {"type": "image", "source": source}


def _result_payload(result: CallResult) -> JsonObject:
    status = "success" if result.ok else "error"
    return {"type": "tool", "tool_call_id": result.call_id, "tool_return": result.text, "status": status}
