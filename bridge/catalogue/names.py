"""Compares the names of tools with a question, word by word."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from bridge.catalogue.asking import READING, WRITING, asks_to_read
from bridge.catalogue.index import COMMON_WORDS
from bridge.catalogue.matches import Match
from bridge.catalogue.question import MOST_CHARACTERS
from bridge.catalogue.synonyms import ACTIONS
from bridge.catalogue.words import split_words, stem

# The share of a score that depends on how much of the name is asked for.
ASKED_SHARE = 0.35
# An action, as in `get_weather`, matters less than a thing, and so does a common word.
SMALL = 0.5
# The question asks for an action, and the name has only others.
OTHER_ACTION = 0.9
# The question asks for something to be shown, and the tool does so, or changes something.
READS = 1.15
WRITES = 0.8
# A word is written as in the question: "issues" asks for a list, "issue" for one.
AS_WRITTEN = 0.04
# All words of the name, without those of its group, are in the question.
WHOLE_NAME = 1.1
# The question has the whole name: no other tool may come first.
EXACT_NAME = 1_000.0
_NAMES = re.compile(r"[\w.:/-]*\w")


@dataclass(frozen=True, slots=True)
class ToolName:
    """A tool's name, its words and their stems. The first `prefix` words are those of the tool's group."""

    name: str
    words: Sequence[str]
    stems: Sequence[str]
    prefix: int


class NameComparison:
    """Compares names with one question, which was read already."""

    def __init__(self, question: str, matches: Sequence[Match]) -> None:
        asked = question[:MOST_CHARACTERS]
        words = split_words(asked)
        self._joined = "".join(words)
        self._names = {*_NAMES.findall(asked.casefold())}
        self._written = {*words}
        self._twice = {stem(word) for word, count in Counter(words).items() if count > 1}
        self._asks_to_read = asks_to_read(words)
        self._asks_action = any(match.is_action for match in matches)
        self._fits = dict.fromkeys(COMMON_WORDS & self._written, 1.0)
        self._own: set[str] = set()
        for match in matches:
            for way in match.concept.ways.values():
                self._fits |= {word: max(way.fit, self._fits.get(word, 0.0)) for word in way.words}
                self._own.update(way.words if way.is_own else ())

    def factor(self, tool: ToolName) -> float:
        """Returns by what the score of a tool is multiplied because of its name."""
        service = {*tool.stems[: tool.prefix]} - self._twice
        own = tool.stems[tool.prefix :]
        factor = 1 - ASKED_SHARE + ASKED_SHARE * self._asked_share(own, service)
        factor *= 1 + AS_WRITTEN * len(self._written.intersection(tool.words[tool.prefix :]))
        factor *= self._action_factor(own)
        if self._own.issuperset(own) and service.isdisjoint(own):
            factor *= WHOLE_NAME
        return factor * EXACT_NAME if self._is_exact(tool) else factor

    def _asked_share(self, stems: Sequence[str], service: Collection[str]) -> float:
        """Returns how much of the name is asked for, without the words of the service. `calendar_create_calendar` has
        the word of its service twice, but a question for an event of a calendar does not.
        """
        whole = asked = 0.0
        for word in stems:
            weight = SMALL if word in ACTIONS or word in COMMON_WORDS else 1.0
            whole += weight
            asked += 0.0 if word in service else weight * self._fits.get(word, 0.0)
        return asked / whole if whole else 1.0

    def _action_factor(self, stems: Sequence[str]) -> float:
        if self._asks_to_read:
            first = next((word for word in stems if word in WRITING or word in READING), "")
            return READS if first in READING else WRITES if first in WRITING else 1.0
        return OTHER_ACTION if self._has_other_action(stems) else 1.0

    def _has_other_action(self, stems: Sequence[str]) -> bool:
        actions = ACTIONS.intersection(stems) if self._asks_action else ()
        return bool(actions) and self._fits.keys().isdisjoint(actions)

    def _is_exact(self, tool: ToolName) -> bool:
        return "".join(tool.words) == self._joined or (len(tool.words) > 1 and tool.name.casefold() in self._names)
