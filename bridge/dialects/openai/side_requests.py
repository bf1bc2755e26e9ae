"""Recognises side requests, which a client sends of its own beside the conversation, for example to get a title.

Side requests must not reach the agent's memory. To mistake a user's message for a side request is worse than to miss a
side request. So every rule names words that a program writes.
"""

from __future__ import annotations

from collections.abc import Sequence

from bridge.dialects.openai.transcript import Transcript
from bridge.turn import SideRule

# Roo Code puts this before its system prompts if the model's name contains o1, o3 or o4.
_ROO_CODE_PREFIX = "Formatting re-enabled\n"


def find_side_rule(transcript: Transcript, has_tools: bool, rules: Sequence[SideRule]) -> SideRule | None:
    """Returns the first rule that recognises a request as a side request, None if no rule does."""
    last = _texts_by_role(transcript[-1:])
    first = _texts_by_role(transcript)
    for rule in rules:
        asking = (last if rule.last else first).get(rule.role)
        if asking is not None and asking.startswith(rule.begins) and _rule_fits(transcript, has_tools, rule):
            return rule
    return None


def _texts_by_role(messages: Transcript) -> dict[str, str]:
    """Returns, for each role, the text of its first message."""
    texts: dict[str, str] = {}
    for message in messages:
        if message.role not in texts:
            texts[message.role] = message.text.removeprefix(_ROO_CODE_PREFIX)
    return texts


def _rule_fits(transcript: Transcript, has_tools: bool, rule: SideRule) -> bool:
    """Returns whether the whole request is as the rule says; how its message begins is not looked at here."""
    spoken = sum(message.role != "system" for message in transcript)
    if (rule.alone and spoken > 1) or (has_tools and not rule.tools):
        return False
    return all(any(words in message.text for message in transcript) for words in rule.contains)
