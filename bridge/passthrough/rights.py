"""Says what a key may ask of Letta's own API. What no rule here allows is refused. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from bridge.config import Settings
from bridge.errors import Forbidden, InvalidRequest, UnknownPath
from bridge.keys import ApiKey, LettaRight
from bridge.letta.gateway import HELPER_PREFIX, ForeignCall
from bridge.passthrough.calls import READING_VERBS, agent_of, part_of_agent
from bridge.turn import JsonObject


@dataclass(frozen=True, slots=True)
class _Body:
    """Which fields a JSON body may have: `only` these (None: any) and `never` those."""

    only: frozenset[str] | None = None
    never: frozenset[str] = frozenset()

    def refused(self, fields: set[str]) -> set[str]:
        return (fields & self.never) | (fields - self.only if self.only is not None else set())


_ANY_BODY = _Body()
# Paths that show nothing of others but the list of agents, which the caller filters for a key limited to some agents.
_HARMLESS = frozenset({"/v1/agents", "/v1/health", "/v1/models", "/v1/models/embedding"})
# A name decides which keys see the agent. Ids of tools, blocks and sources reach objects of others. A model's endpoint
# (`llm_config`, `embedding_config`) would get the credentials that the server has for its models.
_OF_LIMITED_AGENT = frozenset({"tags", "description", "timezone"})
_OF_AGENT = _OF_LIMITED_AGENT | {
    *("name", "system", "metadata", "model", "model_settings", "context_window_limit", "max_tokens", "embedding"),
    *("compaction_settings", "parallel_tool_calls", "enable_sleeptime", "message_buffer_autoclear"),
}
# What any key with a right may do with an agent: by verb and part, where "*" is an id or a label, the fields of the
# body. An agent's export is not here: it has secrets. With a `callback_url`, Letta would send requests to any address.
_ALLOWED: Mapping[tuple[str, str], _Body] = {
    ("GET", ""): _ANY_BODY,
    ("GET", "archival-memory"): _ANY_BODY,
    ("GET", "archival-memory/search"): _ANY_BODY,
    ("GET", "context"): _ANY_BODY,
    ("GET", "core-memory"): _ANY_BODY,
    ("GET", "core-memory/blocks"): _ANY_BODY,
    ("GET", "core-memory/blocks/*"): _ANY_BODY,
    ("GET", "files"): _ANY_BODY,
    ("GET", "folders"): _ANY_BODY,
    ("GET", "messages"): _ANY_BODY,
    ("GET", "sources"): _ANY_BODY,
    ("GET", "tools"): _ANY_BODY,
    ("PATCH", ""): _Body(only=_OF_LIMITED_AGENT),
    ("PATCH", "core-memory/blocks/*"): _Body(only=frozenset({"value", "limit", "description"})),
    ("PATCH", "reset-messages"): _ANY_BODY,
    ("POST", "archival-memory"): _ANY_BODY,
    ("POST", "messages"): _ANY_BODY,
    ("POST", "messages/async"): _Body(never=frozenset({"callback_url"})),
    ("POST", "messages/cancel"): _Body(only=frozenset()),
    ("POST", "messages/stream"): _ANY_BODY,
    ("POST", "summarize"): _ANY_BODY,
}
# Parameters of a query that reach others: the messages of a conversation, of which Letta does not check the agent, and
# an address. In an agent's list of messages, a conversation only leaves out messages of the agent.
_REFUSED_PARAMETERS = frozenset({"callback_url", "conversation_id"})
# The most commas and opening brackets of a body that is read for its fields: parsed, each may take 80 bytes.
_MOST_VALUES = 100_000
# The same for a key that is not limited to some agents. Groups show other agents. Letta does not compare the ids of
# messages, passages and runs with the agent of the path, so that they may be another agent's.
_ALLOWED_TO_UNLIMITED: Mapping[tuple[str, str], _Body] = {
    **_ALLOWED,
    ("DELETE", "archival-memory/*"): _ANY_BODY,
    ("GET", "groups"): _ANY_BODY,
    ("PATCH", ""): _Body(only=_OF_AGENT),
    ("PATCH", "archival-memory/*"): _Body(only=frozenset({"id", "text", "tags"})),
    ("PATCH", "messages/*"): _ANY_BODY,
    ("POST", "messages/cancel"): _ANY_BODY,
}


def right_of(key: ApiKey | None, setting: LettaRight) -> LettaRight:
    """Returns the right of a key; `setting` is that of keys without an option, and of clients if there are no keys."""
    right = setting if key is None or key.letta is None else key.letta
    return "agents" if right == "all" and key is not None and key.agents else right


def serves_letta(settings: Settings) -> bool:
    """Returns whether any client may use Letta's own API."""
    rights = [right_of(key, settings.letta_api) for key in settings.api_keys] or [settings.letta_api]
    return any(right != "off" for right in rights)


def check_right(call: ForeignCall, right: LettaRight, body: JsonObject | None = None, *, limited: bool) -> None:
    """Raises UnknownPath if the client has no right, and Forbidden if its right does not cover the call. `body` is what
    the call's body says, if that is known. `limited`: its key is limited to some agents; whether the call's agent is
    one of them is for the caller to check.
    """
    if right == "off":
        raise UnknownPath.no_such_route()
    if right == "all":
        return
    rule = _rule_for(call, limited)
    if rule is None:
        raise _refusal(f"{call.verb} {call.path:.200}")
    parameters = _REFUSED_PARAMETERS & {name for name, _ in parse_qsl(call.query, keep_blank_values=True)}
    if parameters and part_of_agent(call.path) != "messages":
        raise _refusal(f"{', '.join(sorted(parameters))} in the query of {call.verb} {call.path:.200}")
    if rule == _ANY_BODY:
        return
    value = _parse_body(call.body) if body is None else body
    refused = rule.refused(set(value))
    if refused:
        raise _refusal(f"{', '.join(sorted(refused))!r:.200} in the body of {call.verb} {call.path:.200}")
    if str(value.get("name", "")).startswith(HELPER_PREFIX):
        raise _refusal(f"a name that begins with {HELPER_PREFIX!r}, as the bridge's own agents have it,")


def _rule_for(call: ForeignCall, limited: bool) -> _Body | None:
    """Returns what the body may have; None if the call is not allowed at all."""
    verb = "GET" if call.verb in READING_VERBS else call.verb
    if not agent_of(call.path):
        return _ANY_BODY if verb == "GET" and call.path.removesuffix("/") in _HARMLESS else None
    allowed, part = _ALLOWED if limited else _ALLOWED_TO_UNLIMITED, part_of_agent(call.path)
    return allowed.get((verb, part)) or allowed.get((verb, re.sub("[^/]+$", "*", part)))


def _refusal(what: str) -> Forbidden:
    return Forbidden(
        f"This key may use Letta's API for its agents only, and may not use {what}. That needs a key with the option"
        " letta=all and without a list of agents, or BRIDGE_LETTA_API=all."
    )


def _parse_body(body: bytes | None) -> JsonObject:
    """Returns the fields of a JSON body; of an empty body and of null, none."""
    if body and sum(map(body.count, (b",", b"[", b"{"))) > _MOST_VALUES:
        raise InvalidRequest(f"The request's body has more than {_MOST_VALUES:,} fields and items.")
    try:
        value = json.loads(body, object_pairs_hook=_fields_once) if body else {}
    except (ValueError, RecursionError):
        raise InvalidRequest("The request's body is not JSON, or has a name twice in an object.") from None
    if value is not None and not isinstance(value, dict):
        raise InvalidRequest("The request's body must be a JSON object.")
    return value or {}


def _fields_once(pairs: list[tuple[str, Any]]) -> JsonObject:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a name comes twice")
    return fields
