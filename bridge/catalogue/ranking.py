"""Ranks tools by how well they fit the words of a question.

All tools with a word of the question are scored by the fields that have it. The names of the best ones are compared
with the question once more: a name with few other words fits better.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from heapq import nsmallest

from bridge.catalogue.groups import LONGEST_NAME, Groups
from bridge.catalogue.index import Index
from bridge.catalogue.matches import Match, find_matches
from bridge.catalogue.names import NameComparison, ToolName
from bridge.catalogue.question import QuestionReader
from bridge.catalogue.words import split_words, stem
from bridge.turn import ToolSpec

# So many tools are compared by their names.
MOST_COMPARED = 80
# The share of a score that depends on how much of the question a tool covers.
COVERING = 0.7
# A tool that does not fit the service which the question names.
OTHER_SERVICE = 0.75
LEAST_FIT_OF_SERVICE = 0.5
# A tool fits a little if the others of its group do, and those are not few.
CONTEXT = 0.5
LEAST_CONTEXT = 0.1

# Letters that are compared of a wrong name, and with how many names: fewer if they have no word in common with it.
LONGEST_COMPARED = 64
MOST_ALIKE = 40
MOST_UNLIKE = 200
# What equal letters and equal words count for how near two names are. The rest is for what the words mean.
BY_LETTERS = 0.5
BY_WORDS = 0.25
# Names that are less near are not shown.
LEAST_NEARNESS = 0.4


class Ranking:
    """Ranks the tools of one list. Many threads may use it."""

    def __init__(self, specs: Sequence[ToolSpec], groups: Groups | None = None) -> None:
        self._specs = specs
        self._groups = groups or Groups([spec.name for spec in specs])
        self._index = Index(specs, self._groups)
        self._reader = QuestionReader(self._index)

    @property
    def size(self) -> int:
        """About how many bytes of memory the ranking takes, without the tools."""
        return self._index.size + self._reader.size

    def best(self, words: str, most: int) -> list[ToolSpec]:
        """Returns the tools that fit the words, the best first, at most so many. Equally good ones stay in order."""
        matches = find_matches(self._reader.read(words), self._index, len(self._specs))
        scores = self._score(matches)
        comparison = NameComparison(words, matches)
        compared = {
            place: scores[place] * comparison.factor(self._tool_name(place))
            for place in _highest(scores, max(most, MOST_COMPARED))
        }
        return [self._specs[place] for place in _highest(compared, most)]

    def nearest(self, name: str, most: int) -> list[str]:
        """Returns the names of the tools that are most like a name which no tool has."""
        matches = find_matches(self._reader.read(name), self._index, len(self._specs))
        scores = self._score(matches)
        alike = _highest(scores, MOST_ALIKE) or range(len(self._specs))[:MOST_UNLIKE]
        best = max(scores.values(), default=1.0)
        nearness = _NameNearness(name)
        near = {place: nearness.of(self._groups.words[place], scores.get(place, 0.0) / best) for place in alike}
        return [self._specs[place].name for place in _highest(near, most) if near[place] >= LEAST_NEARNESS]

    def _tool_name(self, place: int) -> ToolName:
        stems = self._index.stems_in_name(place)
        return ToolName(self._specs[place].name, self._groups.words[place], stems, self._groups.prefixes[place])

    def _score(self, matches: Sequence[Match]) -> dict[int, float]:
        """Returns the score of each tool that fits any of the concepts, by its place."""
        scores: defaultdict[int, float] = defaultdict(float)
        covered: defaultdict[int, float] = defaultdict(float)
        for match in matches:
            weight = match.weight
            for place, fit in match.fits.items():
                scores[place] += weight * fit
                covered[place] += weight if fit > 0.5 else 2 * weight * fit
        for match in matches:
            self._add_context(scores, match)
        whole = sum(match.weight for match in matches)
        services = [match.fits for match in matches if match.is_service]
        for place, score in scores.items():
            scores[place] = score * (1 - COVERING + COVERING * covered[place] / whole)
        if services:
            fitting = set.intersection(
                *({place for place, fit in fits.items() if fit >= LEAST_FIT_OF_SERVICE} for fits in services)
            )
            for place in scores.keys() - fitting:
                scores[place] *= OTHER_SERVICE
        return scores

    def _add_context(self, scores: dict[int, float], match: Match) -> None:
        """Adds to the scores of tools that do not fit a concept, as far as the other tools of their groups do: each
        tool of a mail program has to do with mail.
        """
        numbers = self._groups.numbers
        sums: defaultdict[int, float] = defaultdict(float)
        for place, fit in match.fits.items():
            sums[numbers[place]] += fit if fit < 1 else 1.0
        shares = {number: total / len(self._groups.all[number].places) for number, total in sums.items() if number >= 0}
        added = {number: CONTEXT * match.weight * share for number, share in shares.items() if share > LEAST_CONTEXT}
        if added:
            for place in scores.keys() - match.fits.keys():
                scores[place] += added.get(numbers[place], 0.0)


def _highest(scores: Mapping[int, float], most: int) -> list[int]:
    """Returns the places with the highest scores, the first in the client's list of equal ones."""
    return nsmallest(most, scores, key=lambda place: (-scores[place], place))


class _NameNearness:
    """Says how near names are to one wrong name: by the letters, the words, and what the words mean."""

    def __init__(self, name: str) -> None:
        words = split_words(name[:LONGEST_NAME])
        self._stems = {*map(stem, words)}
        self._count = len(words)
        self._letters = SequenceMatcher(b="".join(words)[:LONGEST_COMPARED], autojunk=False)

    def of(self, words: Sequence[str], score: float) -> float:
        """Returns how near these words of a name are. `score`: how well their tool fits, 1 for the best one."""
        self._letters.set_seq1("".join(words)[:LONGEST_COMPARED])
        common = len(self._stems.intersection(map(stem, words))) / max(self._count, len(words), 1)
        return BY_LETTERS * self._letters.ratio() + BY_WORDS * common + (1 - BY_LETTERS - BY_WORDS) * score
