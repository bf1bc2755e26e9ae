"""Nobody waits for a tool result that never comes, and whoever waits for one that may come is told so."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from testbed.service import Service
from tests.log_lines import turn_lines
from tests.real.talk import ANSWER, CLOCK, OSLO, WEATHER, Talk, ask_weather, calling, given_up, nudge, story_of, tool
from tests.real.world import Agent, Reply, World
from tests.sse_checker import Json
from tests.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.strict]

READ = tool("read_file", path={"type": "string"})
END = tool("attempt_completion", result={"type": "string"})
SUBMIT = tool("submit_and_exit", summary={"type": "string"})
FORCED = {"type": "function", "function": {"name": "weather"}}
PASSWORD = "the operator's password"
OTHERS_RESULT = "another client's tool result"


def bridge_that_waits(world: World, factory: pytest.TempPathFactory, seconds: str) -> Iterator[Service]:
    settings = {"BRIDGE_TOOL_WAIT": seconds, "BRIDGE_ADMIN_PASSWORD": PASSWORD}
    with world.start_bridge(BRIDGE_DATA_DIR=str(factory.mktemp("data")), **settings) as bridge:
        yield bridge


@pytest.fixture(scope="module")
def bridge(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A bridge on which a wait for a result lasts longer than a test may."""
    yield from bridge_that_waits(world, tmp_path_factory, "55")


@pytest.fixture(scope="module")
def hasty(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A bridge on which a wait for a result is short."""
    yield from bridge_that_waits(world, tmp_path_factory, "1")


def log_line(agent: Agent, reply: Reply) -> Json:
    """Returns the log line of the turn that the reply ended."""

    (line,) = until(
        lambda: [one for one in turn_lines(agent.world.log) if one["request_id"] == reply.headers["X-Request-Id"]]
    )
    return line


def timelines(agent: Agent, bridge: Service) -> str:
    """Returns the agent's page for the operator, also with turns that run."""
    page = requests.get(f"{bridge.url}/admin/agents/{agent.id}.json", auth=("x", PASSWORD), timeout=60)
    assert page.status_code == 200, page.text
    return page.text


def check_that_it_did_not_wait(agent: Agent, reply: Reply) -> None:
    """A sweep of unused tools may hold up the turn for a moment. Only the wait for a result counts here."""
    assert OTHERS_RESULT not in log_line(agent, reply)["waited_for"]
    assert reply.streamed is None or reply.streamed.comments == ()


@pytest.mark.two_servers
@pytest.mark.parametrize("choice", [FORCED, "required"], ids=["named", "required"])
def test_a_forced_call_holds_up_no_other_conversation(
    agent: Agent, bridge: Service, stream: bool, choice: Json | str
) -> None:
    forced = Talk(agent, WEATHER, bridge=bridge, stream=stream, tool_choice=choice)
    assert forced.say(ask_weather()).calls == [("weather", {"city": "Oslo"})]
    reply = Talk(agent, CLOCK, bridge=bridge, stream=stream).say("Hello\n!say Hello.")
    assert reply.text == "Hello."
    check_that_it_did_not_wait(agent, reply)


@pytest.mark.parametrize("words", ["and nothing else", "with a result after all"])
@pytest.mark.two_servers
def test_a_conversation_with_a_forced_call_may_go_on(agent: Agent, bridge: Service, words: str) -> None:
    talk = Talk(agent, WEATHER, bridge=bridge)
    talk.say(ask_weather(), tool_choice=FORCED)
    if words == "and nothing else":
        reply = talk.say("Thanks.\n!say Welcome.")
        assert reply.text == "Welcome."
        assert talk.story() == ["user: Weather?", *given_up(agent), "user: Thanks."]
    else:
        reply = talk.give("12 degrees")
        assert reply.text == "12 degrees"
        assert talk.story() == ["user: Weather?", OSLO, "result of weather: 12 degrees", *nudge(agent)]
    check_that_it_did_not_wait(agent, reply)


@pytest.mark.one_server
def test_twenty_schemas_of_structured_output_in_turn_wait_for_nothing(agent: Agent, bridge: Service) -> None:
    replies = []
    for number in range(20):
        name = f"Answer{number}"
        schema = tool(name, "The form of the answer.", value={"type": "integer"})
        text = f"Number {number}?\n{calling(f'{name}*', value=number)}\n{ANSWER}"
        choice = {"type": "function", "function": {"name": name}}
        replies.append(
            agent.ask(text, tools=[schema], tool_choice=choice, stream=number % 2 == 0, bridge=bridge, temperature=0)
        )
        assert replies[-1].calls == [(name, {"value": number})]
    for reply in replies:
        check_that_it_did_not_wait(agent, reply)


@pytest.mark.two_servers
def test_a_call_that_ends_a_task_holds_up_no_other_conversation(agent: Agent, bridge: Service, stream: bool) -> None:
    reply = agent.ask(calling("attempt_completion*", result="mine"), tools=[READ, END], stream=stream, bridge=bridge)
    assert reply.calls == [("attempt_completion", {"result": "mine"})]
    reply = agent.ask("Hello\n!say Hello.", tools=[CLOCK], stream=stream, bridge=bridge)
    assert reply.text == "Hello."
    check_that_it_did_not_wait(agent, reply)


@pytest.mark.two_servers
def test_a_conversation_that_moves_on_gives_its_call_up_at_once(agent: Agent, bridge: Service, stream: bool) -> None:
    talk = Talk(agent, WEATHER, bridge=bridge, stream=stream)
    talk.say(ask_weather())
    reply = talk.say("Never mind.\n!say All right.", tools=[CLOCK])
    assert reply.text == "All right."
    check_that_it_did_not_wait(agent, reply)
    assert story_of(agent, [WEATHER]) == ["user: Weather?", *given_up(agent), "user: Never mind."]


@pytest.mark.two_servers
def test_a_conversation_that_drops_its_call_gives_it_up_at_once(agent: Agent, bridge: Service) -> None:
    talk = Talk(agent, WEATHER, bridge=bridge)
    talk.say(ask_weather())
    del talk.messages[1:]
    reply = talk.say("Never mind.\n!say All right.")
    assert reply.text == "All right."
    check_that_it_did_not_wait(agent, reply)


@pytest.mark.two_servers
@pytest.mark.parametrize("opening", ["Hello\n!say Hello.", ask_weather()], ids=["other words", "the same words"])
def test_another_conversation_with_the_same_tools_waits_and_is_told(
    agent: Agent, hasty: Service, stream: bool, opening: str
) -> None:
    Talk(agent, WEATHER, bridge=hasty, stream=stream).say(ask_weather())
    reply = Talk(agent, WEATHER, bridge=hasty, stream=stream).say(opening)
    line = log_line(agent, reply)
    assert line["waited_for"] == OTHERS_RESULT
    assert line["waited_ms"] >= line["bridge_ms"]
    assert reply.streamed is None or reply.streamed.comments == (f"waiting for {OTHERS_RESULT}",)


@pytest.mark.two_servers
def test_another_conversation_is_answered_when_the_result_has_come(agent: Agent, bridge: Service, stream: bool) -> None:
    talk = Talk(agent, WEATHER, bridge=bridge, stream=stream)
    talk.say(ask_weather())
    with ThreadPoolExecutor() as pool:
        other = pool.submit(Talk(agent, WEATHER, bridge=bridge, stream=stream).say, "Hello\n!say Hello.")
        until(lambda: f"waiting for {OTHERS_RESULT}" in timelines(agent, bridge))
        assert talk.give("12 degrees").text == "12 degrees"
        reply = other.result()
    assert (reply.text, log_line(agent, reply)["waited_for"]) == ("Hello.", OTHERS_RESULT)
    heard = [line for line in talk.story() if line.startswith(("user: ", "result of "))]
    assert heard == ["user: Weather?", "result of weather: 12 degrees", "user: Hello"]


# --- receipts ---------------------------------------------------------------------------------------------


@pytest.mark.two_servers
@pytest.mark.parametrize(
    ("end", "receipt"),
    [
        (SUBMIT, "Submission recorded (verified): All done."),
        (END, "Task was interrupted before this tool call could be completed."),
    ],
    ids=["submit_and_exit", "attempt_completion"],
)
def test_a_receipt_never_reaches_the_agent(
    agent: Agent, bridge: Service, stream: bool, end: Json, receipt: str
) -> None:
    talk = Talk(agent, READ, end, bridge=bridge, stream=stream)
    assert talk.say("Do it.\n!say All done.").calls
    before = agent.state()["message_ids"]
    assert talk.give(receipt).text == "Done."
    assert agent.state()["message_ids"] == before
    del talk.messages[-1]
    assert talk.say("And now?\n!say Nothing.").calls
    assert talk.story() == ["user: Do it.", "assistant: All done.", "user: And now?"]


@pytest.mark.two_servers
def test_what_a_person_writes_about_the_end_reaches_the_agent(agent: Agent, bridge: Service, stream: bool) -> None:
    talk = Talk(agent, READ, END, bridge=bridge, stream=stream)
    talk.say("Do it.\n!say All done.")
    feedback = "The user has provided feedback on the results.\n<feedback>\nNot yet.\n</feedback>"
    assert talk.give(feedback, then="!say Now it is.").calls == [("attempt_completion", {"result": "Now it is."})]
    assert any("Not yet." in line for line in agent.story())
