"""Questions that ask for something to be shown are recognised."""

from __future__ import annotations

import pytest

from bridge.catalogue.asking import READING, WRITING, asks_to_read
from bridge.catalogue.vague import VAGUE
from bridge.catalogue.words import split_words, words_of


@pytest.mark.parametrize(
    "question",
    ["who can open this file", "which labels may I use", "is the door locked", "how many tests failed", "What is new?"],
)
def test_a_question_may_ask_for_something_to_be_shown(question: str) -> None:
    assert asks_to_read(split_words(question))


@pytest.mark.parametrize("question", ["close the door", "how can I close an issue", "what should I press to send", ""])
def test_a_wish_or_a_question_for_help_does_not(question: str) -> None:
    assert not asks_to_read(split_words(question))


def test_no_word_of_a_name_both_reads_and_writes() -> None:
    assert WRITING.isdisjoint(READING)


def test_words_that_name_a_thing_or_a_clear_action_are_not_vague() -> None:
    assert VAGUE.isdisjoint(words_of("issue file message delete create refund weather calendar"))
