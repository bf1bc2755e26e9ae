"""Finds the tools that fit a concept of a question, and weighs concepts: what few tools have tells more."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import log

from bridge.catalogue.concepts import Concept, Way
from bridge.catalogue.index import Field, Index
from bridge.catalogue.synonyms import ACTIONS, QUESTION_WORDS, SEPARABLE
from bridge.catalogue.vague import VAGUE

# What a word counts in each field.
STRENGTHS = {
    Field.SERVICE: 1.3,
    Field.NAME: 1.0,
    Field.HEADLINE: 0.6,
    Field.PARAMETERS: 0.35,
    Field.TEXT: 0.25,
}
# A question's own words may be anywhere. Other words for the same are looked for where tools say what they do.
_FIELDS = {True: tuple(Field), False: (Field.SERVICE, Field.NAME, Field.HEADLINE)}
# A word that hardly a tool has may be there by chance. Actions tell less than the things to which they are done.
MOST_WEIGHT = 4.0
MOST_WEIGHT_OF_ACTION = 3.0
# A question begins with what is to be done.
WEIGHT_OF_FIRST = 1.1
# "Who" may ask for users, "what" for a list of something.
WEIGHT_OF_QUESTION_WORD = 0.5
# A word such as "make" tells little. It may tell more together with others, as the table of related words knows.
WEIGHT_OF_VAGUE = 0.7
WEIGHT_OF_VAGUE_RELATED = 2.0
# A related word that many tools have counts less. One that few tools have counts fully.
RARE = 0.7
VAGUE_RELATED = 2.0


@dataclass(frozen=True, slots=True)
class Match:
    """How well tools fit a concept, by their places, and what the concept weighs."""

    concept: Concept
    fits: dict[int, float]
    weight: float

    @property
    def is_service(self) -> bool:
        """Whether the concept is the name of a service."""
        return max(self.fits.values()) > STRENGTHS[Field.NAME]

    @property
    def is_action(self) -> bool:
        """Whether the concept may be what is to be done, not to what it is done."""
        return any(len(words) == 1 and words[0] in ACTIONS for words in self.concept.ways)


def find_matches(concepts: Sequence[Concept], index: Index, count: int) -> list[Match]:
    """Returns the concepts that any of the tools fit. `count`: how many tools there are."""
    matches: list[Match] = []
    for concept in concepts:
        fits = _find_fits(concept, index, count)
        if fits:
            first = WEIGHT_OF_FIRST if concept is concepts[0] else 1.0
            matches.append(Match(concept, fits, first * _weigh(concept, fits, count)))
    return matches


def _weigh(concept: Concept, fits: dict[int, float], count: int) -> float:
    if concept.likeliest in QUESTION_WORDS:
        return WEIGHT_OF_QUESTION_WORD
    if len(concept.likeliest) == 1 and concept.likeliest[0] in VAGUE:
        return WEIGHT_OF_VAGUE_RELATED if concept.has_related else WEIGHT_OF_VAGUE
    is_action = concept.likeliest in SEPARABLE or (len(concept.likeliest) == 1 and concept.likeliest[0] in ACTIONS)
    return min(MOST_WEIGHT_OF_ACTION if is_action else MOST_WEIGHT, log(1 + count / (1 + sum(fits.values()))))


def _find_fits(concept: Concept, index: Index, count: int) -> dict[int, float]:
    found: list[tuple[float, Collection[int]]] = []
    for way in concept.ways.values():
        for field in _FIELDS[way.is_own]:
            places = _places(way, field, index)
            if places:
                rarity = _rarity(len(places), count) if way.is_related else 1.0
                found.append((way.fit * STRENGTHS[field] * rarity, places))
    fits: dict[int, float] = {}
    for strength, places in sorted(found, key=lambda one: one[0]):
        fits.update(dict.fromkeys(places, strength))
    return fits


def _places(way: Way, field: Field, index: Index) -> Collection[int]:
    """Returns the tools that have all words of a way in this field or a more important one."""
    if len(way.words) == 1:
        return index.places(way.words[0], field)
    having = ({place for one in Field if one <= field for place in index.places(word, one)} for word in way.words)
    return set.intersection(*having)


def _rarity(having: int, count: int) -> float:
    """Returns how much a word counts that so many of all tools have, 1 at most."""
    return min(1.0, log(1 + count / having) / (RARE * log(1 + count)))
