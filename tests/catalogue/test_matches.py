"""Concepts are matched with tools, and weigh more the fewer tools have them."""

from __future__ import annotations

from bridge.catalogue.groups import Groups
from bridge.catalogue.index import Index
from bridge.catalogue.matches import Match, find_matches
from bridge.catalogue.question import QuestionReader
from tests.catalogue.tools import SERVICES, many_tools

TOOLS = many_tools()


def matches(question: str) -> list[Match]:
    index = Index(TOOLS, Groups([spec.name for spec in TOOLS]))
    return find_matches(QuestionReader(index).read(question), index, len(TOOLS))


def fits_of(match: Match, *words: str) -> set[float]:
    places = (place for place, spec in enumerate(TOOLS) if all(word in spec.name for word in words))
    return {match.fits.get(place, 0.0) for place in places}


def test_concepts_that_no_tool_has_are_left_out() -> None:
    assert [match.concept.words for match in matches("xylophone issue photosynthesis")] == [("issue",)]


def test_a_word_in_the_name_fits_best_and_a_synonym_less() -> None:
    (found,) = matches("bug")
    assert fits_of(found, "issue") == {0.85}
    (found,) = matches("issue")
    assert fits_of(found, "create", "issue") == {1.0}


def test_a_service_is_recognised_and_fits_more_than_a_name() -> None:
    service, thing = matches("github issue")
    assert service.is_service
    assert not thing.is_service
    assert min(fits_of(service, "github")) > max(thing.fits.values())


def test_an_action_is_recognised_and_weighs_less_than_a_thing() -> None:
    thing, action = matches("webhook create")
    assert action.is_action
    assert not thing.is_action
    assert action.weight < thing.weight


def test_what_many_tools_have_weighs_less() -> None:
    everywhere, rare = matches("limit github")
    assert everywhere.weight < rare.weight


def test_question_words_weigh_little() -> None:
    what, label = matches("what labels")
    assert what.weight < label.weight / 2


def test_all_words_of_a_way_must_be_in_a_tool() -> None:
    (found,) = matches("slackwebhook")
    assert {TOOLS[place].name for place, fit in found.fits.items() if fit > 0.9} == {
        spec.name for spec in TOOLS if "slack" in spec.name and "webhook" in spec.name
    }
    assert len(SERVICES) > 1


def test_vague_words_weigh_little() -> None:
    weights = {match.concept.words[0]: match.weight for match in matches("github make issue new today")}
    assert weights["new"] < weights["issue"]
