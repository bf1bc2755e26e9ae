"""Makes a Turn from the JSON of a chat request. Raises InvalidRequest, which names the wrong field.

Known fields are checked. Unknown fields are ignored, because clients send many fields of their own.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from bridge.dialects.base import RequestRules
from bridge.dialects.chat_completions.parameters import check_parameters, parse_reply_format
from bridge.dialects.openai.content import parse_content
from bridge.dialects.openai.known_tools import KnownTools
from bridge.dialects.openai.known_transcripts import KnownTranscript, KnownTranscripts
from bridge.dialects.openai.parameters import parse_cache_key, parse_flag, parse_model
from bridge.dialects.openai.tools import parse_tool_choice, parse_tools
from bridge.dialects.openai.transcript import check_result_length
from bridge.dialects.openai.turn_fields import transcript_fields
from bridge.errors import InvalidRequest
from bridge.json_text import storable_json, storable_text
from bridge.turn import ASIDE_SUFFIX, JsonObject, Message, ToolCall, Turn

ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}


@dataclass(frozen=True, slots=True)
class KnownRequests:
    """What is remembered of earlier chat requests under the same rules."""

    tools: KnownTools = field(default_factory=KnownTools)
    transcripts: KnownTranscripts = field(default_factory=KnownTranscripts)


def parse_chat_request(
    body: JsonObject, rules: RequestRules, known: KnownRequests | None = None, *, aside: bool = False
) -> Turn:
    """Returns the turn that a chat request asks for. It is aside (kept out of the agent's memory) by `aside`, by a
    `model` that ends with `:aside`, or by a side rule.
    """
    known = known or KnownRequests()
    model = parse_model(body)
    tools = () if body.get("tool_choice") == "none" else parse_tools(body, rules.most_tools, known.tools)
    check_parameters(body)
    transcript = parse_transcript(body, rules, known.transcripts)
    fields = transcript_fields(
        transcript.messages,
        rules.side_rules,
        aside=aside or model.endswith(ASIDE_SUFFIX),
        has_tools=bool(tools),
        reply_format=parse_reply_format(body),
    )
    return Turn(
        model=model.removesuffix(ASIDE_SUFFIX),
        tools=tools,
        tool_choice=parse_tool_choice(body, tools),
        parallel_tool_calls=body.get("parallel_tool_calls") is None or parse_flag(body, "parallel_tool_calls"),
        stream=parse_flag(body, "stream"),
        cache_key=parse_cache_key(body),
        sent=transcript.digests[-1],
        **fields,
    )


def wants_usage(body: JsonObject) -> bool:
    options = body.get("stream_options")
    return parse_flag(options, "include_usage", "stream_options.") if isinstance(options, dict) else False


def parse_transcript(body: JsonObject, rules: RequestRules, known: KnownTranscripts) -> KnownTranscript:
    """Returns the messages of a request, with digests of their JSON."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        other = " `input` is for /v1/responses." if "input" in body else ""
        raise InvalidRequest(f"`messages` must be an array with at least one message.{other}", param="messages")

    def parse(item: Any, index: int) -> Message:
        where = f"messages[{index}]"
        message = _parse_message(item, where, rules.image_urls)
        if message.role == "tool":
            check_result_length(message.text, f"{where}.content", rules.longest_result)
        return message

    return known.read(messages, parse)


def _parse_message(value: Any, where: str, image_urls: bool) -> Message:
    if not isinstance(value, dict):
        raise InvalidRequest(f"`{where}` must be an object.", param=where)
    role = value.get("role")
    if not isinstance(role, str) or role not in ROLES:
        raise InvalidRequest(f"`{where}.role` must be one of {', '.join(ROLES)}.", param=f"{where}.role")
    name = value.get("name")
    call_id = value.get("tool_call_id")
    if role == "tool" and not (isinstance(call_id, str) and call_id):
        raise InvalidRequest(
            f"`{where}.tool_call_id` must be the id of the tool call that this is the result of.",
            param=f"{where}.tool_call_id",
        )
    text, images = parse_content(value.get("content"), ROLES[role], f"{where}.content", image_urls=image_urls)
    return Message(
        role=ROLES[role],  # type: ignore[arg-type]
        text=text,
        images=images,
        name=storable_text(name) if isinstance(name, str) else "",
        tool_calls=_parse_echoed_calls(value.get("tool_calls")),
        tool_call_id=storable_text(call_id) if isinstance(call_id, str) else "",
        # OpenAI has no field for errors. These are the fields that some clients use.
        is_error=value.get("is_error") is True or value.get("status") == "error",
    )


def _parse_echoed_calls(value: Any) -> tuple[ToolCall, ...]:
    """Returns the calls of an assistant message. Malformed calls are skipped, because only the ids of calls matter."""
    calls = []
    for item in value if isinstance(value, list) else ():
        function = item.get("function") if isinstance(item, dict) else None
        if isinstance(function, dict):
            name = storable_text(str(function.get("name", "")))
            call_id = storable_text(str(item.get("id", "")))
            calls.append(ToolCall(call_id, name, _arguments_as_text(function.get("arguments"))))
    return tuple(calls)


def _arguments_as_text(value: Any) -> str:
    """Returns the arguments of a call as JSON text, OpenAI's form: some clients send them back as an object."""
    return storable_json(value if isinstance(value, str) else json.dumps({} if value is None else value))
