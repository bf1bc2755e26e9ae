"""The interception method `relay`, for the older agent types on Letta 0.16.7 and later.

There, stored messages can't be changed. The stub needs an approval. When the client's result comes, the bridge puts the
result into variables of the agent and approves the call with one step allowed: the stub runs and returns what the
variables contain, and no model is asked. Then the bridge sets the variables back, and removes what the approval added
to the context. Until the result comes, the call holds the agent. If a message comes instead, the bridge removes the
call from the context, which frees the agent. This removal is a single change, so it cannot be broken off in the middle.
A denial would leave words of Letta's own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bridge.interception.context_editor import ContextEditor
from bridge.interception.given_results import (
    GivenResults,
    add_other_results,
    answer_without_run,
    results_for_message,
)
from bridge.interception.held_calls import run_agent
from bridge.interception.leftovers import remove_leftovers
from bridge.interception.method import Interception, PreparedTurn, gating_rules
from bridge.interception.stored_messages import StoredMessages
from bridge.letta.gateway import Agent, AgentChange, Gateway, StoredMessage
from bridge.stubs.naming import LETTA_PARAMETERS, is_script_safe
from bridge.stubs.source import RELAY_COUNT, RELAY_PIECE, RELAY_PREFIX
from bridge.turn import AgentCall, AgentEvent, Binding, JsonObject, ToolChoice, ToolResult

# The most characters of a result in one variable. Letta accepts a variable of 128 KiB or more, but such a variable does
# not reach the sandbox in which the stub runs.
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
            missed = answer_without_run(turn, stored, given)
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
    """Gives the held call its result, and returns what becomes of all results of the turn together."""
    if turn.delivered or not turn.new_input.results:
        return GivenResults()
    request = stored.held_request()
    result = results_for_message(turn, request.id).get(0) if request is not None else None
    others = [one for one in turn.new_input.results if one is not result]
    if request is None or result is None:
        return add_other_results(turn, stored, others, GivenResults())
    quoted = () if _give_result(turn, editor, request, result) else (result,)
    return add_other_results(turn, stored, others, GivenResults(is_new=True, quoted=quoted))


def _give_result(turn: PreparedTurn, editor: ContextEditor, request: StoredMessage, result: ToolResult) -> bool:
    """Makes the result the return of the held call. If the stub can't return it, removes the call and returns False."""
    if _can_run_stub(turn, request.calls[0]):
        return _run_stub(turn, editor, request, result)
    editor.remove_message(request.id)
    return False


def _run_stub(turn: PreparedTurn, editor: ContextEditor, request: StoredMessage, result: ToolResult) -> bool:
    """Approves the held call, so that the stub returns the result, and then sets the agent's own variables back.
    Returns whether the stub returned exactly the result; if not, removes the call from the context.
    """
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
    """Returns whether Letta can write a call's arguments into a Python script, as nothing but names and values. Letta
    writes the names of the arguments into the script that runs the stub, and every value without quotes, unless the
    schema says that the value is a string. The model chooses names and values: they could be code.
    """
    try:
        given = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return False
    properties = parameters.get("properties", {})
    return isinstance(given, dict) and all(
        name in LETTA_PARAMETERS or (is_script_safe(name) and _fits_type(properties.get(name, {}).get("type"), value))
        for name, value in given.items()
    )


def _fits_type(kind: Any, value: Any) -> bool:
    """Returns whether a value of the JSON Schema type `kind` is safe in the script that runs the stub."""
    if kind == "string":
        return True
    if kind in ("boolean", "integer"):
        return isinstance(value, bool if kind == "boolean" else (int, float))
    return kind in ("number", "array", "object") and not isinstance(value, str)


def variables_for_result(result: ToolResult) -> dict[str, str]:
    """Returns the variables that carry a result to the stub: its pieces, with a prefix that keeps them undamaged."""
    text = result.text
    pieces = [text[start : start + PIECE] for start in range(0, len(text), PIECE)]
    named = {f"{RELAY_PIECE}{number}": RELAY_PREFIX + piece for number, piece in enumerate(pieces)}
    return {RELAY_COUNT: str(len(pieces)), **named}


def remove_result_variables(gateway: Gateway, agent: Agent) -> None:
    """Removes the variables for a result that a broken-off turn left. The agent's own variables stay."""
    variables = gateway.variables(agent.id)
    own = _without_result_variables(variables)
    if own != variables:
        gateway.change_agent(agent.id, AgentChange(variables=own))


def _without_result_variables(variables: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in variables.items() if key != RELAY_COUNT and not key.startswith(RELAY_PIECE)}
