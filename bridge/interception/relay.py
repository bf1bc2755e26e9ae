"""The older loops on 0.16.7 and later, where stored messages can't be changed any more.

The stub needs an approval. When the client's result comes, it is put into variables of the agent, and the call is
approved with one step allowed: the stub runs, returns what the variables hold, and no model is asked. Then the
variables are as they were and what the approval left behind is cut from the context. Until the result comes the agent
is held by the call; a message that comes instead frees it first.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from bridge.interception.context import Context
from bridge.interception.method import Scene, for_client, is_for_clients, pending_request, refuse_stale, results_for
from bridge.interception.quoting import quoted
from bridge.interception.rewrite import Given, Rewrite
from bridge.letta.gateway import AgentChange
from bridge.stubs.naming import LETTA_PARAMETERS, is_script_safe
from bridge.stubs.source import RELAY_COUNT, RELAY_PIECE, RELAY_PREFIX
from bridge.turn import AgentCall, Event, Method, StubKind, ToolResult

# Letta refuses nothing, but a variable of 128 KiB or more does not reach the sandbox.
PIECE = 100_000


class Relay(Rewrite):
    name: Method = "relay"
    stub_kind: StubKind = "relay"

    def __init__(self) -> None:
        super().__init__(gated=True)
        self.runs_stubs = True

    def _give_results(self, scene: Scene) -> Given:
        if not scene.news.results:
            return Given()
        request = pending_request(scene)
        result = results_for(scene, request.id).get(0) if request is not None else None
        if request is None or result is None or not is_for_clients(scene, request):
            refuse_stale(scene)
            return Given()
        if not _is_harmless(request.calls[0].arguments):
            Context(scene).close(request.id)
            return Given(quoted=(quoted(result),))
        gateway, agent_id = scene.gateway, scene.agent.id
        own = without_relayed(gateway.variables(agent_id))
        gateway.change_agent(agent_id, AgentChange(variables={**own, **relayed(result)}))
        returned = gateway.approve(agent_id, request.id)
        kept = [*scene.agent.message_ids, returned.id]
        gateway.change_agent(agent_id, AgentChange(variables=own, message_ids=kept))
        if returned.text != result.text:
            return Given(quoted=(quoted(result),))
        return Given(return_id=returned.id)

    def _gated_calls(self, scene: Scene, context: Context, events: Iterator[Event]) -> Iterator[Event]:
        for event in events:
            if isinstance(event, AgentCall) and event.held and event.name in scene.bound:
                yield for_client(scene.bound[event.name], event, event.message_id)
            else:
                yield event


def _is_harmless(arguments: str) -> bool:
    """Letta writes the names of arguments into the script that runs the stub; a model can choose any."""
    try:
        named = json.loads(arguments or "{}")
    except ValueError:
        return False
    return isinstance(named, dict) and all(is_script_safe(name) for name in named if name not in LETTA_PARAMETERS)


def relayed(result: ToolResult) -> dict[str, str]:
    """The result in pieces, each in a form that Letta keeps undamaged."""
    text = result.text
    pieces = [text[start : start + PIECE] for start in range(0, len(text), PIECE)]
    named = {f"{RELAY_PIECE}{number}": RELAY_PREFIX + piece for number, piece in enumerate(pieces)}
    return {RELAY_COUNT: str(len(pieces)), **named}


def without_relayed(variables: Mapping[str, str]) -> dict[str, str]:
    """The agent's own variables."""
    return {key: value for key, value in variables.items() if key != RELAY_COUNT and not key.startswith(RELAY_PIECE)}
