"""Requests that clients make beside the conversation, with the same model name. They must not reach the agent's memory.

Taking a user's words for one is worse than missing one, so every rule names words that a program writes.
"""

from __future__ import annotations

from collections.abc import Sequence

from bridge.errors import InvalidRequest
from bridge.turn import Message, NewInput, SideRule, Turn, UserMessage

# What Roo Code puts before its system prompts where o1, o3 or o4 stands anywhere in the name of the model.
_BEFORE = "Formatting re-enabled\n"


def side_rule(turn: Turn, rules: Sequence[SideRule]) -> SideRule | None:
    """The first rule that the request fits."""
    return next((rule for rule in rules if _fits(turn, rule)), None)


def told_at_once(turn: Turn) -> NewInput:
    """The whole conversation for an agent that knows nothing of it: the history as one text, then the last message."""
    spoken = [message for message in turn.messages if message.role != "system"]
    by_user = [message.role == "user" for message in spoken]
    history = [] if all(by_user) else spoken[: len(spoken) - by_user[-1]]
    said = [UserMessage(message.text, message.images) for message in spoken[len(history) :]]
    if history:
        text = "The conversation so far:\n\n" + "\n\n".join(_line(message) for message in history)
        said.insert(0, UserMessage(text, tuple(image for message in history for image in message.images)))
    said = [one for one in said if one.text.strip() or one.images]
    if not said:
        raise InvalidRequest("Nothing to answer: there must be a user message with text.", param="messages")
    return NewInput(said=tuple(said), opens_conversation=not history)


def _fits(turn: Turn, rule: SideRule) -> bool:
    asking = turn.messages[-1:] if rule.last else [message for message in turn.messages if message.role == rule.role]
    if not asking or asking[0].role != rule.role or not asking[0].text.removeprefix(_BEFORE).startswith(rule.begins):
        return False
    spoken = sum(message.role != "system" for message in turn.messages)
    if (rule.alone and spoken > 1) or (turn.tools and not rule.tools):
        return False
    return all(any(words in message.text for message in turn.messages) for words in rule.contains)


def _line(message: Message) -> str:
    calls = "".join(f"\n(calls {call.name} with {call.arguments})" for call in message.tool_calls)
    return f"[{'result of a tool' if message.role == 'tool' else message.role}]\n{message.text}{calls}"
