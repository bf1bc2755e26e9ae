"""Reads the transcript that a client of OpenAI's APIs sends: which messages are new, and which calls it contains.

Everything after the last assistant message is new. Which older messages are new to the agent is not known here: see
bridge/heard/.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bridge.errors import InvalidRequest
from bridge.turn import Message, NewInput, ToolCall, ToolResult, UserMessage

Transcript = Sequence[Message]


def extract_new_input(transcript: Transcript, reply_format: str = "") -> NewInput:
    """Returns what the agent has not heard: the user messages and tool results after the last assistant message. The
    instructions are the system messages of the whole transcript, then `reply_format`, the form for the reply.
    """
    last = _last_assistant_index(transcript)
    fresh = transcript[last + 1 :]
    said = _user_messages(fresh)
    results = _results_for_calls(transcript[: last + 1], fresh)
    if not said and not results:
        raise InvalidRequest(
            "Nothing new to answer: after the last assistant message there must be a user message with text"
            " or a tool result.",
            param="messages",
        )
    return NewInput(said, results, join_instructions(transcript, reply_format), opens_conversation=last == -1)


def extract_input_aside(transcript: Transcript, reply_format: str = "") -> NewInput:
    """Returns the new input for an agent that is made with all earlier messages in its context. If the transcript ends
    with an answer, the agent is asked for more.
    """
    last = _last_assistant_index(transcript)
    fresh = transcript[last + 1 :]
    if not _user_messages(fresh) and not any(message.role == "tool" for message in fresh):
        if last == -1:
            raise InvalidRequest("Nothing to answer: there must be a user message with text.", param="messages")
        transcript = [*transcript, Message("user", "Continue.")]
    return extract_new_input(transcript, reply_format)


def check_result_length(text: str, where: str, longest: int) -> None:
    """Raises InvalidRequest if a tool's result is too long."""
    if len(text) > longest:
        raise InvalidRequest(
            f"`{where}` has {len(text)} characters; a tool's result may have {longest}. Shorten what the tool returns.",
            param=where,
            code="tool_result_too_large",
        )


def join_instructions(transcript: Transcript, reply_format: str = "") -> str:
    """Returns the texts of all system and developer messages, then `reply_format`, as one text; "" if all are empty."""
    given = [message.text for message in transcript if message.role == "system" and message.text.strip()]
    return "\n\n".join([*given, reply_format] if reply_format else given)


def call_fields(transcript: Transcript) -> dict[str, Any]:
    """Returns three fields of a `Turn` by name: `known_calls`, `closed_calls` and `comes_once`."""
    called = [call.id for message in transcript for call in message.tool_calls]
    answered = [message.tool_call_id for message in transcript if message.role == "tool"]
    last = _last_assistant_index(transcript)
    return {
        "known_calls": frozenset([*called, *answered]),
        "closed_calls": len(transcript[last].tool_calls) if last >= 0 else 0,
        "comes_once": transcript[-1].role == "tool",
    }


def _last_assistant_index(transcript: Transcript) -> int:
    places = range(len(transcript) - 1, -1, -1)
    return next((place for place in places if transcript[place].role == "assistant"), -1)


def _user_messages(fresh: Transcript) -> tuple[UserMessage, ...]:
    """Returns the user's messages, also one for a tool result's pictures: Letta takes only text as a result."""
    found = []
    for message in fresh:
        if message.role == "user" and (message.text.strip() or message.images):
            found.append(UserMessage(message.text, message.images))
        elif message.role == "tool" and message.images:
            found.append(UserMessage("(pictures that the tool returned)", message.images))
    return tuple(found)


def _results_for_calls(before: Transcript, fresh: Transcript) -> tuple[ToolResult, ...]:
    """Returns the first result in `fresh` for each call, with the name and arguments of the call in `before`."""
    calls = {call.id: call for message in before for call in message.tool_calls}
    found: dict[str, ToolResult] = {}
    for message in fresh:
        if message.role == "tool":
            call = calls.get(message.tool_call_id, ToolCall(message.tool_call_id, message.name, ""))
            result = ToolResult(call.id, message.text, message.is_error, call.name, call.arguments)
            found.setdefault(message.tool_call_id, result)
    return tuple(found.values())
