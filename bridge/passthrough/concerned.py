"""Finds the agents that a request changes or runs although its path does not begin with an agent's id: those of a
group, a shared block, an identity or a conversation of Letta's own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from json import loads
from urllib.parse import quote, unquote

from bridge.errors import InvalidRequest
from bridge.letta.gateway import AGENT_ID, ForeignCall, Gateway
from bridge.letta.trouble import make_error
from bridge.passthrough.calls import READING_VERBS, agent_of

# The most agents that a change may concern: each of them is locked.
MOST_AGENTS = 100
# The most bytes of an answer that lists agents.
LONGEST_LIST = 64_000_000

# Where Letta names the agents of an object: by its kind, what follows its path.
_NAMES_AGENTS: Mapping[str, str] = {
    "_internal_blocks": "/agents",
    "blocks": "/agents",
    "conversations": "",
    "groups": "",
    "identities": "",
}
# The whole list of a block's agents, with as little of each as Letta can give.
_QUERY = f"limit={2 * MOST_AGENTS}&include_relationships=tags"
# Kinds whose paths may have the id of an agent.
_WITH_AGENTS_ID = frozenset({*_NAMES_AGENTS, "_internal_agents", "voice-beta"})
# What changes no agent, or must not wait for its turn to end.
_NO_CHANGES = frozenset({"cancel", "preview-raw-payload", "search", "stream"})
_RUNS = re.compile(r"/v1/(groups/[^/]+/messages(/stream)?|voice-beta/[^/]+/chat/completions|chat/completions)/?")
_AGENT_IDS = re.compile(AGENT_ID.pattern.encode())


def runs_agents(call: ForeignCall) -> bool:
    """Returns whether the request is a message to agents, at another path than an agent's or a conversation's."""
    return call.verb == "POST" and _RUNS.fullmatch(call.path) is not None


def agents_concerned(call: ForeignCall, gateway: Gateway) -> list[str]:
    """Returns the ids of the agents, in an order that is the same for every request. Asks Letta for those of an object.
    Raises InvalidRequest where the agents can't be known, or are too many.
    """
    words = [unquote(word) for word in call.path.strip("/").split("/")][1:]
    if call.verb in READING_VERBS or agent_of(call.path) or not words:
        return []
    if words[:2] == ["messages", "batches"] and call.verb == "POST":
        raise InvalidRequest(
            "Batches are not passed on: Letta runs their agents at a time that the bridge can't know, in the middle of"
            " other turns. Send each message by itself, or send the batch to Letta.",
            code="not_passed_on",
        )
    is_run = runs_agents(call)
    if not is_run and (words[0] not in _WITH_AGENTS_ID or words[-1] in _NO_CHANGES):
        return []
    found = _agents_of_object(words, gateway) | {word for word in words if AGENT_ID.fullmatch(word)}
    found |= _agent_as_model(call) if is_run else _agents_in(f"{call.query} ".encode() + (call.body or b""))
    if len(found) > MOST_AGENTS:
        raise InvalidRequest(
            f"The request changes {len(found)} agents, and at most {MOST_AGENTS} can be kept from their turns for it."
            " Send it to Letta while these agents are not used.",
            code="too_many_agents",
        )
    return sorted(found)


def _agents_of_object(words: list[str], gateway: Gateway) -> set[str]:
    """Returns the agents that Letta names for the object of a path, none if there is no such object."""
    kind, name = words[0], words[1] if len(words) > 1 else ""
    if kind not in _NAMES_AGENTS or "-" not in name or AGENT_ID.fullmatch(name):
        return set()
    path = f"/v1/{kind.removeprefix('_internal_')}/{quote(name)}{_NAMES_AGENTS[kind]}"
    answer = gateway.forward(ForeignCall("GET", path, _QUERY))
    content = answer.read(LONGEST_LIST)
    if answer.status >= 500:
        raise make_error("not Letta")
    return _agents_in(content) if answer.status < 300 else set()


def _agents_in(content: bytes) -> set[str]:
    return {found[0].decode() for found in _AGENT_IDS.finditer(content)}


def _agent_as_model(call: ForeignCall) -> set[str]:
    """Returns the agent that a request names as its model, as in Letta's chat completions."""
    with suppress(ValueError, RecursionError):
        body = loads(call.body or b"")
        model = body.get("model") if isinstance(body, dict) else None
        return {model} if isinstance(model, str) and AGENT_ID.fullmatch(model) else set()
    return set()
