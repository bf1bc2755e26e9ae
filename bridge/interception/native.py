"""The interception method `native`, for agents of the type letta_v1_agent on Letta 0.16.2 and later.

The client's tools are sent to Letta with each message, so no stub is on the server.
"""

from __future__ import annotations

from collections.abc import Iterator

from bridge.interception.approval import run_with_results
from bridge.interception.method import Interception, PreparedTurn
from bridge.turn import AgentEvent


class Native(Interception):
    """Letta has no tool rules for tools that come with a message, so `native` cannot force a call: see choose.py."""

    name = "native"
    offers_stubs = False
    can_force = False

    def run(self, turn: PreparedTurn) -> Iterator[AgentEvent]:
        return run_with_results(turn, [binding.stub.json_schema for binding in turn.bindings])
