"""What is new in a transcript.

Clients send the whole conversation with each request and rewrite it as they like (compaction, edits, rewinds), so
it is never compared with an earlier one: new is what stands after the last assistant message.
"""

from __future__ import annotations

from bridge.errors import InvalidRequest
from bridge.turn import Message, News, ToolResult, Turn


def what_is_new(turn: Turn) -> News:
    """System and developer messages count wherever they stand: clients put them first, last or in between."""
    last = max((index for index, message in enumerate(turn.messages) if message.role == "assistant"), default=-1)
    fresh = turn.messages[last + 1 :]
    user_texts = tuple(message.text for message in fresh if message.role == "user" and message.text.strip())
    results = tuple(ToolResult(message.tool_call_id, message.text) for message in fresh if message.role == "tool")
    if not user_texts and not results:
        raise InvalidRequest(
            "Nothing new to answer: after the last assistant message there must be a user message with text"
            " or a tool result.",
            param="messages",
        )
    return News(
        user_texts=user_texts,
        results=results,
        instructions=_instructions(turn.messages),
        opens_conversation=last == -1,
    )


def _instructions(messages: tuple[Message, ...]) -> str:
    return "\n\n".join(message.text for message in messages if message.role == "system" and message.text.strip())
