"""Everyday words and phrases, and the words that tools use for what people mean by them: "louder" asks for a volume.

Unlike synonyms, they lead in one direction only. A row in `related_rows/` has what people say before the colon, and the
words of tools behind it. `_` joins the words of a phrase. In a question, a phrase may have other words within: "give me
the money back" has "money back" and "give back".
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain

from bridge.catalogue.related_rows import (
    actions,
    code,
    design,
    documents,
    home,
    messages,
    places,
    programs,
    qualities,
    servers,
    storage,
    trade,
    travel,
    watching,
)
from bridge.catalogue.synonyms import Phrase
from bridge.catalogue.words import stem

MODULES = (
    actions,
    qualities,
    code,
    messages,
    documents,
    storage,
    servers,
    watching,
    programs,
    trade,
    design,
    home,
    places,
    travel,
)
# The next word of a phrase is at most so many words behind the one before it.
WIDEST_STEP = 3
_WORD = re.compile(r"[^ _]+")


class RelatedWords:
    """A table of related words.

    It is kept as few long texts, because tuples of words take twice the memory: for each first word of what people say,
    the rest of each phrase, followed by the words of tools for it.
    """

    def __init__(self, rows: Iterable[str]) -> None:
        stems = _Stems()
        found: defaultdict[str, dict[str, str]] = defaultdict(dict)
        for row in rows:
            said, _, meant = row.partition(": ")
            others = stems.joined(meant)
            for phrase in said.split():
                first, _, rest = phrase.partition("_")
                ends, rest = found[stems[first]], stems.joined(rest)
                ends[rest] = f"{ends[rest]} {others}" if rest in ends else others
        self._by_first = {first: (*chain.from_iterable(ends.items()),) for first, ends in found.items()}
        for word in stems.values():
            self._by_first.setdefault(word, ())

    def __iter__(self) -> Iterator[str]:
        """Yields the stem of each word in the table."""
        return iter(self._by_first)

    def __len__(self) -> int:
        return len(self._by_first)

    def __contains__(self, word: str) -> bool:
        return word in self._by_first

    def find(self, asked: Sequence[str]) -> Iterator[tuple[tuple[int, ...], tuple[Phrase, ...]]]:
        """Yields the places of each known phrase among these stems, and what tools may call it."""
        for at, word in enumerate(asked):
            ends = self._by_first.get(word, ())
            for rest, meant in zip(ends[::2], ends[1::2], strict=True):
                places = _find_rest(asked, at, rest.split("_")) if rest else (at,)
                if places:
                    yield places, (*(tuple(one.split("_")) for one in meant.split()),)


@cache
def related_words() -> RelatedWords:
    """Returns the whole table. It is read when it is first needed."""
    return RelatedWords(row for module in MODULES for row in module.ROWS.split("\n") if row)


class _Stems(dict[str, str]):
    """The stem of each word."""

    def __missing__(self, word: str) -> str:
        found = self[word] = stem(word)
        return found

    def joined(self, text: str) -> str:
        """Returns the text with the stems of its words, of which some are joined by `_`."""
        return _WORD.sub(lambda match: self[match[0]], text)


def _find_rest(asked: Sequence[str], at: int, rest: Iterable[str]) -> tuple[int, ...]:
    """Returns the places of a phrase's words, that of the first one, too, or nothing if one of them is missing."""
    places = [at]
    for word in rest:
        following = range(places[-1] + 1, min(places[-1] + 1 + WIDEST_STEP, len(asked)))
        found = next((place for place in following if asked[place] == word), None)
        if found is None:
            return ()
        places.append(found)
    return (*places,)
