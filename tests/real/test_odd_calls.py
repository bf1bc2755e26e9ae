"""Calls of tools that are not offered, and calls with invalid arguments."""

from __future__ import annotations

import json

import pytest

from tests.real.talk import ANSWER, CLOCK, WEATHER, Talk, ask_weather, calling, method_of, story_of, tool
from tests.real.world import Agent, World

pytestmark = pytest.mark.real


@pytest.mark.two_servers
def test_a_call_of_a_tool_that_is_not_offered_any_more_fails_inside_letta(world: World, agent: Agent) -> None:
    talk = Talk(agent, WEATHER)
    talk.say(ask_weather())
    talk.give("12 degrees")
    name = next(name for name in world.model.last_request().tools if name.startswith("weather"))
    for tools in ([CLOCK], None):
        reply = agent.ask(f"Again?\n!disobey\n{calling(name, city='Rome')}\n!next\n!say It is gone.", tools=tools)
        assert reply.calls == []
        if world.version.startswith("0.8."):
            assert reply.status == 502, "0.8 itself fails at a call of a tool that the agent has not"
            continue
        assert (reply.text, reply.finish_reason) == ("It is gone.", "stop")
        (failed,) = [line for line in story_of(agent, [WEATHER])[-2:] if line.startswith("result of weather")]
        assert "FAILED" in failed
        assert any(words in failed for words in ("Cannot call", "not found", "No function named"))
    assert agent.ask("bye").text == "You said: bye"
    assert agent.fingerprint() == talk.before


@pytest.mark.one_type
def test_arguments_that_are_not_json_do_not_break_the_agent(world: World, agent: Agent) -> None:
    talk = Talk(agent, WEATHER)
    reply = talk.send({"role": "user", "content": f'Weather?\n!raw weather* {{"city": "Os\n{ANSWER}'})
    if reply.error is None and reply.calls:
        assert isinstance(reply.calls[0][1], dict)
        assert talk.give("12 degrees").error is None
    world.model.take_refusals()
    assert agent.ask("bye").text == "You said: bye"
    assert agent.fingerprint() == talk.before


def test_arguments_of_wrong_types_reach_the_client_and_its_result_reaches_the_agent(agent: Agent) -> None:
    """The relay does not run a stub whose arguments Letta would take for code. It sends the result in a message."""
    talk = Talk(agent, tool("odd", number={"type": "number"}, count={"type": "integer"}))
    given = {"number": "__import__('os').getpid()", "count": None, "x-y": "1;2"}
    reply = talk.say(f"Go.\n{calling('odd*', **given)}")
    assert reply.calls[0][0] == "odd"
    assert reply.calls[0][1]["number"] == given["number"]
    assert talk.give("12 degrees", then="Well?\n!say Done.").text == "Done."
    (line,) = [line for line in talk.story() if "12 degrees" in line]
    if method_of(agent) == "relay":
        quoted = json.loads(line.removeprefix("user: "))
        assert (quoted["tool"], quoted["result"], quoted["status"]) == ("odd", "12 degrees", "success")
    else:
        assert line == "result of odd: 12 degrees"
    assert agent.ask("bye").text == "You said: bye"
    assert agent.fingerprint() == talk.before
