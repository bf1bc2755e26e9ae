"""Finds the known words that somebody may have meant with a mistyped one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

# Shorter words have too many neighbours.
SHORTEST = 4


def most_errors(word: str) -> int:
    """Returns how many typing errors may be in a word of this length."""
    if len(word) < SHORTEST:
        return 0
    return 1 if len(word) <= 6 else 2


class Spelling:
    """Known words, by their lengths, each with a mask of its letters: words with other letters need no comparison."""

    def __init__(self, words: Iterable[str]) -> None:
        self._by_length: defaultdict[int, list[tuple[int, str]]] = defaultdict(list)
        for word in words:
            if len(word) >= SHORTEST - 1:
                self._by_length[len(word)].append((_mask(word), word))

    def nearest(self, word: str) -> list[str]:
        """Returns the known words with the fewest errors, if they are few enough, in the order in which they came."""
        limit = most_errors(word)
        if not limit:
            return self._with_one_more(word) if len(word) == SHORTEST - 1 else []
        best = limit + 1
        found: list[str] = []
        for other in self._candidates(word, limit):
            errors = count_errors(word, other, min(best, limit))
            if errors < best:
                best, found = errors, []
            if errors == best <= limit:
                found.append(other)
        return found

    def _with_one_more(self, word: str) -> list[str]:
        """Returns the known words in which this one misses a letter, but not the first one."""
        mask, first = _mask(word), word[0]
        longer = self._by_length.get(len(word) + 1, ())
        alike = (other for letters, other in longer if letters & mask == mask and other[0] == first)
        return [other for other in alike if any(other[:at] + other[at + 1 :] == word for at in range(1, len(other)))]

    def _candidates(self, word: str, limit: int) -> list[str]:
        """Returns words of about this length that begin or end alike, and have nearly the same letters."""
        mask, first, last = _mask(word), word[0], word[-1]
        return [
            other
            for length in range(len(word) - limit, len(word) + limit + 1)
            for letters, other in self._by_length.get(length, ())
            if (letters ^ mask).bit_count() <= 2 * limit and (other[0] == first or other[-1] == last)
        ]


def _mask(word: str) -> int:
    mask = 0
    for letter in word:
        mask |= 1 << (ord(letter) & 31)
    return mask


def count_errors(one: str, other: str, limit: int) -> int:
    """Returns how many letters are missing, added, wrong or swapped with their neighbour; `limit` + 1 if there are
    more than the limit.
    """
    if abs(len(one) - len(other)) > limit:
        return limit + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one):
        before, row = row, _next_row(one, other, at, letter, before, row)
        if min(row) > limit:
            return limit + 1
    return min(row[-1], limit + 1)


def _next_row(one: str, other: str, at: int, letter: str, before: list[int], row: list[int]) -> list[int]:
    """Returns the errors between the first `at` + 1 letters of one word and each beginning of the other one."""
    following = [at + 1]
    for place, wanted in enumerate(other):
        errors = min(row[place] + (letter != wanted), row[place + 1] + 1, following[place] + 1)
        if at and place and letter == other[place - 1] and one[at - 1] == wanted:
            errors = min(errors, before[place - 1] + 1)
        following.append(errors)
    return following
