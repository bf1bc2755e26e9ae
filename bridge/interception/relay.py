"""The older loops on 0.16.7 and later, where stored messages can't be changed any more.

The stub needs an approval. When the client's result comes, it is put into variables of the agent, and the call is
approved with one step allowed: the stub runs, returns what the variables hold, and no model is asked. Then the
variables are as they were and what the approval left behind is cut from the context. Until the result comes the agent
is held by the call. A message that comes instead frees it by taking the call out of the context, which is one change
that can't be broken off in the middle, where a denial would leave words of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from bridge.interception.context_editor import ContextEditor
from bridge.interception.leftovers import tidied
from bridge.interception.method import PreparedTurn, for_client, refuse_stale, results_for
from bridge.interception.quoting import quoted
from bridge.interception.rewrite import Given, Rewrite
from bridge.interception.stored_messages import StoredMessages
from bridge.letta.gateway import AgentChange, StoredMessage
from bridge.stubs.naming import LETTA_PARAMETERS, is_script_safe
from bridge.stubs.source import RELAY_COUNT, RELAY_PIECE, RELAY_PREFIX
from bridge.turn import AgentCall, AgentEvent, JsonObject, Method, StubKind, ToolResult

# Letta refuses nothing, but a variable of 128 KiB or more does not reach the sandbox.
PIECE = 100_000


class Relay(Rewrite):
    name: Method = "relay"
    stub_kind: StubKind = "relay"
    called_by_return = False

    def __init__(self) -> None:
        super().__init__(gated=True)
        self.runs_stubs = True

    def _tidied(self, turn: PreparedTurn) -> PreparedTurn:
        """The agent's variables too are as its owner made them."""
        if turn.unsettled:
            variables = turn.gateway.variables(turn.agent.id)
            own = without_relayed(variables)
            if own != variables:
                turn.gateway.change_agent(turn.agent.id, AgentChange(variables=own))
        return tidied(turn)

    def _give_results(self, turn: PreparedTurn, past: StoredMessages, context: ContextEditor) -> Given:
        if not turn.news.results:
            return Given()
        request = past.held()
        result = results_for(turn, request.id).get(0) if request is not None else None
        if request is not None and result is not None:
            return self._relayed(turn, context, request, result)
        places = [place for place in map(past.place_of, turn.news.results) if place is not None]
        if not places:
            refuse_stale(turn)
        return Given(place=max(places, default=0))

    def _relayed(self, turn: PreparedTurn, context: ContextEditor, request: StoredMessage, result: ToolResult) -> Given:
        if _runs(turn, request.calls[0]):
            gateway, agent_id = turn.gateway, turn.agent.id
            own = without_relayed(gateway.variables(agent_id))
            gateway.change_agent(agent_id, AgentChange(variables={**own, **relayed(result)}))
            returned = gateway.approve(agent_id, request.id)
            exact = returned.text == result.text
            context.keep([*context.before, returned.id] if exact else context.before[:-1], own)
            if exact:
                return Given(anew=True)
        else:
            context.drop(request.id)
        return Given(anew=True, quoted=(quoted(result),))

    def _gated_calls(
        self, turn: PreparedTurn, context: ContextEditor, events: Iterator[AgentEvent]
    ) -> Iterator[AgentEvent]:
        for event in events:
            if isinstance(event, AgentCall) and event.held:
                yield for_client(turn.bound[event.name], event, event.message_id)
            else:
                yield event


def _runs(turn: PreparedTurn, call: AgentCall) -> bool:
    binding = turn.bound.get(call.name)
    return binding is not None and is_runnable(call.arguments, binding.stub.json_schema["parameters"])


def is_runnable(arguments: str, parameters: JsonObject) -> bool:
    """Whether Letta can make Python of the arguments, and nothing but values.

    It writes their names into the script that runs the stub, and what is no text by the schema it writes as it stands:
    a model can choose both.
    """
    try:
        given = json.loads(arguments or "{}")
    except ValueError:
        return False
    properties = parameters.get("properties", {})
    return isinstance(given, dict) and all(
        name in LETTA_PARAMETERS or (is_script_safe(name) and _fits(properties.get(name, {}).get("type"), value))
        for name, value in given.items()
    )


def _fits(kind: Any, value: Any) -> bool:
    if kind == "string":
        return True
    if kind in ("boolean", "integer"):
        return isinstance(value, bool if kind == "boolean" else (int, float))
    return kind in ("number", "array", "object") and not isinstance(value, str)


def relayed(result: ToolResult) -> dict[str, str]:
    """The result in pieces, each in a form that Letta keeps undamaged."""
    text = result.text
    pieces = [text[start : start + PIECE] for start in range(0, len(text), PIECE)]
    named = {f"{RELAY_PIECE}{number}": RELAY_PREFIX + piece for number, piece in enumerate(pieces)}
    return {RELAY_COUNT: str(len(pieces)), **named}


def without_relayed(variables: Mapping[str, str]) -> dict[str, str]:
    """The agent's own variables."""
    return {key: value for key, value in variables.items() if key != RELAY_COUNT and not key.startswith(RELAY_PIECE)}
