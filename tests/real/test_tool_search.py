"""An agent of a client with thousands of tools finds and calls them, on real servers; its model shows how."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from testbed.versions import V1_AGENT
from tests.real.talk import ANSWER, Talk
from tests.real.toolsets import offered
from tests.real.world import Agent, Api, World
from tests.sse_checker import Json

pytestmark = [pytest.mark.real, pytest.mark.strict]

CASES = Path(__file__).parent.parent / "cases" / "tool_search" / "tools.jsonl"
TOOLS: list[Json] = [
    {"type": "function", "function": json.loads(line)} for line in CASES.read_text(encoding="utf-8").splitlines()
]
TITLE = {"owner": "ada", "repo": "notes", "title": "Crash"}
SEARCH, DESCRIBE, CALL = "search_tools*", "describe_tool*", "call_tool*"
MOST_OFFERED = 40


def call(tool: str, **arguments: Any) -> str:
    """Returns the line of a script that makes the model call a tool."""
    return f"!call {tool} {json.dumps(arguments)}"


def create_issue(arguments: Any) -> str:
    return call(CALL, name="github_create_issue", arguments=arguments)


def written(world: World, value: Json) -> Any:
    """Returns arguments in the form that the model's schema asks for: an object, or its JSON text."""
    (shown,) = [one for name, one in world.model.last_request().tools.items() if name.startswith("call_tool")]
    return json.dumps(value) if shown.properties["arguments"].get("type") == "string" else value


@pytest.fixture
def form(world: World, agent: Agent) -> Any:
    """The arguments of a call as this server's model writes them."""
    agent.ask("!say ok", tools=TOOLS)
    return written(world, TITLE)


@pytest.mark.one_type
def test_one_of_two_thousand_tools_is_found_described_called_and_then_there(
    world: World, agent: Agent, stream: bool, form: Any
) -> None:
    talk = Talk(agent, *TOOLS, stream=stream)
    talk.before = agent.fingerprint()
    reply = talk.say(
        f"Report it.\n{call(SEARCH, words='create github issue')}\n!next\n"
        f"{call(DESCRIBE, name='github_create_issue')}\n!next\n{create_issue(form)}\n{ANSWER}"
    )
    assert reply.calls == [("github_create_issue", TITLE)]
    assert reply.finish_reason == "tool_calls"
    assert len(offered(world)) <= MOST_OFFERED
    assert talk.give("Issue 7.").text == "Issue 7."
    asked = "\n".join(agent.story())
    assert "github_create_issue: " in asked, "the search's answer is the return of the call"
    assert '"title"' in asked
    assert asked.count("Issue 7.") == 1
    assert "denied" not in asked
    assert not world.model.refusals
    again = talk.say(f"Another.\n{call('github_create_issue*', **TITLE)}\n{ANSWER}")
    assert again.calls == [("github_create_issue", TITLE)]
    assert talk.give("Issue 8.").text == "Issue 8."
    assert len(offered(world)) <= MOST_OFFERED
    agent.ask("bye")
    assert not [name for name in agent.fingerprint()["tools"] if "tool" in name and "search" in name]


@pytest.mark.two_servers
def test_a_wrong_name_and_wrong_arguments_are_told_to_the_model(world: World, agent: Agent, form: Any) -> None:
    talk = Talk(agent, *TOOLS)
    wrong = written(world, {"repo": "notes"})
    script = [call(CALL, name="github_create_isue", arguments=form), create_issue(wrong), create_issue(form)]
    reply = talk.say("Report it.\n" + "\n!next\n".join(script) + f"\n{ANSWER}")
    assert reply.calls == [("github_create_issue", TITLE)]
    shown = "\n".join(agent.story())
    assert "github_create_issue" in shown
    assert "do not fit github_create_issue" in shown
    assert talk.give("Issue 7.").text == "Issue 7."


@pytest.mark.two_servers
def test_a_call_that_is_given_up_and_one_that_is_repeated(agent: Agent, form: Any) -> None:
    talk = Talk(agent, *TOOLS)
    script = f"Report it.\n{call(SEARCH, words='github issue')}\n!next\n{create_issue(form)}\n{ANSWER}"
    first = talk.say(script)
    talk.messages.pop()
    again = talk.agent.ask(messages=talk.messages, tools=TOOLS)
    assert again.calls == first.calls
    assert talk.agent.ask("Never mind.\n!say ok", tools=TOOLS).text == "ok"
    talk = Talk(agent, *TOOLS)
    assert talk.say(script.replace("Report", "Report again")).calls == first.calls
    assert talk.give("Issue 9.").text == "Issue 9."


def test_a_search_beside_a_clients_call_is_answered_with_the_clients_result(
    world: World, agent: Agent, form: Any
) -> None:
    """Agents of older types make one call at a time, so only the first of them: the search."""
    talk = Talk(agent, *TOOLS)
    reply = talk.say(f"Both.\n{call(SEARCH, words='gitlab issue')}\n{create_issue(form)}\n{ANSWER}")
    if agent.type == V1_AGENT:
        assert reply.calls == [("github_create_issue", TITLE)]
        assert "Issue 7." in talk.give("Issue 7.").text
    assert "gitlab_create_issue" in "\n".join(agent.story())
    assert not world.model.refusals


@pytest.mark.two_servers
@pytest.mark.parametrize("api", ["responses", "letta"])
def test_the_search_works_through_the_other_apis(world: World, agent: Agent, api: Api, form: Any) -> None:
    talk = Talk(replace(agent, api=api), *TOOLS)
    reply = talk.say(f"Report it.\n{call(SEARCH, words='github issue')}\n!next\n{create_issue(form)}\n{ANSWER}")
    assert reply.calls == [("github_create_issue", TITLE)]
    assert talk.give("Issue 7.").text == "Issue 7."
    assert len(offered(world)) <= MOST_OFFERED
