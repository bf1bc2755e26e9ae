"""Everyday words lead to the words that tools use."""

from __future__ import annotations

import pytest

from bridge.catalogue.related import MODULES, RelatedWords, related_words
from bridge.catalogue.words import words_of
from tests.memory import measured, memory_held

ROWS = [row for module in MODULES for row in module.ROWS.split("\n") if row]


def meant(text: str) -> set[str]:
    return {" ".join(phrase) for _, others in related_words().find(words_of(text)) for phrase in others}


@pytest.mark.parametrize(
    ("said", "tools_say"),
    [
        ("louder", "volume"),
        ("smog", "air quality"),
        ("money back because our plane was late", "refund"),
        ("let the shutters down", "cover"),
        ("who is told about changes", "watcher"),
        ("get a page back that I threw away", "restore"),
        ("tear down everything", "destroy"),
        ("what is the share price", "quote"),
        ("let my wife see my calendar", "share"),
        ("sign this off", "approve"),
        ("put it off until Monday", "reschedule"),
    ],
)
def test_everyday_words_lead_to_words_of_tools(said: str, tools_say: str) -> None:
    assert " ".join(words_of(tools_say)) in meant(said)


def test_related_words_lead_in_one_direction() -> None:
    assert "louder" not in meant("volume")


def test_a_phrase_may_have_other_words_within_but_not_many() -> None:
    table = RelatedWords(["give_back: return"])
    assert [*table.find(["please", "give", "it", "back"])] == [((1, 3), (("return",),))]
    assert [*table.find(["give", "me", "all", "of", "it", "back"])] == []
    assert [*table.find(["back", "give"])] == []


def test_a_phrase_in_several_rows_has_the_words_of_all() -> None:
    table = RelatedWords(["loud: sound", "loud noisy: sound_level"])
    assert [*table.find(["loud"])] == [((0,), (("sound",), ("sound", "level")))]


def test_the_words_of_the_table_are_known() -> None:
    table = RelatedWords(["money_back: refund"])
    assert {*table} == {"money", "back", "refund"}
    assert len(table) == 3
    assert "back" in table
    assert "front" not in table


def test_each_row_has_words_on_both_sides() -> None:
    for row in ROWS:
        said, colon, tools_say = row.partition(": ")
        assert colon, row
        assert said.split(), row
        assert tools_say.split(), row
        assert all(word.isalnum() and word == word.lower() for word in row.replace(":", " ").replace("_", " ").split())


def test_the_table_is_small() -> None:

    def read() -> tuple[int, int]:
        table = RelatedWords(ROWS)
        return len(table), memory_held()

    entries, size = measured(read)
    assert entries > 1_500
    assert size + sum(map(len, ROWS)) < 1_000_000
