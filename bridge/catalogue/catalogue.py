"""The tools of one request, in which a model searches for those that it needs, and the texts that it gets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple, Protocol

from bridge.catalogue.groups import LONGEST_TEXT, Group, Groups
from bridge.catalogue.ranking import Ranking
from bridge.turn import JsonObject, ToolSpec

MOST_MATCHES = 10
MOST_NEAREST = 5
LONGEST_ANSWER = 4_000
LONGEST_SENTENCE = 140
MOST_PARAMETERS = 8
LONGEST_PARAMETERS = 200
# Groups are shown shorter where the matches matter more, and the names of a group leave room for the matches.
LONGEST_GROUPS_BESIDE = 600
MOST_NAMES = 60
LONGEST_NAMES = 1_800
# About how many bytes of memory a tool takes in an index that is not made yet.
EXPECTED_SIZE = 1_500
_CUT = "…"

HOW_TO_SEARCH = "Search with a few words that say what to do and where, such as the name of a group and an action."
NOTHING_FOUND = "No tool fits these words. Search with other words."
# What is looked at of a description.
_LONGEST_BEGINNING = 2_000
_PARAGRAPH_END = re.compile(r"\n\s*\n")
# Not the full stops of "e.g.".
_SENTENCE_END = re.compile(r"(?<![.\s(]\w)[.!?](?=\s)")


class NamesToGoOn(Protocol):
    """The names of the tools that show and call what a search found."""

    @property
    def describe(self) -> str: ...

    @property
    def call(self) -> str: ...


class _UsualNames(NamedTuple):
    describe: str = "describe_tool"
    call: str = "call_tool"


USUAL_NAMES = _UsualNames()


class Catalogue:
    """The tools of a request, in the client's order. The ranking is made when somebody searches for the first time."""

    def __init__(self, specs: Sequence[ToolSpec]) -> None:
        self.specs = specs

    def __len__(self) -> int:
        return len(self.specs)

    @cached_property
    def groups(self) -> Groups:
        return Groups([spec.name for spec in self.specs])

    @property
    def size(self) -> int:
        """About how many bytes of memory the index takes, or will take, without the tools themselves."""
        ranking: Ranking | None = self.__dict__.get("_ranking")
        return EXPECTED_SIZE * len(self.specs) if ranking is None else ranking.size

    def find(self, name: str) -> ToolSpec | None:
        """Returns the tool with exactly this name."""
        return self._by_name.get(name)

    def nearest(self, name: str, most: int = MOST_NEAREST) -> list[str]:
        """Returns the names of the tools that are most like a name which no tool has."""
        return self._ranking.nearest(name, most)

    def search(self, words: str, most: int = MOST_MATCHES) -> list[ToolSpec]:
        """Returns the tools that fit the words, the best first."""
        return self._ranking.best(words, most)

    def search_answer(self, words: str, names: NamesToGoOn = USUAL_NAMES) -> str:
        """Returns the text for a model that searched with these words: what there is, what fits, and how to go on."""
        found = self.search(words) if words.strip() else []
        group = self.groups.find(words)
        if not found and group is None:
            return f"{self._in_words()}\n{NOTHING_FOUND if words.strip() else HOW_TO_SEARCH}"
        lines = [self._in_words(LONGEST_GROUPS_BESIDE)]
        if group is not None:
            lines.append(self._names_in(group))
        how = f"{names.describe} shows the exact parameters of a tool, and {names.call} calls it."
        return _joined_within([*lines, "The tools that fit best:"], map(_describe, found), how)

    @cached_property
    def _ranking(self) -> Ranking:
        return Ranking(self.specs, self.groups)

    @cached_property
    def _by_name(self) -> dict[str, ToolSpec]:
        return {spec.name: spec for spec in reversed(self.specs)}

    def _in_words(self, longest: int = LONGEST_TEXT) -> str:
        """Returns how many tools there are, and their groups, in one line."""
        count = len(self.specs)
        groups = self.groups.in_words(longest=longest)
        return f"{count:,} tool{'' if count == 1 else 's'}{f': {groups}' if groups else ''}."

    def _names_in(self, group: Group) -> str:
        names = [_one_line(self.specs[place].name) for place in group.places]
        shown = _fitting(names, MOST_NAMES, LONGEST_NAMES)
        hidden = len(names) - len(shown)
        return f"Tools of {group.label}: {', '.join(shown)}{f' and {hidden} more' if hidden else ''}."


def _joined_within(beginning: Sequence[str], lines: Iterable[str], end: str) -> str:
    """Returns the lines between the beginning and the end, as many as an answer may have."""
    shown = [*beginning]
    left = LONGEST_ANSWER - sum(len(line) + 1 for line in beginning) - len(end)
    for line in lines:
        left -= len(line) + 1
        if left < 0:
            break
        shown.append(line)
    return "\n".join([*shown, end])


def _describe(spec: ToolSpec) -> str:
    sentence = _first_sentence(spec.description)
    parameters = _parameters_of(spec.parameters or {})
    return f"{_one_line(spec.name)}{f': {sentence}' if sentence else ''}  [{parameters}]"


def _first_sentence(description: str) -> str:
    paragraph = _PARAGRAPH_END.split(description[:_LONGEST_BEGINNING].strip(), maxsplit=1)[0]
    match = _SENTENCE_END.search(paragraph)
    return _cut(_one_line(paragraph[: match.end()] if match else paragraph))


def _parameters_of(schema: JsonObject) -> str:
    """Returns the names of the parameters, the required ones first."""
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict):
        return ""
    first = required if isinstance(required, list) else []
    names = [*dict.fromkeys(name for name in (*first, *properties) if isinstance(name, str) and name in properties)]
    shown = _fitting([*map(_one_line, names)], MOST_PARAMETERS, LONGEST_PARAMETERS)
    return ", ".join([*shown, _CUT] if len(shown) < len(names) else shown)


def _fitting(items: Sequence[str], most: int, longest: int) -> Sequence[str]:
    """Returns the first items, at most so many, and with at most so many characters."""
    lengths = accumulate(len(item) + 2 for item in items[:most])
    return items[: sum(length <= longest for length in lengths)]


def _cut(sentence: str) -> str:
    """Returns the sentence, or as many of its words as may be shown."""
    if len(sentence) <= LONGEST_SENTENCE:
        return sentence
    beginning = sentence[: LONGEST_SENTENCE - 1]
    return f"{beginning.rpartition(' ')[0] or beginning}{_CUT}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
