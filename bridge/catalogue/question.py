"""Reads the words with which a model looks for a tool, as concepts: what it asks for, and how tools may name that."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise

from bridge.catalogue.concepts import Concept, Way, find_phrases, make_concept
from bridge.catalogue.index import COMMON_WORDS, Field, Index
from bridge.catalogue.related import related_words
from bridge.catalogue.spelling import SHORTEST, Spelling
from bridge.catalogue.synonyms import SYNONYMS, Phrase
from bridge.catalogue.vague import VAGUE
from bridge.catalogue.words import split_words, stem

# What is looked at of a question.
MOST_CHARACTERS = 400
MOST_WORDS = 30
# Mistyped words for which neighbours are looked for, because that takes the longest.
MOST_MISTYPED = 12
MOST_CORRECTIONS = 4
MOST_RELATIVES = 8
SHORTEST_RELATIVE = 4
SHORTEST_PIECE = 3
MOST_PIECES = 4
_ENDINGS = "al ation ator able anc enc er ful ication ion ist ity ly ment nes or ur y"
# What is left of an English word after its beginning, if both are forms of one word. See `stem` for the cut ones.
SUFFIXES = frozenset(_ENDINGS.split())
# About how many bytes of memory a word takes for which typing errors are looked for.
SIZE_OF_KNOWN_WORD = 150

# How well a way fits that is not the asked word itself. A word that no name has was hardly chosen by its exact sense.
SYNONYM = 0.65
SYNONYM_OF_UNUSED = 0.85
CORRECTED = 0.85
CORRECTED_SHORT = 0.7
JOINED = 0.95
REPEATED = 0.7
KIN = 0.7
LEAST_KIN = 0.3
# A word has many senses, but two words together have hardly more than one.
RELATED_WORD = 0.5
RELATED_PHRASE = 0.95

# In texts there are too many words to look at all of them.
_MAIN = (Field.SERVICE, Field.NAME, Field.HEADLINE)


class QuestionReader:
    """Reads questions by the words of the tools in an index."""

    def __init__(self, index: Index) -> None:
        self._index = index

    @property
    def size(self) -> int:
        """About how many bytes of memory this object takes after it has corrected a word, without the index."""
        return SIZE_OF_KNOWN_WORD * (len(self._index.written) + len(self._sorted) + len(related_words()))

    def read(self, text: str) -> list[Concept]:
        """Returns the concepts of a question, in its order. Common words are left out, unless it has no others."""
        words = split_words(text[:MOST_CHARACTERS])[:MOST_WORDS]
        meant = self._meant(words)
        stems = [ways[0].words for ways in meant]
        related = [*related_words().find([" ".join(phrase) for phrase in stems])]
        units = [*find_phrases(stems)]
        kept = [unit for unit in units if len(unit) > 1 or words[unit[0]] not in COMMON_WORDS]
        concepts: dict[Phrase, Concept] = {}
        by_place: dict[int, Concept] = {}
        for unit in kept or ([] if related else units):
            made = make_concept(unit, words, meant)
            concept = concepts.setdefault(made.likeliest, made)
            by_place.update(dict.fromkeys(unit, concept))
        found = [*concepts.values()]
        self._add_synonyms(found)
        self._join_neighbours(found)
        for places, others in related:
            of_phrase = _at_places(places, by_place)
            if not of_phrase:
                of_phrase.append(Concept(tuple(words[at] for at in places)))
                found += of_phrase
            for concept in of_phrase:
                concept.add_related(others, RELATED_PHRASE if len(places) > 1 else RELATED_WORD)
        return found

    # --- what one word means --------------------------------------------------------------------------

    def _meant(self, words: Sequence[str]) -> list[list[Way]]:
        """Returns what each word may mean, the likeliest first: itself if it is known, or else what was mistyped."""
        left = MOST_MISTYPED
        meant = []
        for word in words:
            ways = self._known(word)
            if left and (not ways or self._is_doubtful(word)):
                left -= 1
                ways += self._corrected(word)
            meant.append(ways or [Way((stem(word),), 1.0)])
        return meant

    def _known(self, word: str) -> list[Way]:
        own = (stem(word),)
        is_known = (
            own in SYNONYMS
            or own[0] in VAGUE
            or word in COMMON_WORDS
            or own[0] in related_words()
            or self._index.knows(own[0])
        )
        ways = [Way(own, 1.0)] if is_known else []
        if word.startswith("re") and self._index.has(stem(word[2:]), Field.NAME):
            ways.append(Way((stem(word[2:]),), REPEATED))  # "reassign" is assigning
        pieces = self._pieces(word) if word not in self._index.written else ()
        return [*ways, Way(pieces, JOINED)] if pieces else ways

    def _is_doubtful(self, word: str) -> bool:
        """Returns whether a short word is so rare that it may be mistyped."""
        is_short = len(word) < SHORTEST and word.isalpha() and word not in COMMON_WORDS
        return is_short and (word,) not in SYNONYMS and word not in related_words() and not self._is_in_main(word)

    def _pieces(self, word: str) -> Phrase:
        """Returns the fewest words of names that are joined in this word, such as those in "pullrequest"."""
        written = self._index.written
        best: list[Phrase | None] = [(), *[None] * len(word)]
        for end in range(SHORTEST_PIECE, len(word) + 1):
            for start in range(end - SHORTEST_PIECE + 1):
                before = best[start]
                if before is not None and len(before) < MOST_PIECES and word[start:end] in written:
                    longer = (*before, written[word[start:end]])
                    best[end] = min(best[end] or longer, longer, key=len)
        pieces = best[-1] or ()
        return pieces if len(pieces) > 1 else ()

    def _corrected(self, word: str) -> list[Way]:
        nearest = self._spelling.nearest(word)
        stems = dict.fromkeys(self._index.written.get(one) or stem(one) for one in nearest)
        fit = CORRECTED if len(word) >= SHORTEST else CORRECTED_SHORT
        return [Way((one,), fit) for one in [*stems][:MOST_CORRECTIONS]]

    @cached_property
    def _spelling(self) -> Spelling:
        asked = (word for phrase in SYNONYMS for word in phrase)
        return Spelling(dict.fromkeys([*self._index.written, *self._sorted, *asked, *related_words()]))

    # --- other words for it ---------------------------------------------------------------------------

    def _add_synonyms(self, concepts: Sequence[Concept]) -> None:
        """Adds the ways that are not the question's own words. "Open a new issue" does not ask for creating twice, and
        a question for tables of a database does not mean the same with both.
        """
        asked = {concept.likeliest for concept in concepts}
        used: set[Phrase] = set()
        for concept in concepts:
            for way in [*concept.ways.values()]:
                synonyms = () if way.words in used else SYNONYMS.get(way.words, ())
                used.update(synonyms)
                fit = way.fit * (SYNONYM if self._is_in_names(way.words) else SYNONYM_OF_UNUSED)
                concept.add_others((other, fit) for other in synonyms if other not in asked)
                concept.add_others(((word,), way.fit * closeness) for word, closeness in self._relatives(way.words))
            concept.add_parts()

    def _is_in_names(self, phrase: Phrase) -> bool:
        return all(self._index.has(word, Field.NAME) for word in phrase)

    def _is_in_main(self, word: str) -> bool:
        return any(self._index.has(word, one) for one in _MAIN)

    def _relatives(self, phrase: Phrase) -> Iterator[tuple[str, float]]:
        """Yields words with the same beginning, such as "deployment" for "deploy", and how close they are."""
        word = phrase[0]
        if len(phrase) > 1 or len(word) < SHORTEST_RELATIVE:
            return
        beginning = word[:-1] if word.endswith("y") and len(word) > SHORTEST_RELATIVE else word
        first = bisect_left(self._sorted, beginning)
        for other in self._sorted[first : first + MOST_RELATIVES]:
            if other.startswith(beginning) and other != word:
                yield other, _closeness(beginning, other)
        for length in range(SHORTEST_RELATIVE, len(word)):
            shorter = (word[:length], f"{word[:length]}y") if word[length:] in SUFFIXES else ()
            yield from ((one, KIN) for one in shorter if one != word and self._is_in_main(one))

    @cached_property
    def _sorted(self) -> list[str]:
        return self._index.words(*_MAIN)

    def _join_neighbours(self, concepts: Sequence[Concept]) -> None:
        """Adds the word that two neighbours make, if tools have it: "web hook" is "webhook", and "google drive" is
        "gdrive", too.
        """
        for one, other in pairwise(concepts):
            first, second = one.words[-1], other.words[0]
            for joined in (stem(first + second), stem(first[0] + second) if len(second) >= SHORTEST_PIECE else ""):
                if joined and self._is_in_main(joined):
                    one.add(Way((joined,), JOINED))
                    other.add(Way((joined,), JOINED))


def _closeness(beginning: str, word: str) -> float:
    """Returns how close a word is to its beginning, which may be another form of it, or short for it."""
    if word[len(beginning) :] in SUFFIXES:
        return KIN
    return min(LEAST_KIN + 0.1 * (len(beginning) - SHORTEST_RELATIVE), KIN)


def _at_places(places: Iterable[int], by_place: Mapping[int, Concept]) -> list[Concept]:
    """Returns the concepts at these places, each once."""
    return [*{id(by_place[at]): by_place[at] for at in places if at in by_place}.values()]
