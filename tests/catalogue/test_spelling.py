"""Mistyped words are corrected to known ones that are near enough."""

from __future__ import annotations

import random
import time

import pytest

from bridge.catalogue.spelling import Spelling, count_errors, most_errors

WORDS = ["github", "gitlab", "request", "repository", "message", "page", "list", "issue", "calendar"]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("gihtub", ["github"]),
        ("githb", ["github"]),
        ("ithub", ["github"]),
        ("requst", ["request"]),
        ("reqeust", ["request"]),
        ("repostiory", ["repository"]),
        ("repsitry", ["repository"]),
        ("mesage", ["message"]),
        ("calender", ["calendar"]),
        ("isue", ["issue"]),
        ("github", ["github"]),
    ],
)
def test_a_mistyped_word_is_corrected(typed: str, meant: list[str]) -> None:
    assert Spelling(WORDS).nearest(typed) == meant


@pytest.mark.parametrize("typed", ["ls", "pqe", "age", "pqge1", "sandwich", "gthb", "", "x" * 200])
def test_a_word_that_is_too_far_or_too_short_is_not_corrected(typed: str) -> None:
    assert Spelling(WORDS).nearest(typed) == []


def test_a_word_of_three_letters_may_miss_one_behind_the_first() -> None:
    assert [Spelling(WORDS).nearest(typed) for typed in ("lst", "pge", "lis")] == [["list"], ["page"], ["list"]]


def test_equally_near_words_come_in_their_order() -> None:
    assert Spelling(["cart", "card", "cord"]).nearest("carx") == ["cart", "card"]


def test_longer_words_may_have_more_errors() -> None:
    assert [most_errors("x" * length) for length in (3, 4, 6, 7, 20)] == [0, 1, 1, 2, 2]


@pytest.mark.parametrize(
    ("one", "other", "errors"),
    [("", "", 0), ("a", "", 1), ("ab", "ba", 1), ("abcd", "acbd", 1), ("kitten", "sitting", 3), ("same", "same", 0)],
)
def test_errors_are_counted_in_both_directions(one: str, other: str, errors: int) -> None:
    assert count_errors(one, other, 5) == count_errors(other, one, 5) == errors


def test_counting_ends_at_the_limit() -> None:
    assert count_errors("abcdef", "uvwxyz", 2) == 3
    assert count_errors("abc", "abcdefgh", 2) == 3


def test_many_known_words_take_little_time() -> None:
    letters = random.Random(1)
    spelling = Spelling({"".join(letters.choices("abcdefghij", k=8)) for _ in range(10_000)})
    started = time.thread_time()
    for _ in range(10):
        spelling.nearest("".join(letters.choices("abcdefghij", k=8)))
    assert time.thread_time() - started < 5
