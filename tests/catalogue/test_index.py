"""A word leads to the tools that have it, by the field in which they have it."""

from __future__ import annotations

from random import Random
from uuid import UUID

import pytest

from bridge.catalogue.groups import Groups
from bridge.catalogue.index import MOST_LETTERS, Field, Index, first_sentence
from bridge.catalogue.words import stem
from bridge.turn import ToolSpec
from tests.catalogue.tools import many_tools, tool
from tests.memory import measured, memory_held


def index_of(*specs: ToolSpec) -> Index:
    return Index(specs, Groups([spec.name for spec in specs]))


def test_each_part_of_a_tool_is_a_field() -> None:
    schema = {"properties": {"repoName": {"description": "Of the owner.", "enum": ["small", 1]}}}
    names = ("github_issue", "github_list_issues", "github_lock_issue")
    index = index_of(*(ToolSpec(name, "Makes it. Slowly!", schema) for name in names))
    fields: dict[str, Field] = {
        "github": Field.SERVICE,
        "issue": Field.NAME,
        "makes": Field.HEADLINE,
        "name": Field.PARAMETERS,
    }
    fields |= dict.fromkeys(("slowly", "owner", "small"), Field.TEXT)
    for word, field in fields.items():
        assert [*index.places(stem(word), field)] == [0, 1, 2]
        assert [one for one in Field if index.has(stem(word), one)] == [field]
    assert not index.knows("the")
    assert index.places("unknown", Field.NAME) == ()


def test_a_name_in_a_text_is_found_as_one_word_and_by_its_parts() -> None:
    index = index_of(tool("a", "Uses GitHub."), tool("b", "Uses github."), tool("c", "The hub."))
    assert sorted(index.places("github", Field.HEADLINE)) == [0, 1]
    assert sorted(index.places("hub", Field.HEADLINE)) == [0, 2]


def test_a_group_of_two_words_is_one_word_as_well() -> None:
    index = index_of(*(tool(f"google_calendar_{letter}") for letter in "abcdefghij"))
    assert [*index.places("googlecalendar", Field.SERVICE)] == [*range(10)]


def test_stems_of_a_name() -> None:
    assert index_of(tool("mcp__slack__listIssues")).stems_in_name(0) == ["slack", "list", "issu"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("One. Two.", "One."),
        ("One: two; three. Four", "One: two; three."),
        ("One\ntwo\n\nThree", "One\ntwo\n\n"),
        ("Version 1.2 of it! More", "Version 1.2 of it!"),
        ("", ""),
        ("x" * 999, "x" * 300),
    ],
)
def test_the_first_sentence_of_a_description(text: str, sentence: str) -> None:
    assert first_sentence(text) == sentence


@pytest.mark.parametrize(
    "specs",
    [
        many_tools(copies=4, size=700),
        [ToolSpec(f"t{place}", " ".join(UUID(int=place * 90 + n).hex[-9:] for n in range(90))) for place in range(300)],
    ],
    ids=["usual", "all words differ"],
)
def test_the_estimated_size_is_about_the_memory(specs: list[ToolSpec]) -> None:
    groups = Groups([spec.name for spec in specs])
    Index(specs[:2], groups)

    def make() -> tuple[int, int]:
        index = Index(specs, groups)
        return index.size, memory_held()

    size, taken = measured(make)
    assert 0.8 * taken < size < 2 * taken


def test_texts_without_spaces_make_a_small_index() -> None:
    """Each pair of neighbouring characters is a word of its own."""
    letters = Random(1).choices([chr(code) for code in range(0x4E00, 0x9FA0)], k=200_000)
    specs = [
        ToolSpec(f"tool_{number}", "".join(letters[100 * number : 100 * number + 90]) * 8) for number in range(2_000)
    ]
    index = Index(specs, Groups([spec.name for spec in specs]))
    assert index.size < 12_000_000
    assert sum(map(len, index.words(*Field))) < 2 * MOST_LETTERS
    assert index.places("tool", Field.SERVICE) or index.places("tool", Field.NAME)
