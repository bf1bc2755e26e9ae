"""Keeps the bridge's entries in an agent's metadata, which a client's change replaces as a whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from bridge.chats import lists
from bridge.interception import parallel_calls
from bridge.letta.gateway import Agent, ForeignCall
from bridge.passthrough.calls import agent_of, part_of_agent

_KEYS = (lists.METADATA_KEY, parallel_calls.METADATA_KEY)


def with_own_entries(call: ForeignCall, find_agent: Callable[[str], Agent]) -> ForeignCall:
    """Returns a change of an agent with the bridge's entries as they are now: those that the client sends are as old as
    its reading of the agent. Any other call is returned as it is. The agent must be held.
    """
    agent_id = agent_of(call.path)
    if call.verb != "PATCH" or not agent_id or part_of_agent(call.path) or b'"metadata"' not in (call.body or b""):
        return call
    try:
        body = json.loads(call.body or b"")
    except (ValueError, RecursionError):
        return call
    sent = body.get("metadata") if isinstance(body, dict) else None
    if not isinstance(sent, dict):
        return call
    present = find_agent(agent_id).metadata
    theirs = {name: value for name, value in sent.items() if name not in _KEYS}
    metadata = {**theirs, **{name: present[name] for name in _KEYS if name in present}}
    return replace(call, body=json.dumps({**body, "metadata": metadata}).encode())
