"""A question becomes concepts, and each concept knows how tools may name it."""

from __future__ import annotations

import pytest

from bridge.catalogue.groups import Groups
from bridge.catalogue.index import Index
from bridge.catalogue.question import Concept, QuestionReader
from bridge.catalogue.words import words_of
from tests.catalogue.tools import many_tools, tool

TOOLS = [
    *many_tools(),
    tool("github_create_pull_request", "Opens a pull request."),
    tool("k8s_scale_deployment", "Changes the number of replicas."),
    tool("gdrive_open", "Opens a file."),
    tool("notify_user", "Notifies a user."),
]


@pytest.fixture(scope="module")
def reader() -> QuestionReader:
    return QuestionReader(Index(TOOLS, Groups([spec.name for spec in TOOLS])))


def asked(reader: QuestionReader, question: str) -> list[str]:
    return [" ".join(concept.words) for concept in reader.read(question)]


def fit(concept: Concept, words: str) -> float:
    way = concept.ways.get(tuple(words_of(words)))
    return way.fit if way else 0.0


def test_common_words_are_left_out_unless_there_are_no_others(reader: QuestionReader) -> None:
    assert asked(reader, "Please create an issue for me in the project") == ["create", "issue", "project"]
    assert asked(reader, "how to") == ["how", "to"]
    assert asked(reader, "") == []


def test_a_repeated_word_is_one_concept(reader: QuestionReader) -> None:
    assert asked(reader, "issue issues ISSUE comment") == ["issue", "comment"]


def test_a_phrase_is_one_concept_also_with_words_within(reader: QuestionReader) -> None:
    assert asked(reader, "merge request comment") == ["merge request", "comment"]
    assert asked(reader, "let the whole team know") == ["let know", "whole", "team"]
    assert asked(reader, "turn it off") == ["turn off"]


def test_a_synonym_fits_less_than_the_word_itself(reader: QuestionReader) -> None:
    (concept,) = reader.read("issue")
    assert fit(concept, "issue") == 1
    assert 0 < fit(concept, "ticket") < 1
    assert concept.ways[tuple(words_of("issue"))].is_own
    assert not concept.ways[tuple(words_of("ticket"))].is_own


def test_synonyms_of_a_word_that_no_name_has_fit_better(reader: QuestionReader) -> None:
    (unused,), (used,) = reader.read("remove"), reader.read("delete")
    assert fit(unused, "delete") > fit(used, "remove")


def test_two_words_with_one_meaning_ask_for_it_once(reader: QuestionReader) -> None:
    first, second, _ = reader.read("open new issue")
    assert fit(first, "create")
    assert not fit(second, "create")


def test_a_word_of_the_question_is_not_a_synonym_of_another(reader: QuestionReader) -> None:
    issue, ticket = reader.read("issue ticket")
    assert not fit(issue, "ticket")
    assert not fit(ticket, "issue")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("gihtub", "github"),
        ("isue", "issue"),
        ("tiket", "ticket"),
        ("pullrequest", "pull request"),
        ("githubissue", "github issue"),
        ("relabel", "label"),
        ("deploy", "deployment"),
        ("notification", "notify"),
        ("notify", "notify"),
    ],
)
def test_a_word_may_be_mistyped_joined_or_another_form(reader: QuestionReader, typed: str, meant: str) -> None:
    (concept,) = reader.read(typed)
    assert fit(concept, meant)


@pytest.mark.parametrize(
    ("question", "joined"), [("git hub", "github"), ("web hook", "webhook"), ("g drive", "gdrive")]
)
def test_two_words_may_be_one(reader: QuestionReader, question: str, joined: str) -> None:
    assert all(fit(concept, joined) for concept in reader.read(question))


def test_the_first_letter_may_stand_for_a_word(reader: QuestionReader) -> None:
    assert all(fit(concept, "gdrive") for concept in reader.read("google drive"))


def test_only_the_beginning_of_a_long_question_is_read(reader: QuestionReader) -> None:
    assert asked(reader, "issue " + "x " * 1_000 + "comment") == ["issue", "x"]
    assert len(asked(reader, " ".join(f"w{number}" for number in range(400)))) == 30


def test_related_words_fit_less_than_the_word_itself_and_phrases_more_than_words(reader: QuestionReader) -> None:
    (word,) = reader.read("smog")
    assert 0 < fit(word, "air quality") < 0.65
    tear, *_ = reader.read("tear down")
    assert 0.65 < fit(tear, "destroy") < 1


def test_a_phrase_of_common_words_is_a_concept(reader: QuestionReader) -> None:
    found = reader.read("who am I")
    assert any(fit(concept, "whoami") for concept in found)


def test_words_of_the_table_are_not_corrected(reader: QuestionReader) -> None:
    (found,) = reader.read("hoover")
    assert found.likeliest == ("hoover",)


def test_a_single_letter_or_digit_is_not_joined_with_the_word_before_it(reader: QuestionReader) -> None:
    assert all(way.words != ("k8",) for concept in reader.read("keep 8") for way in concept.ways.values())
