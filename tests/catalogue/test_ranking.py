"""The tool that fits a question is among the first, however the question is written."""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from bridge.catalogue.ranking import Ranking
from bridge.turn import ToolSpec
from tests.catalogue.tools import many_tools, named, names_of, tool

TOOLS = (
    *many_tools(),
    tool("slack_post_message", "Posts a message to a channel, or to a person.", "channel", "text"),
    tool("github_create_pull_request", "Opens a pull request from one branch to another.", "head", "base"),
    tool("gitlab_create_merge_request", "Opens a merge request.", "source", "target"),
    tool("circleci_list_builds", "Lists builds with their colour: green or red.", "project"),
    tool("k8s_scale_deployment", "Changes the number of replicas.", "replicas"),
    tool("gdrive.upload_file", "Uploads a file to Google Drive. Pictures are shown in a preview.", "path"),
    tool("stripe_refund_charge", "Pays a charge back to the customer.", "charge"),
    tool("getWeather", "Weather of today at a place.", "city"),
    tool("lights_off", "Switches all lamps of a room off.", "room"),
)


@pytest.fixture(scope="module")
def ranking() -> Ranking:
    return Ranking(TOOLS)


def first(ranking: Ranking, question: str, most: int = 5) -> list[str]:
    return names_of(ranking.best(question, most))


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("create github issue", "github_create_issue"),
        ("github_create_issue", "github_create_issue"),
        ("please use the tool github_create_issue, and give it a title", "github_create_issue"),
        ("githubCreateIssue", "github_create_issue"),
        ("linear_create_issue", "linearCreateIssue"),
        ("mcp__slack__delete_webhook", "mcp__slack__delete_webhook"),
        ("Which labels exist in Notion?", "notion-list-label"),
        ("get weather", "getWeather"),
    ],
)
def test_the_tool_that_a_question_names_is_the_first(ranking: Ranking, question: str, name: str) -> None:
    assert first(ranking, question)[0] == name


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("file a new bug in jira", "jira_create_issue"),
        ("remove a remark from asana", "asana_delete_comment"),
        ("show all people in zendesk", "zendesk_list_user"),
        ("tell the general channel the build is green", "slack_post_message"),
        ("let the whole team know in a channel", "slack_post_message"),
        ("open a PR", "github_create_pull_request"),
        ("open a PR", "gitlab_create_merge_request"),
        ("put a photo on google drive", "gdrive.upload_file"),
        ("give the money back", "stripe_refund_charge"),
        ("turn the light off", "lights_off"),
        ("rescale the deployments", "k8s_scale_deployment"),
    ],
)
def test_other_words_for_the_same_find_a_tool(ranking: Ranking, question: str, name: str) -> None:
    assert name in first(ranking, question)


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("make more copies of it", "k8s_scale_deployment"),
        ("do I need an umbrella", "getWeather"),
        ("the customer wants his money back", "stripe_refund_charge"),
        ("second pair of eyes for my changes", "github_create_pull_request"),
        ("jot down a remark in notion", "notion-create-comment"),
    ],
)
def test_everyday_words_find_a_tool(ranking: Ranking, question: str, name: str) -> None:
    assert name in first(ranking, question)


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("creat gihtub isue", "github_create_issue"),
        ("gihtub pull requst", "github_create_pull_request"),
        ("trelo list commnets", "trello_list_comment"),
        ("wheather", "getWeather"),
        ("strpie tempalte udpate", "stripe_update_template"),
    ],
)
def test_typing_errors_do_not_hide_a_tool(ranking: Ranking, question: str, name: str) -> None:
    assert name in first(ranking, question)


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("pullrequest", "github_create_pull_request"),
        ("createissue jira", "jira_create_issue"),
        ("git hub web hook list", "github_list_webhook"),
        ("GitHub webhooks", "github_list_webhook"),
        ("googledrive upload", "gdrive.upload_file"),
        ("deploy", "k8s_scale_deployment"),
    ],
)
def test_joined_separated_and_short_words_find_a_tool(ranking: Ranking, question: str, name: str) -> None:
    assert name in first(ranking, question)


@pytest.mark.parametrize("service", ["github", "gitlab", "jira", "linear", "zendesk", "trello", "slack"])
def test_twins_are_told_apart_by_the_service(ranking: Ranking, service: str) -> None:
    found = first(ranking, f"{service} issue")
    assert all(service in name for name in found)
    assert "create" in first(ranking, f"make a new issue in {service}")[0].casefold()
    assert service in first(ranking, f"make a new issue in {service}")[0]


def test_twins_of_all_services_are_found_without_a_service() -> None:
    specs = named("github_create_issue", "gitlab_create_issue", "linearCreateIssue", "jira_list_issues", "slack_send")
    assert {*names_of(Ranking(specs).best("create an issue", 3))} == {*names_of(specs[:3])}


def test_a_name_whose_words_are_all_in_the_question_comes_first() -> None:
    specs = named("page_create_template_link", "template_page_copy_create_link", "create_page", "create_page_link")
    assert names_of(Ranking(specs).best("please create a page for me", 2))[0] == "create_page"


def test_a_tool_that_has_all_words_comes_before_one_that_has_a_rare_one() -> None:
    specs = [tool("build_wall", "Builds."), tool("send_note", "Sends a note to a channel."), *named("a_b", "c_d")]
    assert names_of(Ranking(specs).best("send a note to the channel about the wall", 1)) == ["send_note"]


def test_plurals_ask_for_lists(ranking: Ranking) -> None:
    specs = named("jira_get_issue", "jira_list_issues", "jira_update_issue")
    assert names_of(Ranking(specs).best("jira issues", 1)) == ["jira_list_issues"]


def test_the_action_decides_within_a_service(ranking: Ranking) -> None:
    for action in ("create", "list", "update", "delete"):
        assert first(ranking, f"{action} an asana project")[0] == f"asana_{action}_project"


def test_descriptions_and_parameters_are_searched() -> None:
    specs = [
        tool("x1", "Does a thing. Mentions turtles later."),
        tool("x2", "Does a thing.", "turtleCount"),
        tool("x3", "Feeds turtles."),
        ToolSpec("x4", "", {"type": "object", "properties": {"kind": {"enum": ["turtle", "cat"]}}}),
        ToolSpec("x5", "", {"properties": {"a": {"items": {"properties": {"b": {"description": "A turtle."}}}}}}),
        tool("turtles"),
        tool("x6", "Nothing."),
    ]
    found = names_of(Ranking(specs).best("turtle", 10))
    assert found[:2] == ["turtles", "x3"]
    assert sorted(found[2:]) == ["x1", "x2", "x4", "x5"]


def test_only_tools_that_fit_are_found(ranking: Ranking) -> None:
    assert first(ranking, "photosynthesis of xylophones") == []
    assert first(ranking, "") == first(ranking, "?!") == first(ranking, "🎉") == []
    assert Ranking([]).best("anything", 5) == []
    assert Ranking([]).nearest("anything", 5) == []


def test_common_words_count_only_without_others(ranking: Ranking) -> None:
    assert first(ranking, "how do I use the tool for this") == []
    assert first(ranking, "please help me with the weather") == first(ranking, "weather")
    assert names_of(Ranking(named("how_to", "what_for")).best("how to", 5)) == ["how_to"]


def test_letters_of_other_languages_find_a_tool() -> None:
    specs = [
        tool("créer_ticket", "Crée un ticket."),
        tool("datei_lesen", "Liest eine Datei von der Festplatte und gibt ihre Größe aus."),
        tool("issues_create", "在仓库中创建一个新的问题"),
        tool("zadacha", "Создать новую задачу"),
        *many_tools(),
    ]
    ranking = Ranking(specs)
    for question, name in (
        ("CREER un ticket", "créer_ticket"),
        ("Groesse oder Größe der Datei", "datei_lesen"),
        ("创建问题", "issues_create"),
        ("создать задачу", "zadacha"),
    ):
        assert name in names_of(ranking.best(question, 3))


def test_equal_tools_stay_in_the_order_of_the_client() -> None:
    specs = [tool(f"tool{letter}", "Reads a book.") for letter in "zyxwv"]
    assert Ranking(specs).best("book", 3) == specs[:3]


def test_the_same_question_has_the_same_answer(ranking: Ranking) -> None:
    questions = ["create issue", "gihtub pull requst", "tell the team", "list webhooks of jira"]
    expected = [first(ranking, question, 20) for question in questions]
    again = Ranking(TOOLS)
    assert [first(again, question, 20) for question in questions] == expected
    with ThreadPoolExecutor(4) as pool:
        fresh = Ranking(TOOLS)
        assert [*pool.map(lambda question: first(fresh, question, 20), questions * 5)] == expected * 5


def test_as_many_tools_are_found_as_are_asked_for(ranking: Ranking) -> None:
    assert [len(first(ranking, "issue", most)) for most in (0, 1, 7, 50)] == [0, 1, 7, 50]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("github_new_issue", "github_create_issue"),
        ("gihtub_crate_isue", "github_create_issue"),
        ("createGithubIssue", "github_create_issue"),
        ("github.createissue", "github_create_issue"),
        ("slack_create_webhook", "mcp__slack__create_webhook"),
        ("slack_send_message", "slack_post_message"),
        ("get_weather", "getWeather"),
        ("light_off", "lights_off"),
    ],
)
def test_the_nearest_names_have_the_one_that_was_meant(ranking: Ranking, name: str, meant: str) -> None:
    assert meant in ranking.nearest(name, 3)


def test_a_name_like_no_other_has_no_nearest(ranking: Ranking) -> None:
    assert ranking.nearest("xylophone", 5) == []
    assert ranking.nearest("", 5) == []


def test_short_names_are_compared_by_their_letters() -> None:
    assert Ranking(named("bash", "edit", "grep", "read")).nearest("bsh", 2) == ["bash"]


HOSTILE = {
    "a megabyte": "create github issue " * 50_000,
    "a long word": "x" * 5_000,
    "a long name": "create_" * 10_000,
    "mistyped words": " ".join(f"crqate{letter}issxe" for letter in "abcdefghijklmnopqrstuvwxyz" * 2),
    "random letters": " ".join("".join(random.Random(n).choices("abcdefghij", k=9)) for n in range(60)),
    "all known words": "create list get update delete issue comment project user label team report template " * 9,
    "one letter": "a " * 10_000,
    "broken text": "\ud800\udfff\x00" * 1_000,
}


@pytest.fixture(scope="module")
def large_ranking() -> Ranking:
    return Ranking(many_tools(copies=10, size=500))


@pytest.mark.parametrize("question", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_question_takes_little_time(large_ranking: Ranking, question: str) -> None:
    large_ranking.best("warm upp", 5)
    started = time.thread_time()
    large_ranking.best(question, 10)
    large_ranking.nearest(question, 5)
    assert time.thread_time() - started < 5


def test_hostile_tools_are_ranked_without_a_fault() -> None:
    deep: dict[str, object] = {"type": "string"}
    for _ in range(2_000):
        deep = {"type": "object", "properties": {"a": deep}, "items": deep}
    specs = [
        ToolSpec("", ""),
        ToolSpec("___", "\x00\n" * 10),
        ToolSpec("x" * 100_000, "y " * 100_000),
        ToolSpec("a", "b", {"properties": []}),
        ToolSpec("a", "b", {"properties": {"p": None, "q": {"enum": [1, None, "red"], "anyOf": {}, "items": [1]}}}),
        ToolSpec("deep", "c", deep),
        ToolSpec("wide", "d", {"properties": {f"p{number}": {"description": "e " * 99} for number in range(9_999)}}),
        ToolSpec("ünï", "\ud800"),
    ]
    ranking = Ranking(specs)
    assert names_of(ranking.best("deep", 5)) == ["deep"]
    assert names_of(ranking.best("red", 5)) == ["a"]
    assert ranking.nearest("depe", 1) == ["deep"]


def test_a_large_list_is_indexed_in_bounded_time_and_memory() -> None:
    specs = many_tools(copies=4, size=800)
    started = time.thread_time()
    ranking = Ranking(specs)
    assert time.thread_time() - started < 5
    assert 100_000 < ranking.size < 6_000_000
