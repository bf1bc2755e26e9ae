"""Words with the same meaning are found from each other, also phrases."""

from __future__ import annotations

import pytest

from bridge.catalogue.synonyms import ACTIONS, LONGEST_PHRASE, SEPARABLE, SYNONYMS
from bridge.catalogue.words import words_of


def phrase(text: str) -> tuple[str, ...]:
    return tuple(words_of(text))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("create", "add"),
        ("delete", "remove"),
        ("show", "list"),
        ("look up", "search"),
        ("edit", "update"),
        ("tell", "send"),
        ("ticket", "issue"),
        ("repo", "repository"),
        ("pull request", "MR"),
        ("photo", "image"),
        ("folder", "directory"),
        ("e-mail", "mail"),
        ("appointment", "event"),
    ],
)
def test_two_words_that_mean_the_same_are_synonyms_of_each_other(one: str, other: str) -> None:
    assert phrase(other) in SYNONYMS[phrase(one)]
    assert phrase(one) in SYNONYMS[phrase(other)]


def test_nothing_is_a_synonym_of_itself() -> None:
    assert [one for one, others in SYNONYMS.items() if one in others] == []


def test_opposites_are_not_synonyms() -> None:
    for one, other in (("create", "delete"), ("enable", "disable"), ("lock", "unlock"), ("open", "close")):
        assert phrase(other) not in SYNONYMS[phrase(one)]


def test_no_phrase_is_empty_or_too_long() -> None:
    assert all(0 < len(one) <= LONGEST_PHRASE for one in SYNONYMS)


def test_actions_are_words_and_separable_phrases_have_two() -> None:
    assert {*words_of("create list delete send")} <= ACTIONS
    assert phrase("issue")[0] not in ACTIONS
    assert phrase("let know") in SEPARABLE
    assert all(len(one) == 2 for one in SEPARABLE)
