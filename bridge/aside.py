"""Makes the agent that answers a request aside. Its context has the client's conversation up to the new input, with
calls and results as such, so that its model goes on as it would in a conversation of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count

from bridge.interception.given_results import quote_result
from bridge.interception.method import NO_RESULT
from bridge.letta.gateway import Agent, Gateway
from bridge.offering import Offering
from bridge.sync.new_stubs import NewStubs
from bridge.turn import Message, ToolCall, ToolResult, Turn

# The text of a user message with the pictures of a tool's result, for which a result has no place.
PICTURES = "(pictures that the tool returned)"
# The methods that give results to a call that Letta holds.
_ANSWER_HELD_CALLS = ("native", "approval")


def make_helper(gateway: Gateway, offering: Offering, agent: Agent, turn: Turn, new: NewStubs) -> tuple[Agent, Turn]:
    """Returns a new agent with the model of `agent`, and the turn with what this new agent is still to be given. The
    results that end the transcript become results of a held call where the server can do that; otherwise they are in
    the context already. Some models refuse calls in a prompt without tools; there, calls and results are in words.
    Missing stubs are made, and added to `new`.
    """
    features, new_input, before = gateway.features(), turn.new_input, _messages_before(turn)
    last_calls = before[-1].tool_calls if before else ()
    method, names = "prompt", dict[str, str]()
    if turn.tools and any(message.tool_calls for message in before):
        method, names = offering.names_for_new_agent(features.helper_type, agent.model, turn, new)
    answered = {result.call_id for result in new_input.results}
    waits = features.imports_held_calls and method in _ANSWER_HELD_CALLS
    waits = waits and bool(answered) and answered <= {call.id for call in last_calls}
    given = () if waits else map(_message_of_result, new_input.results)
    history = pair_calls([*before, *given], names, last_calls_wait=waits)
    helper = gateway.make_helper(
        agent.id, new_input.instructions, put_calls_into_words(history) if method == "prompt" else history
    )
    places = {call.id: place for place, call in enumerate(last_calls)}
    results = [
        replace(result, call_id=turn.call_ids.id_in_message(helper.message_ids[-1], places[result.call_id]))
        for result in (new_input.results if waits else ())
    ]
    return helper, replace(turn, new_input=replace(new_input, instructions="", results=tuple(results)))


def _messages_before(turn: Turn) -> Sequence[Message]:
    """Returns the messages before the new input: those up to the last answer."""
    answers = [number for number, message in enumerate(turn.transcript) if message.role == "assistant"]
    return turn.transcript[: answers[-1] + 1] if answers else ()


def _message_of_result(result: ToolResult) -> Message:
    return Message("tool", result.text, result.name, tool_call_id=result.call_id, is_error=result.is_error)


def pair_calls(
    messages: Sequence[Message], names: Mapping[str, str], *, last_calls_wait: bool = False
) -> list[Message]:
    """Returns the messages with one result next after each call, without messages that say nothing. A missing result
    says so; a result without a call becomes a user message. Calls get new ids, the same for the same transcript,
    because Letta cuts ids and clients may repeat them. `names` are the new names of tools. `last_calls_wait`: the
    calls of the last message get no results.
    """
    numbers, left = count(1), list(messages)
    paired: list[Message] = []
    while left:
        message = left.pop(0)
        calls = [ToolCall(f"call_{next(numbers)}", names.get(c.name, c.name), c.arguments) for c in message.tool_calls]
        if message.role == "tool":
            paired.append(_quote(message))
        elif calls or message.text.strip() or message.images:
            paired.append(replace(message, tool_calls=tuple(calls)))
        if left or not last_calls_wait:
            results = [_take_result(call, left) for call in message.tool_calls]
            paired += [
                replace(result, tool_call_id=call.id, images=()) for call, result in zip(calls, results, strict=True)
            ]
            paired += [Message("user", PICTURES, images=result.images) for result in results if result.images]
    return paired


def _take_result(call: ToolCall, left: list[Message]) -> Message:
    """Removes the result of a call from the messages after it, and returns it; without one, a result that says so."""
    for number, message in enumerate(left):
        if message.role == "assistant":
            break
        if message.role == "tool" and message.tool_call_id == call.id:
            return left.pop(number)
    return Message("tool", NO_RESULT, is_error=True)


def put_calls_into_words(paired: Sequence[Message]) -> list[Message]:
    """Returns messages of `pair_calls` with a user message that quotes call and result in place of both."""
    calls = {call.id: call for message in paired for call in message.tool_calls}
    told: list[Message] = []
    for message in paired:
        if message.role == "tool":
            told.append(_quote(message, calls[message.tool_call_id]))
        elif message.text.strip() or message.images:
            told.append(replace(message, tool_calls=()))
    return told


def _quote(message: Message, call: ToolCall | None = None) -> Message:
    name, arguments = (call.name, call.arguments) if call else (message.name, "")
    result = ToolResult(message.tool_call_id, message.text, message.is_error, name, arguments)
    return Message("user", quote_result(result).text, images=message.images)
