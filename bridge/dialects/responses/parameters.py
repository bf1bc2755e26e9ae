"""Lists what the bridge does with each field of a request to the Responses API (as docs/responses.md does)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bridge.dialects.openai.parameters import (
    check_types,
    is_flag,
    is_number,
    is_object,
    is_string,
    is_whole_number,
    refuse_field,
)
from bridge.dialects.openai.reply_format import any_object, value_of_schema
from bridge.errors import InvalidRequest
from bridge.turn import JsonObject, ReplyFormat

# (fields, treatment, explanation)
PARAMETERS = (
    ("model", "enforced", "the agent, by name or id; with `:aside` after it, the request leaves no trace in the agent"),
    ("input, instructions", "enforced", "as `messages` of Chat Completions"),
    ("stream", "enforced", "as in OpenAI's API"),
    (
        "tools, tool_choice",
        "enforced",
        "`function`, `custom` and `namespace`; tools that OpenAI itself runs, such as `web_search`, are passed over",
    ),
    ("parallel_tool_calls", "enforced", "`false`: at most one call in a response"),
    ("text.format", "checked", "as `response_format` of Chat Completions"),
    (
        "previous_response_id",
        "enforced",
        "the agent remembers the conversation; only its newest response can be named, because it has one history; with"
        " [`BRIDGE_CHATS=each`](chats.md), any",
    ),
    ("store", "enforced", "unless it is `false`, the response can be read for an hour, with the key that asked for it"),
    ("conversation", "enforced", "a name for the conversation, as in the header `X-Session-Id`"),
    ("temperature, top_p, max_output_tokens, max_tool_calls", "accepted", "the agent's own settings apply"),
    ("reasoning, text.verbosity, truncation, service_tier", "accepted", "the agent's own settings apply"),
    ("prompt_cache_key", "accepted", "a name for the chat, where `BRIDGE_CHATS=each` and no session is named"),
    ("include, metadata, user and any other field", "accepted", "ignored"),
    ("background", "refused", "an agent's turn is not kept without a client; use a stream"),
    ("prompt", "refused", "the bridge keeps no templates of prompts"),
)

_TYPES: tuple[tuple[tuple[str, ...], Callable[[Any], bool], str], ...] = (
    (("temperature", "top_p", "presence_penalty", "frequency_penalty"), is_number, "a number"),
    (("max_output_tokens", "max_tool_calls", "top_logprobs"), is_whole_number, "a whole number"),
    (("user", "truncation", "service_tier", "previous_response_id"), is_string, "a string"),
    (("prompt_cache_key", "safety_identifier"), is_string, "a string"),
    (("metadata", "reasoning"), is_object, "an object"),
    (("store",), is_flag, "true or false"),
)


def check_parameters(body: JsonObject) -> None:
    """Raises InvalidRequest for a field of the wrong type, and for one that no agent can obey."""
    check_types(body, _TYPES)
    refuse_field(body, "background", bool, "an agent's turn is not kept without a client; use a stream")
    refuse_field(body, "prompt", lambda value: value is not None, "the bridge keeps no templates of prompts")


def parse_reply_format(body: JsonObject) -> ReplyFormat | None:
    """Returns the form that the reply must have (`text.format`), None for plain text."""
    text = body.get("text")
    if text is not None and not isinstance(text, dict):
        raise InvalidRequest("`text` must be an object.", param="text")
    wanted = (text or {}).get("format")
    kind = wanted.get("type") if isinstance(wanted, dict) else None
    if wanted is None or kind == "text":
        return None
    if kind == "json_object":
        return any_object()
    if not isinstance(wanted, dict) or kind != "json_schema":
        raise InvalidRequest(
            '`text.format` must be {"type": "text"}, {"type": "json_object"} or a "json_schema" with its `schema`.',
            param="text.format",
        )
    return value_of_schema(wanted.get("schema"), "text.format.schema")


def conversation_name(body: JsonObject) -> str:
    """Returns the client's name for its conversation, "" if there is none."""
    given = body.get("conversation")
    name = given.get("id") if isinstance(given, dict) else given
    if given is not None and not isinstance(name, str):
        raise InvalidRequest("`conversation` must be a string, or an object with `id`.", param="conversation")
    return name or ""
