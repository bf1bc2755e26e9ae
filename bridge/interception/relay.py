"""The older loops on 0.16.7 and later, where stored messages can't be changed any more.

The stub needs an approval. When the client's result comes, it is put into variables of the agent, and the call is
approved with one step allowed: the stub runs and returns what the variables hold, and no model is asked. Then the
variables are set back, and what the approval added is removed from the context. Until the result comes, the call holds
the agent. If a message comes instead, the call is taken out of the context, which frees the agent: this is one change,
so nothing can break it off in the middle, and a denial would leave words of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bridge.interception.context_editor import ContextEditor
from bridge.interception.given_results import GivenResults, find_row_of_results, quote_result, results_for_message
from bridge.interception.held_calls import run_agent
from bridge.interception.leftovers import remove_leftovers
from bridge.interception.method import Interception, PreparedTurn, gating_rules
from bridge.interception.stored_messages import StoredMessages
from bridge.letta.gateway import Agent, AgentChange, Gateway, StoredMessage
from bridge.stubs.naming import LETTA_PARAMETERS, is_script_safe
from bridge.stubs.source import RELAY_COUNT, RELAY_PIECE, RELAY_PREFIX
from bridge.turn import AgentCall, AgentEvent, Binding, JsonObject, ToolChoice, ToolResult

# Letta accepts a variable of 128 KiB or more, but it does not reach the sandbox.
PIECE = 100_000


class Relay(Interception):
    name = "relay"
    stub_kind = "relay"
    runs_stubs = True

    def tool_rules(self, bindings: Sequence[Binding], choice: ToolChoice) -> list[JsonObject]:
        return gating_rules(bindings, choice)

    def run(self, turn: PreparedTurn) -> Iterator[AgentEvent]:
        if turn.unfinished_stubs:
            remove_result_variables(turn.gateway, turn.agent)
        turn = remove_leftovers(turn)
        stored, editor = StoredMessages(turn), ContextEditor(turn)
        given = _give_results(turn, stored, editor)
        outgoing = given.outgoing(turn)
        if not outgoing and not given.is_new:
            missed = stored.missed_answer(given.row)
            if missed:
                yield from missed
                return
        for event in run_agent(turn, stored, editor, outgoing or [editor.go_on_message()]):
            if isinstance(event, AgentCall) and event.held:
                yield turn.call_for_client(event, event.message_id)
            else:
                yield event
        editor.remove_temporary()


def _give_results(turn: PreparedTurn, stored: StoredMessages, editor: ContextEditor) -> GivenResults:
    if turn.delivered or not turn.new_input.results:
        return GivenResults()
    request = stored.held_request()
    result = results_for_message(turn, request.id).get(0) if request is not None else None
    if request is None or result is None:
        return GivenResults(row=find_row_of_results(turn, stored))
    if not _can_run_stub(turn, request.calls[0]):
        editor.remove_message(request.id)
    elif _run_stub(turn, editor, request, result):
        return GivenResults(is_new=True)
    return GivenResults(is_new=True, quotes=(quote_result(result),))


def _run_stub(turn: PreparedTurn, editor: ContextEditor, request: StoredMessage, result: ToolResult) -> bool:
    """Lets the stub return the result. If it returns something else, takes the call out of the context."""
    gateway, agent_id = turn.gateway, turn.agent.id
    own = _without_result_variables(gateway.variables(agent_id))
    gateway.change_agent(agent_id, AgentChange(variables={**own, **variables_for_result(result)}))
    returned = gateway.approve_call(agent_id, request.id)
    is_exact = returned.text == result.text
    editor.set_context([*editor.ids_before, returned.id] if is_exact else editor.ids_before[:-1], own)
    return is_exact


def _can_run_stub(turn: PreparedTurn, call: AgentCall) -> bool:
    binding = turn.bindings_by_name.get(call.name)
    return binding is not None and are_arguments_runnable(call.arguments, binding.stub.json_schema["parameters"])


def are_arguments_runnable(arguments: str, parameters: JsonObject) -> bool:
    """Whether Letta can make Python of the arguments, and they are nothing but values.

    Letta writes their names into the script that runs the stub, and every value as it is unless the schema says that it
    is a string. A model can choose both.
    """
    try:
        given = json.loads(arguments or "{}")
    except ValueError:
        return False
    properties = parameters.get("properties", {})
    return isinstance(given, dict) and all(
        name in LETTA_PARAMETERS or (is_script_safe(name) and _fits_type(properties.get(name, {}).get("type"), value))
        for name, value in given.items()
    )


def _fits_type(kind: Any, value: Any) -> bool:
    if kind == "string":
        return True
    if kind in ("boolean", "integer"):
        return isinstance(value, bool if kind == "boolean" else (int, float))
    return kind in ("number", "array", "object") and not isinstance(value, str)


def variables_for_result(result: ToolResult) -> dict[str, str]:
    """The result in pieces, each in a form that Letta keeps undamaged."""
    text = result.text
    pieces = [text[start : start + PIECE] for start in range(0, len(text), PIECE)]
    named = {f"{RELAY_PIECE}{number}": RELAY_PREFIX + piece for number, piece in enumerate(pieces)}
    return {RELAY_COUNT: str(len(pieces)), **named}


def remove_result_variables(gateway: Gateway, agent: Agent) -> None:
    """Removes variables with a result that a broken-off turn left on the agent. The agent's own variables stay."""
    variables = gateway.variables(agent.id)
    own = _without_result_variables(variables)
    if own != variables:
        gateway.change_agent(agent.id, AgentChange(variables=own))


def _without_result_variables(variables: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in variables.items() if key != RELAY_COUNT and not key.startswith(RELAY_PIECE)}
