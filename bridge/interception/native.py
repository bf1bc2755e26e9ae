"""letta_v1_agent on 0.16.2 and later: the tools go with the request, nothing is put on the server."""

from __future__ import annotations

from collections.abc import Sequence

from bridge.interception.approval import Approval
from bridge.interception.method import PreparedTurn
from bridge.turn import Binding, JsonObject, Method, ToolChoice


class Native(Approval):
    """Letta offers client tools beside the agent's own, so it cannot force one of them: see `choose`."""

    name: Method = "native"
    offers_stubs = False
    can_force = False

    def rules(self, bindings: Sequence[Binding], choice: ToolChoice) -> list[JsonObject]:
        return []

    def client_tools(self, turn: PreparedTurn) -> Sequence[JsonObject]:
        return [binding.stub.json_schema for binding in turn.bindings]
