"""What is new in a transcript.

Clients send the whole conversation with each request and rewrite it as they like (compaction, edits, rewinds), so
it is never compared with an earlier one: new is what stands after the last assistant message.
"""

from __future__ import annotations

from collections.abc import Sequence

from bridge.errors import InvalidRequest
from bridge.turn import Message, NewInput, ToolCall, ToolResult, Turn, UserMessage


def what_is_new(turn: Turn) -> NewInput:
    """System and developer messages count wherever they stand: clients put them first, last or in between."""
    last = max((index for index, message in enumerate(turn.messages) if message.role == "assistant"), default=-1)
    fresh = turn.messages[last + 1 :]
    said = _said(fresh)
    results = _results(turn.messages[: last + 1], fresh)
    if not said and not results:
        raise InvalidRequest(
            "Nothing new to answer: after the last assistant message there must be a user message with text"
            " or a tool result.",
            param="messages",
        )
    return NewInput(
        said=said,
        results=results,
        instructions=instructions_of(turn),
        opens_conversation=last == -1,
    )


def _said(fresh: Sequence[Message]) -> tuple[UserMessage, ...]:
    """What the user says; pictures that a tool returned are shown beside its result, which can hold text only."""
    found = []
    for message in fresh:
        if message.role == "user" and (message.text.strip() or message.images):
            found.append(UserMessage(message.text, message.images))
        elif message.role == "tool" and message.images:
            found.append(UserMessage("(pictures that the tool returned)", message.images))
    return tuple(found)


def _results(before: Sequence[Message], fresh: Sequence[Message]) -> tuple[ToolResult, ...]:
    """The results of tools; one that stands there twice for the same call counts once."""
    calls = {call.id: call for message in before for call in message.tool_calls}
    found: dict[str, ToolResult] = {}
    for message in fresh:
        if message.role == "tool":
            call = calls.get(message.tool_call_id, ToolCall(message.tool_call_id, message.name, ""))
            result = ToolResult(call.id, message.text, message.is_error, call.name, call.arguments)
            found.setdefault(message.tool_call_id, result)
    return tuple(found.values())


def instructions_of(turn: Turn) -> str:
    """All system and developer messages, and what the reply must look like."""
    given = [message.text for message in turn.messages if message.role == "system" and message.text.strip()]
    return "\n\n".join([*given, turn.reply_format] if turn.reply_format else given)
