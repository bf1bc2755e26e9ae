"""Lists what becomes of each field of a chat request (docs/fields.md has the same); refuses what no agent can obey."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bridge.dialects.openai.parameters import check_types, is_number, is_string, is_whole_number, refuse_field
from bridge.dialects.openai.reply_format import any_object, value_of_schema
from bridge.errors import InvalidRequest
from bridge.turn import JsonObject, ReplyFormat

# (fields, treatment, explanation)
PARAMETERS = (
    ("model", "enforced", "the agent, by name or id; with `:aside` after it, the request leaves no trace in the agent"),
    (
        "messages",
        "enforced",
        "what the agent has not heard reaches it, wherever it stands (docs/conversations.md); it remembers the rest",
    ),
    ("stream, stream_options", "enforced", "as in OpenAI's API"),
    ("tools, tool_choice", "enforced", "by the tools and rules that the Letta server gives to the model"),
    ("parallel_tool_calls", "enforced", "`false`: at most one call in a reply"),
    (
        "response_format",
        "checked",
        "the agent is asked in words for `json_object` or `json_schema`; its reply is checked, and asked for again",
    ),
    ("temperature, top_p, seed, stop, max_tokens, max_completion_tokens", "accepted", "the agent's own settings apply"),
    ("frequency_penalty, presence_penalty, logit_bias", "accepted", "the agent's own settings apply"),
    ("reasoning_effort, verbosity, service_tier, prediction", "accepted", "the agent's own settings apply"),
    ("user, store, metadata and any other field", "accepted", "ignored"),
    ("n", "refused", "unless it is 1"),
    ("logprobs, top_logprobs", "refused", "a Letta agent has none"),
    ("modalities, audio", "refused", "anything except text"),
    ("functions, function_call", "refused", "use `tools` and `tool_choice`"),
    ("web_search_options", "refused", "give the agent a search tool of its own"),
)


def _is_stop(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(item, str) for item in value))


# Accepted fields with the JSON type that OpenAI's API requires. Ranges are not checked: clients of other servers send
# values such as -1, and the fields have no effect.
_TYPES: tuple[tuple[tuple[str, ...], Callable[[Any], bool], str], ...] = (
    (("temperature", "top_p", "frequency_penalty", "presence_penalty"), is_number, "a number"),
    (("max_tokens", "max_completion_tokens", "seed"), is_whole_number, "a whole number"),
    (("stop",), _is_stop, "a string or an array of strings"),
    (("user", "reasoning_effort", "verbosity", "service_tier"), is_string, "a string"),
)


def check_parameters(body: JsonObject) -> None:
    """Raises InvalidRequest for a field of the wrong type, and for one that no agent can obey: the client would believe
    that it has an effect.
    """
    check_types(body, _TYPES)
    refuse_field(body, "n", lambda value: value not in (None, 1), "one reply is all an agent gives")
    refuse_field(body, "logprobs", bool, "a Letta agent has no log probabilities")
    refuse_field(body, "top_logprobs", bool, "a Letta agent has no log probabilities")
    refuse_field(body, "modalities", lambda value: value not in (None, [], ["text"]), "the bridge gives text only")
    refuse_field(body, "audio", bool, "the bridge gives text only")
    refuse_field(body, "web_search_options", lambda value: value is not None, "give the agent a search tool of its own")


def parse_reply_format(body: JsonObject) -> ReplyFormat | None:
    """Returns the form that the reply must have (`response_format`), None for plain text."""
    wanted = body.get("response_format")
    if wanted is None:
        return None
    kind = wanted.get("type") if isinstance(wanted, dict) else None
    if kind == "text":
        return None
    if kind == "json_object":
        return any_object()
    if kind != "json_schema":
        raise InvalidRequest(
            '`response_format` must be {"type": "text"}, {"type": "json_object"} or a "json_schema" with its `schema`.',
            param="response_format" if not isinstance(wanted, dict) else "response_format.type",
        )
    described = wanted.get("json_schema")
    if not isinstance(described, dict):
        raise InvalidRequest(
            "`response_format.json_schema` must be an object with a `schema`.", param="response_format.json_schema"
        )
    return value_of_schema(described.get("schema"), "response_format.json_schema.schema")
