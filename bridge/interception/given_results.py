"""Matches the tool results that the client sends with the agent's calls. All interception methods use this module.

A result is late if its call does not wait for it any more, because the agent's conversation has gone on. It is quoted
beside what else goes to the agent. If nothing else does, it is refused: alone, it must not make the agent speak.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bridge.catalogue.access import called_tool
from bridge.errors import InvalidRequest
from bridge.interception.method import PreparedTurn
from bridge.interception.stored_messages import StoredMessages
from bridge.letta.gateway import Say
from bridge.stubs.arguments import remove_letta_arguments, restore_arguments
from bridge.turn import AgentEvent, ToolResult


@dataclass(frozen=True, slots=True)
class GivenResults:
    """What became of the client's results. `is_new`: a call that waited has got its result. `quoted`: results to send
    as messages. `row`: the row of `context_rows` in which the agent got a result in an earlier attempt, or 0.
    """

    is_new: bool = False
    quoted: tuple[ToolResult, ...] = ()
    row: int = 0

    def outgoing(self, turn: PreparedTurn) -> list[Say]:
        """Returns the messages that are still to be sent to the agent: the quotes, then the messages of the turn."""
        return [*(replace(quote_result(one), otid=turn.quote_otid(one.call_id)) for one in self.quoted), *turn.messages]


def results_for_message(turn: PreparedTurn, message_id: str) -> dict[int, ToolResult]:
    """Returns the client's results for the calls in a Letta message, by call index: the first result for each call."""
    found: dict[int, ToolResult] = {}
    for result in turn.new_input.results:
        place = turn.call_ids.message_and_index(result.call_id)
        if place is not None and place[0] == message_id:
            found.setdefault(place[1], result)
    return found


def add_other_results(
    turn: PreparedTurn, stored: StoredMessages, others: Sequence[ToolResult], given: GivenResults
) -> GivenResults:
    """Returns `given`, what became of the results of waiting calls, with what becomes of the `others` added. A result
    that the agent has got is not sent again. A second one for a call, or one without a call of the bridge, is ignored.
    Any other is late. Refuses the turn if it brings only results, no call waited for any, and one of them is late or
    the agent has got none.
    """
    if others:
        stored.read_further()
    rows = [(one, stored.find_row_of_result(one)) for one in others]
    known = [row for _, row in rows if row is not None]
    late = [one for one, row in rows if row is None and _is_late(turn, stored, one)]
    is_alone = not given.is_new and not turn.new_input.user_messages
    if others and is_alone and not turn.delivered and (late or not known):
        raise InvalidRequest.no_pending_call(result.call_id for result in late or others)
    quoted = () if is_alone else (*given.quoted, *late)
    named = tuple(one if one.name else _with_call(turn, stored, one) for one in quoted)
    return replace(given, quoted=named, row=max(known, default=given.row))


def _with_call(turn: PreparedTurn, stored: StoredMessages, result: ToolResult) -> ToolResult:
    """Returns a result with its call's tool and arguments, which not all APIs send along, if the agent has the call. A
    tool that the client does not offer now has the name by which the model called it.
    """
    call = stored.find_call(result)
    if call is None:
        return result
    binding = turn.bindings_by_name.get(call.name)
    if binding is not None:
        name, arguments = binding.stub.spec.name, restore_arguments(binding.stub, call.arguments)
    else:
        name, arguments = call.name, remove_letta_arguments(call.arguments)
    if turn.access is not None and name == turn.access.names.call:
        name, arguments = called_tool(arguments) or (name, arguments)
    return replace(result, name=name, arguments=arguments)


def _is_late(turn: PreparedTurn, stored: StoredMessages, result: ToolResult) -> bool:
    """Returns whether a result that no call waits for is of a call of the bridge, and the agent has no result of it."""
    return turn.call_ids.message_and_index(result.call_id) is not None and not stored.has_result(result)


def answer_without_run(
    turn: PreparedTurn, stored: StoredMessages, given: GivenResults, *, called_by_return: bool = False
) -> list[AgentEvent]:
    """Returns the reply that the client missed, for a turn that brings the agent nothing new. Returns [] if the agent
    should go on, because it has not replied. Refuses the turn if the conversation has gone on without a reply.
    """
    missed = stored.missed_answer(given.row, called_by_return=called_by_return)
    if not missed and given.row and not turn.delivered and stored.has_gone_on_after(given.row):
        raise InvalidRequest.no_pending_call(result.call_id for result in turn.new_input.results)
    return missed


def quote_result(result: ToolResult) -> Say:
    """Returns a user message that quotes a call and its result. In JSON, a result cannot look like another message."""
    content = {
        "type": "tool_result",
        "tool": result.name,
        "arguments": result.arguments,
        "status": "error" if result.is_error else "success",
        "result": result.text,
    }
    return Say("user", json.dumps(content, ensure_ascii=False))
