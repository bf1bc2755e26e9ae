"""Writes what an agent has not heard of a transcript as messages to it.

A user's words stay as they are. What another assistant said or did comes as JSON in a user's message, so that the
agent's model cannot take it for its own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from bridge.turn import Message, UserMessage

_LEFT_OUT = "[{count} characters of this message are left out here.]"
_OLDER_LEFT_OUT = (
    "[{count} older messages of this conversation are left out here: the bridge tells an agent {limit} characters of a"
    " history (BRIDGE_HISTORY_LIMIT).]"
)


def told_text(message: Message) -> str:
    """Returns the words in which the agent is told an older message of the transcript."""
    if message.role == "user":
        return message.text
    if message.role == "tool":
        return _quote(
            {
                "type": "earlier_tool_result",
                "for": "another assistant",
                "call": message.tool_call_id,
                "status": "error" if message.is_error else "success",
                "result": message.text,
            }
        )
    calls = [{"call": call.id, "tool": call.name, "arguments": call.arguments} for call in message.tool_calls]
    quote: dict[str, object] = {"type": "earlier_message", "from": "another assistant", "text": message.text}
    return _quote({**quote, "calls": calls} if calls else quote)


def tell(messages: Sequence[Message], limit: int) -> tuple[UserMessage, ...]:
    """Returns the messages for the agent, in order, with `limit` characters at most apart from notices. The newest
    are kept whole as far as possible.
    """
    told: list[UserMessage] = []
    left = limit
    for place in reversed(range(len(messages))):
        message = messages[place]
        text = told_text(message)
        if not text.strip() and not message.images:
            continue
        if left <= 0:
            told.append(UserMessage(_OLDER_LEFT_OUT.format(count=place + 1, limit=limit)))
            break
        if len(text) > left:
            text = f"{text[:left]}\n{_LEFT_OUT.format(count=len(text) - left)}"
        left -= len(text)
        told.append(UserMessage(text, message.images))
    return tuple(reversed(told))


def _quote(content: dict[str, object]) -> str:
    return json.dumps(content, ensure_ascii=False)
