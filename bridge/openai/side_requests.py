"""Requests that clients make beside the conversation, with the same model name. They must not reach the agent's memory.

Taking a user's words for one is worse than missing one, so every rule names words that a program writes.
"""

from __future__ import annotations

from collections.abc import Sequence

from bridge.turn import Message, News, Said, SideRule, Turn


def side_rule(turn: Turn, rules: Sequence[SideRule]) -> SideRule | None:
    """The first rule that the request fits."""
    return next((rule for rule in rules if _fits(turn, rule)), None)


def told_at_once(turn: Turn) -> News:
    """The whole conversation for an agent that knows nothing of it: the history as one text, then the last message."""
    spoken = [message for message in turn.messages if message.role != "system"]
    if all(message.role == "user" for message in spoken):
        return News(said=tuple(Said(m.text, m.images) for m in spoken if m.text.strip() or m.images))
    last = spoken[-1]
    history = spoken[:-1] if last.role == "user" else spoken
    said = [Said("The conversation so far:\n\n" + "\n\n".join(_line(message) for message in history))]
    if last.role == "user":
        said.append(Said(last.text, last.images))
    return News(said=tuple(said), opens_conversation=False)


def _fits(turn: Turn, rule: SideRule) -> bool:
    asking = turn.messages[-1:] if rule.last else [message for message in turn.messages if message.role == rule.role]
    if not asking or asking[0].role != rule.role or not asking[0].text.startswith(rule.begins):
        return False
    spoken = sum(message.role != "system" for message in turn.messages)
    if (rule.alone and spoken > 1) or (turn.tools and not rule.tools):
        return False
    return all(any(words in message.text for message in turn.messages) for words in rule.contains)


def _line(message: Message) -> str:
    calls = "".join(f"\n(calls {call.name} with {call.arguments})" for call in message.tool_calls)
    return f"[{'result of a tool' if message.role == 'tool' else message.role}]\n{message.text}{calls}"
