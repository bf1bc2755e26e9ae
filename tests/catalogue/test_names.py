"""A name fits a question better the more of it is asked for."""

from __future__ import annotations

from bridge.catalogue.groups import Groups
from bridge.catalogue.index import Index
from bridge.catalogue.matches import find_matches
from bridge.catalogue.names import EXACT_NAME, NameComparison, ToolName
from bridge.catalogue.question import QuestionReader
from tests.catalogue.tools import named

TOOLS = named(
    "jira_create_issue",
    "jira_create_issue_link",
    "jira_list_issues",
    "jira_get_issue",
    "jira_delete_issue",
    "jira_jira_issue",
)


def factors(question: str) -> dict[str, float]:
    groups = Groups([spec.name for spec in TOOLS])
    index = Index(TOOLS, groups)
    comparison = NameComparison(question, find_matches(QuestionReader(index).read(question), index, len(TOOLS)))
    return {
        spec.name: comparison.factor(
            ToolName(spec.name, groups.words[place], index.stems_in_name(place), groups.prefixes[place])
        )
        for place, spec in enumerate(TOOLS)
    }


def test_words_that_are_not_asked_for_make_a_name_fit_worse() -> None:
    found = factors("create a jira issue now")
    assert found["jira_create_issue"] > found["jira_create_issue_link"]


def test_another_action_fits_worse_than_none_that_is_asked_for() -> None:
    assert factors("delete jira issue now")["jira_delete_issue"] > factors("delete jira issue")["jira_create_issue"]
    assert factors("jira issue now")["jira_create_issue"] > factors("delete jira issue now")["jira_create_issue"]


def test_the_form_of_a_word_counts() -> None:
    found = factors("show the issues of jira")
    assert found["jira_list_issues"] > found["jira_get_issue"]


def test_the_service_does_not_count_twice() -> None:
    found = factors("jira issue, please")
    assert found["jira_jira_issue"] < found["jira_get_issue"]
    found = factors("jira issue in jira, please")
    assert found["jira_jira_issue"] > found["jira_get_issue"]


def test_an_exact_name_is_far_ahead() -> None:
    for question in ("jira_create_issue", "jira create issue", "JiraCreateIssue", "call jira_create_issue, please."):
        found = factors(question)
        assert found["jira_create_issue"] > EXACT_NAME / 2
        assert max(factor for name, factor in found.items() if name != "jira_create_issue") < 2


def test_a_tool_that_shows_something_fits_better_if_that_is_asked_for() -> None:
    found = factors("which issue is it in jira")
    assert found["jira_get_issue"] > found["jira_delete_issue"]
    found = factors("jira issue")
    assert found["jira_get_issue"] == found["jira_delete_issue"]
