"""Tools are grouped by how their names begin, whatever style the names have."""

from __future__ import annotations

import pytest

from bridge.catalogue.groups import LONGEST_TEXT, Groups

LETTERS = "abcdefghijklmnopqrst"
ENDINGS = ("create_issue", "list_issues", "get_user")


def sizes(groups: Groups) -> dict[str, int]:
    return {group.label: len(group.places) for group in groups.all}


@pytest.mark.parametrize(
    ("names", "label"),
    [
        ([f"github_{end}" for end in ENDINGS], "github"),
        ([f"mcp__slack__{end}" for end in ENDINGS], "slack"),
        ([f"mcp__my-server__{end}" for end in ENDINGS], "my-server"),
        ([f"stripe.{end}" for end in ENDINGS], "stripe"),
        ([f"tools:{end}" for end in ENDINGS], "tools"),
        ([f"server/{end}" for end in ENDINGS], "server"),
        (["notion-create-page", "notion-get-page", "notion-search"], "notion"),
        (["linearCreateIssue", "linearListIssues", "linearGetTeam"], "linear"),
        (["GitHubCreateIssue", "GitHubListIssues", "GitHubGetUser"], "GitHub"),
        (["QuickBooksCreateBill", "QuickBooksPayBill", "QuickBooksGetBill"], "Quick"),
        (["file_read", "file_write", "file_delete"], "file"),
        (["SLACK_SEND_MESSAGE", "SLACK_LIST_CHANNELS", "SLACK_GET_USER"], "SLACK"),
    ],
)
def test_tools_of_one_service_are_a_group(names: list[str], label: str) -> None:
    assert sizes(Groups(names)) == {label: 3}


def test_a_name_of_two_words_is_one_service_if_many_tools_share_it() -> None:
    names = [f"QuickBooks{letter}Bill" for letter in "ABCDEFGHIJ"]
    assert sizes(Groups(names)) == {"QuickBooks": 10}


def test_products_of_one_company_are_groups_of_their_own() -> None:
    names = [f"google_{product}_{letter}" for product in ("calendar", "drive") for letter in "abcdefghij"]
    assert sizes(Groups(names)) == {"google_calendar": 10, "google_drive": 10}


def test_objects_of_one_service_are_not_products() -> None:
    names = [f"stripe_{thing}_{verb}" for thing in ("invoice", "customer") for verb in ("create", "list", "delete")]
    assert sizes(Groups(names)) == {"stripe": 6}


def test_an_action_is_not_a_service() -> None:
    groups = Groups(["get_weather", "get_time", "get_user", "list_files", "list_users", "list_pages"])
    assert groups.all == []
    assert groups.ungrouped == (0, 1, 2, 3, 4, 5)
    assert groups.prefixes == [0] * 6


def test_two_tools_are_no_group() -> None:
    assert Groups(["jira_create_issue", "jira_list_issues", "weather"]).all == []


def test_names_in_several_styles_are_in_one_group() -> None:
    groups = Groups(["mcp__slack__send", "mcp__slack__list", "mcp__slack__pin", "slack_a", "slack_b", "slackC"])
    assert [group.places for group in groups.all] == [(0, 1, 2, 3, 4, 5)]
    assert groups.words[0] == ["slack", "send"]
    assert groups.numbers == [0] * 6


def test_larger_groups_come_first_and_then_the_order_of_the_client() -> None:
    names = ["b_1", "b_2", "b_3", "a_1", "a_2", "a_3", "c_1", "c_2", "c_3", "c_4", "x"]
    assert [*sizes(Groups(names))] == ["c", "b", "a"]


@pytest.mark.parametrize("text", ["google_calendar", "Google Calendar", "googlecalendar", "googleCalendar_"])
def test_a_group_is_found_however_its_name_is_written(text: str) -> None:
    groups = Groups([f"google_calendar_{letter}" for letter in "abcdefghij"])
    found = groups.find(text)
    assert found is not None
    assert found.key == "googlecalendar"


@pytest.mark.parametrize("text", ["", "google", "google calendar events", "x" * 100_000])
def test_other_texts_are_not_groups(text: str) -> None:
    assert Groups([f"google_calendar_{letter}" for letter in "abcdefghij"]).find(text) is None


def test_groups_in_words() -> None:
    names = [*(f"github_{number}" for number in range(4)), *(f"slack_{number}" for number in range(3)), "a", "b"]
    assert Groups(names).in_words() == "github (4), slack (3) and 2 other tools"
    assert Groups(names[:7]).in_words() == "github (4), slack (3)"
    assert Groups(names[:8]).in_words() == "github (4), slack (3) and 1 other tool"
    assert Groups(names).in_words(most=1) == "github (4) and 5 other tools"
    assert Groups([]).in_words() == Groups(["a", "b"]).in_words() == ""


def test_many_groups_in_words_are_short() -> None:
    names = [f"{one * 15}{other * 15}_{end}" for one in LETTERS for other in LETTERS for end in "abc"]
    text = Groups(names).in_words()
    assert len(text) <= LONGEST_TEXT
    assert "\n" not in text
    assert text.endswith(" other tools")


@pytest.mark.parametrize("name", ["", "_", "__", "mcp", "mcp__", "__x", "/", "é", "x" * 100_000, "a__" * 1_000])
def test_odd_names_are_grouped_without_a_fault(name: str) -> None:
    groups = Groups([name] * 3)
    assert len(groups.words) == 3
    assert len(groups.in_words()) <= LONGEST_TEXT
