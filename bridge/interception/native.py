"""letta_v1_agent on 0.16.2 and later: the tools go with the request, and nothing is put on the server."""

from __future__ import annotations

from collections.abc import Iterator

from bridge.interception.approval import run_with_results
from bridge.interception.method import Interception, PreparedTurn
from bridge.turn import AgentEvent


class Native(Interception):
    """Letta offers client tools beside the agent's own, so it cannot force one of them: see choose.py."""

    name = "native"
    offers_stubs = False
    can_force = False

    def run(self, turn: PreparedTurn) -> Iterator[AgentEvent]:
        return run_with_results(turn, [binding.stub.json_schema for binding in turn.bindings])
