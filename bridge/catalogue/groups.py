"""Groups of tools: those of one service have names that begin alike, such as `github_`, `mcp__slack__` or `stripe.`.

A group is known by its key, the words of the beginning without separators in lower case: `google_calendar_` and
`googleCalendar` are one group, `googlecalendar`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bridge.catalogue.synonyms import ACTIONS
from bridge.catalogue.words import WordSplitter, split_words, stem

# Fewer tools that begin alike are no group.
SMALLEST_GROUP = 3
# A service with several products has so many tools for each, as in `google_calendar_` and `google_drive_`.
SMALLEST_PRODUCT = 10
LONGEST_PREFIX = 4
LONGEST_LABEL = 40
# What is looked at of a name, and of a text that may be the name of a group.
LONGEST_NAME = 200
MOST_SHOWN = 60
LONGEST_TEXT = 1_500
# Begins the names of tools that come from servers of the Model Context Protocol, as in `mcp__slack__send_message`.
_PROTOCOL = "mcp"
# What clients put between the name of a server and that of its tool.
_NAMESPACE = re.compile(r"(.+)(?:__|[:/])")

Words = Sequence[str]


@dataclass(frozen=True, slots=True)
class Group:
    """Tools that belong together, by their `places` in the client's list. The `label` is the name to show."""

    key: str
    label: str
    places: tuple[int, ...]


class Groups:
    """The groups of a list of tools, by the tools' names.

    - `all`: the groups, the largest first.
    - `words`: the words in each name, without the name of a protocol before them.
    - `prefixes`: how many of these words are the beginning that a tool has in common with its group, 0 without a group.
    - `numbers`: which of all groups each tool belongs to, -1 without a group.
    - `ungrouped`: the places of the tools without a group.
    """

    def __init__(self, names: Sequence[str]) -> None:
        splitter = WordSplitter()
        self.words = [_without_protocol(splitter.split(name[:LONGEST_NAME])) for name in names]
        self.prefixes = [0] * len(names)
        labels: dict[str, str] = {}
        found: defaultdict[str, list[int]] = defaultdict(list)
        for length, places in _find_prefixes(names, self.words):
            prefix = self.words[places[0]][:length]
            key = "".join(prefix)
            labels.setdefault(key, _as_written(names[places[0]], prefix))
            found[key] += places
            for place in places:
                self.prefixes[place] = length
        groups = [Group(key, labels[key], tuple(sorted(places))) for key, places in found.items()]
        self.all = sorted(groups, key=lambda group: (-len(group.places), group.places[0]))
        self.numbers = [-1] * len(names)
        for number, group in enumerate(self.all):
            for place in group.places:
                self.numbers[place] = number
        self.ungrouped = tuple(place for place, number in enumerate(self.numbers) if number < 0)
        self._by_key = {group.key: group for group in groups}

    def find(self, text: str) -> Group | None:
        """Returns the group of which the text is the name, however it is written."""
        return self._by_key.get("".join(_without_protocol(split_words(text[:LONGEST_NAME]))))

    def in_words(self, most: int = MOST_SHOWN, longest: int = LONGEST_TEXT) -> str:
        """Returns a line such as "github (50), slack (50) and 12 other tools"; "" if no tools belong together."""
        shown: list[str] = []
        left = longest - len(_others(10**9))
        hidden = len(self.ungrouped)
        for group in self.all:
            item = f"{group.label} ({len(group.places)})"
            left -= len(item) + 2
            if left < 0 or len(shown) >= most:
                hidden += len(group.places)
            else:
                shown.append(item)
        return ", ".join(shown) + _others(hidden) if shown else ""


def _others(count: int) -> str:
    return f" and {count} other tool{'s' if count > 1 else ''}" if count else ""


def _without_protocol(words: list[str]) -> list[str]:
    return words[1:] if len(words) > 1 and words[0] == _PROTOCOL else words


def _find_prefixes(names: Sequence[str], words: Sequence[Words]) -> Iterator[tuple[int, list[int]]]:
    """Yields the beginnings that are of groups: the number of their words, and the places of their tools."""
    by_namespace: defaultdict[str, list[int]] = defaultdict(list)
    for place, name in enumerate(names):
        match = _NAMESPACE.match(name[:LONGEST_NAME])
        by_namespace[match[1] if match else ""].append(place)
    plain = by_namespace.pop("", [])
    for namespace, places in by_namespace.items():
        length = len(_without_protocol(split_words(f"{namespace}__x"))) - 1
        if len(places) >= SMALLEST_GROUP and 0 < length < min(len(words[place]) for place in places):
            yield length, places
        else:
            plain += places
    yield from _find_common_words(words, sorted(plain))


def _find_common_words(words: Sequence[Words], places: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
    waiting = [(1, same) for same in _split(words, places, 0) if _is_service(words, same)]
    while waiting:
        length, same = waiting.pop()
        parts = _split(words, same, length) if length < LONGEST_PREFIX else []
        if _are_products(words, same, parts, length):
            waiting += [(length + 1, part) for part in parts]
        else:
            yield length, same


def _split(words: Sequence[Words], places: Sequence[int], at: int) -> list[list[int]]:
    """Returns the places in lists, those with the same word in one. The last word of a name is not its beginning."""
    found: defaultdict[str, list[int]] = defaultdict(list)
    for place in places:
        if len(words[place]) > at + 1:
            found[words[place][at]].append(place)
    return [*found.values()]


def _is_service(words: Sequence[Words], places: Sequence[int]) -> bool:
    """Returns whether the first word names a service, not an action: `file_read` and `file_write` are of a group
    `file`, but `get_file` and `get_user` are not of a group `get`.
    """
    if len(places) < SMALLEST_GROUP:
        return False
    if stem(words[places[0]][0]) not in ACTIONS:
        return True
    return 2 * sum(stem(words[place][1]) in ACTIONS for place in places) > len(places)


def _are_products(words: Sequence[Words], places: Sequence[int], parts: Sequence[Sequence[int]], at: int) -> bool:
    """Returns whether the next word of the names is a part of the service's name, or tells its products apart."""
    if sum(map(len, parts)) < len(places):
        return False
    has_action = any(stem(words[part[0]][at]) in ACTIONS for part in parts)
    is_large = all(len(part) >= SMALLEST_PRODUCT for part in parts)
    return (is_large or not has_action) if len(parts) == 1 else (is_large and not has_action)


def _as_written(name: str, words: Words) -> str:
    """Returns the words as the name of a tool has them: "GitHub", not "git hub"."""
    match = re.search(r"[\W_]*".join(map(re.escape, words)), name, re.IGNORECASE)
    label = match[0] if match else "_".join(words)
    return " ".join(label.split())[:LONGEST_LABEL]
