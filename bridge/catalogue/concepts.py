"""Concepts: what a question asks for, each with the ways in which tools may name it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from bridge.catalogue.index import COMMON_WORDS
from bridge.catalogue.synonyms import LONGEST_PHRASE, SEPARABLE, SYNONYMS, Phrase

# Words within a phrase, as in "let the whole team know".
WIDEST_GAP = 3
# How well a tool fits that has one word of a phrase.
ONE_OF_PHRASE = 0.4


@dataclass(frozen=True, slots=True)
class Way:
    """A way in which a tool may name something: with all these words. `fit`: how well it fits, 1 at most. `is_own`: it
    has the words of the question, perhaps mistyped or joined, not others with the same meaning. `is_related`: it comes
    from the table of related words.
    """

    words: Phrase
    fit: float
    is_own: bool = True
    is_related: bool = False


@dataclass(slots=True)
class Concept:
    """One thing for which a question asks, and the ways in which tools may name it. `words`: the question's words.
    `has_related`: the table of related words knows what is meant.
    """

    words: tuple[str, ...]
    ways: dict[Phrase, Way] = field(default_factory=dict)
    has_related: bool = False

    @property
    def likeliest(self) -> Phrase:
        return next(iter(self.ways))

    def add(self, way: Way) -> None:
        known = self.ways.get(way.words)
        if known is None or known.fit < way.fit:
            self.ways[way.words] = way

    def add_others(self, others: Iterable[tuple[Phrase, float]]) -> None:
        """Adds ways with other words than the question's, each with how well it fits."""
        for words, fit in others:
            self.add(Way(words, fit, is_own=False))

    def add_related(self, others: Iterable[Phrase], fit: float) -> None:
        """Adds ways from the table of related words."""
        for words in others:
            self.add(Way(words, fit, is_own=False, is_related=True))
        self.has_related = True

    def add_parts(self) -> None:
        """Adds the words of a phrase, each alone."""
        for word in self.likeliest if len(self.likeliest) > 1 else ():
            if word not in COMMON_WORDS:
                self.add(Way((word,), ONE_OF_PHRASE))


def make_concept(unit: Sequence[int], words: Sequence[str], meant: Sequence[Sequence[Way]]) -> Concept:
    concept = Concept(tuple(words[at] for at in unit))
    if len(unit) > 1:
        concept.add(Way(tuple(meant[at][0].words[0] for at in unit), 1.0))
    else:
        for way in meant[unit[0]]:
            concept.add(way)
    return concept


def find_phrases(meant: Sequence[Phrase]) -> Iterator[tuple[int, ...]]:
    """Yields the places of the words, those of one known phrase together."""
    done: set[int] = set()
    for at in range(len(meant)):
        if at not in done:
            unit = _phrase_at(meant, at, done)
            done.update(unit)
            yield unit


def _phrase_at(meant: Sequence[Phrase], at: int, done: set[int]) -> tuple[int, ...]:
    for size in range(LONGEST_PHRASE, 1, -1):
        unit = tuple(range(at, at + size))
        if at + size <= len(meant) and done.isdisjoint(unit) and _joined(meant, unit) in SYNONYMS:
            return unit
    for second in range(at + 2, min(at + 2 + WIDEST_GAP, len(meant))):
        if second not in done and _joined(meant, (at, second)) in SEPARABLE:
            return (at, second)
    return (at,)


def _joined(meant: Sequence[Phrase], unit: Sequence[int]) -> Phrase:
    """Returns the words at these places as one phrase. One that is a phrase itself belongs to no other one."""
    return tuple(meant[at][0] if len(meant[at]) == 1 else "" for at in unit)
