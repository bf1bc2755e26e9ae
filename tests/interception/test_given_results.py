"""A result whose call does not wait any more reaches the agent once, beside a message, and does nothing alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from bridge.config import read_settings
from bridge.errors import InvalidRequest, LettaUnreachable
from bridge.interception.method import GO_ON, NO_RESULT, OLD_NO_RESULT
from bridge.interception.prompt import nonce_for_turn
from bridge.interception.stored_messages import LOOK_BACK
from bridge.letta.capabilities import ServerFeatures
from bridge.letta.gateway import Results, Say
from bridge.turn import AgentReturn, NewInput, Stopped, Text, ToolResult, Turn, TurnEvent, UserMessage
from tests.fake_agent import new_id
from tests.fakes import FEATURES, FakeGateway
from tests.interception.attempts import CUT, TURN, Attempts, call_of, texts, with_result

NEWER = replace(FEATURES, version=(0, 16, 8), message_rewrite=False, client_tools=True)
UNGATED = replace(FEATURES, version=(0, 8, 17), approvals=False, tool_returns=False)
# A method, and a server and an agent with it.
WAYS: dict[str, tuple[ServerFeatures, str]] = {
    "native": (NEWER, "letta_v1_agent"),
    "approval": (FEATURES, "letta_v1_agent"),
    "relay": (NEWER, "memgpt_v2_agent"),
    "rewrite": (FEATURES, "memgpt_v2_agent"),
    "rewrite ungated": (UNGATED, "memgpt_v2_agent"),
    "message": (FEATURES, "memgpt_v2_agent"),
    "message ungated": (UNGATED, "memgpt_v2_agent"),
    "prompt": (FEATURES, "memgpt_v2_agent"),
    "prompt v1": (FEATURES, "letta_v1_agent"),
}


@dataclass
class Agent:
    """An agent of the in-memory Letta whose calls are caught by one method."""

    letta: FakeGateway
    attempts: Attempts
    method: str

    def call(self, turn: Turn) -> Turn:
        """Runs the turn, which ends with a call, and returns the turn that brings the call's result."""
        if self.method == "prompt":
            nonce = nonce_for_turn(turn.id)
            text = f'<call-{nonce}>{{"name": "weather"}}</call-{nonce}>'
            self.letta.will(Text(text, new_id("message")), Stopped("end_turn"))
        elif self.letta.features().approvals:
            self.letta.will(call_of("weather"), Stopped("requires_approval"))
        else:
            call = replace(call_of("weather"), held=False)
            self.letta.will(call, AgentReturn(new_id("message"), call.call_id, NO_RESULT), Stopped("tool_rule"))
        return with_result(turn, self.attempts.run(turn), "sun")

    def say(self, turn: Turn, *pieces: str) -> list[TurnEvent]:
        self.letta.will_say(*pieces)
        return self.attempts.run(turn)

    def refuses(self, turn: Turn) -> None:
        """The turn is refused, and changes nothing."""
        before = self.state()
        with pytest.raises(InvalidRequest) as refused:
            self.attempts.run(turn)
        assert refused.value.code == "no_pending_call"
        assert turn.new_input.results[0].call_id in refused.value.message
        assert self.state() == before

    def state(self) -> Any:
        kept = self.attempts.agent
        return kept.agent, list(kept.messages), kept.held, dict(kept.variables), len(self.letta.prompts)

    def was_sent(self) -> list[str]:
        """Returns what the last run was started with: texts, and only the results of quotes."""
        said = [one.text for one in self.letta.prompts[-1].messages if isinstance(one, Say) and one.role == "user"]
        return [f"quote: {json.loads(text)['result']}" if '"tool_result"' in text else text for text in said]

    def results(self) -> list[str]:
        """Returns what the agent has got as the results of its calls, as returns or in quotes."""
        quotes = [f"quote: {one.text}" for one in self.attempts.agent.messages if '"tool_result"' in one.text]
        rows = [one.text for one in self.attempts.agent.messages if one.kind == "tool_return_message"]
        return [text for text in (*rows, *quotes) if "sun" in text]


@pytest.fixture(params=WAYS)
def agent(environment: dict[str, str], request: pytest.FixtureRequest) -> Agent:
    features, agent_type = WAYS[request.param]
    letta = FakeGateway(features)
    letta.has_agent("Ada", agent_type)
    method = request.param.split()[0]
    return Agent(letta, Attempts(letta, read_settings({**environment, "BRIDGE_METHOD": method})), method)


def turn_with(number: int, *said: str, results: Sequence[ToolResult] = ()) -> Turn:
    return replace(TURN, new_input=NewInput(tuple(map(UserMessage, said)), tuple(results)), id=f"turn-of-{number}")


def late(agent: Agent) -> ToolResult:
    """Returns the result of a call that was given up: the agent has answered another message since."""
    (result,) = agent.call(TURN).new_input.results
    agent.say(turn_with(1, "Never mind."), "All right.")
    return result


def test_a_late_result_is_quoted_before_the_message_beside_it(agent: Agent) -> None:
    assert texts(agent.say(turn_with(2, "Well?", results=[late(agent)]), "Well.")) == ["Well."]
    assert agent.was_sent() == ["quote: sun", "Well?"]


@pytest.mark.parametrize("offered", [True, False])
def test_a_quote_names_the_tool_if_the_client_does_not(agent: Agent, offered: bool) -> None:
    """Not all APIs send the call with its result. Of a call in a text, the agent has no name."""
    result = replace(late(agent), name="", arguments="")
    turn = turn_with(2, "Well?", results=[result])
    agent.say(turn if offered else replace(turn, tools=()), "Well.")
    quote = json.loads(agent.letta.prompts[-1].texts[-2])
    assert (quote["tool"], quote["result"]) == ("" if agent.method == "prompt" else "weather", "sun")


def test_a_result_that_the_agent_had_many_steps_ago_is_not_quoted_beside_a_message(agent: Agent) -> None:
    turn = agent.call(TURN)
    agent.say(turn, "Sunny.")
    for _ in range(LOOK_BACK):
        agent.attempts.answers("On it.")()
    agent.say(turn_with(2, "Well?", results=turn.new_input.results), "Well.")
    assert agent.was_sent() == ["Well?"]


def test_a_late_result_alone_is_refused_and_changes_nothing(agent: Agent) -> None:
    agent.refuses(turn_with(2, results=[late(agent)]))


def test_a_late_result_is_refused_also_beside_one_that_the_agent_has_got(agent: Agent) -> None:
    result = late(agent)
    turn = agent.call(turn_with(2, "Weather?"))
    agent.say(turn, "Sunny.")
    agent.refuses(turn_with(3, results=[result, *turn.new_input.results]))
    agent.say(turn_with(4, "Well?", results=[result, *turn.new_input.results]), "Well.")
    assert agent.was_sent() == ["quote: sun", "Well?"]


def test_a_late_result_does_not_close_the_call_of_another_conversation(agent: Agent) -> None:
    result = late(agent)
    other = agent.call(turn_with(2, "Weather?"))
    agent.refuses(turn_with(3, results=[result]))
    assert texts(agent.say(replace(other, id="turn-4"), "Sunny.")) == ["Sunny."]
    assert len(agent.results()) == 1


def test_a_late_result_is_quoted_once_in_all_attempts_at_a_turn(agent: Agent) -> None:
    turn = turn_with(2, "Well?", results=[late(agent)])
    agent.letta.will(CUT)
    with pytest.raises(LettaUnreachable):
        agent.attempts.run(turn)
    agent.letta.will_say("Well.")
    assert texts(agent.attempts.repeat(turn)) == ["Well."]
    assert len(agent.results()) == 1


def test_a_late_result_that_was_quoted_is_not_quoted_again(agent: Agent) -> None:
    result = late(agent)
    agent.say(turn_with(2, "Well?", results=[result]), "Well.")
    agent.say(turn_with(3, "And now?", results=[result]), "Nothing.")
    assert agent.was_sent() == ["And now?"]


def test_equal_late_results_of_two_calls_are_quoted_both(agent: Agent) -> None:
    for number in (2, 3):
        agent.say(turn_with(number, "Well?", results=[late(agent)]), "Well.")
        assert agent.was_sent() == ["quote: sun", "Well?"]


def test_a_result_that_the_agent_has_got_is_not_quoted(agent: Agent) -> None:
    turn = agent.call(TURN)
    agent.say(turn, "Sunny.")
    agent.say(turn_with(2, "And now?", results=turn.new_input.results), "Nothing.")
    assert agent.was_sent() == ["And now?"]
    assert len(agent.results()) == 1


def test_a_second_result_of_an_answered_call_is_ignored_beside_a_message_and_refused_alone(agent: Agent) -> None:
    turn = agent.call(TURN)
    agent.say(turn, "Sunny.")
    second = replace(turn.new_input.results[0], text="rain")
    agent.say(turn_with(2, "And now?", results=[second]), "Nothing.")
    assert agent.was_sent() == ["And now?"]
    agent.refuses(turn_with(3, results=[second]))


def test_a_result_that_comes_again_after_other_turns_does_not_make_the_agent_speak(agent: Agent) -> None:
    turn = agent.call(TURN)
    agent.letta.will(Stopped("end_turn"))
    agent.attempts.run(turn)
    agent.say(turn_with(1, "Never mind."), "All right.")
    agent.refuses(replace(turn, id="turn-2"))


def test_a_result_that_comes_again_after_its_reply_gets_the_reply(agent: Agent) -> None:
    turn = agent.call(TURN)
    agent.say(turn, "Sunny.")
    agent.say(turn_with(1, "Thanks."), "Fine.")
    before = agent.state()
    assert texts(agent.attempts.run(replace(turn, id="turn-2"))) == ["Sunny."]
    assert agent.state() == before


def test_a_late_result_beside_one_that_is_waited_for_is_quoted(agent: Agent) -> None:
    result = late(agent)
    turn = agent.call(turn_with(2, "Weather?"))
    both = NewInput((), (replace(result, text="late sun"), *turn.new_input.results))
    assert texts(agent.say(replace(turn, new_input=both), "Sunny.")) == ["Sunny."]
    assert "quote: late sun" in agent.was_sent()
    assert len(agent.results()) == 2


def test_a_call_that_the_agent_does_not_know_is_treated_as_given_up(agent: Agent) -> None:
    unknown = ToolResult(f"{new_id('message')}/0", "sun", name="weather")
    agent.say(turn_with(1, "Hello"), "Hi.")
    agent.refuses(turn_with(2, results=[unknown]))
    agent.say(turn_with(3, "Well?", results=[unknown]), "Well.")
    assert agent.was_sent() == ["quote: sun", "Well?"]


def test_a_result_for_an_id_that_the_bridge_did_not_make_is_ignored_beside_a_message(agent: Agent) -> None:
    foreign = ToolResult("call_1", "sun")
    agent.say(turn_with(1, "Hello"), "Hi.")
    agent.refuses(turn_with(2, results=[foreign]))
    agent.say(turn_with(3, "Well?", results=[foreign]), "Well.")
    assert agent.was_sent() == ["Well?"]


def test_a_result_and_a_message_for_a_waiting_call_reach_the_agent_once(agent: Agent) -> None:
    turn = agent.call(TURN)
    with_message = replace(turn.new_input, user_messages=(UserMessage("By the way."),))
    assert texts(agent.say(replace(turn, new_input=with_message), "Sunny.")) == ["Sunny."]
    assert agent.was_sent()[-1] == "By the way."
    assert len(agent.results()) == 1


def test_an_ordinary_result_costs_no_look_at_the_stored_messages_where_the_context_shows_its_call(
    agent: Agent,
) -> None:
    turn = agent.call(TURN)
    agent.letta.calls.clear()
    agent.say(turn, "Sunny.")
    needs_request = agent.method in ("native", "approval", "relay")
    assert agent.letta.calls.count("newest_messages") == (1 if needs_request else 0)


@pytest.mark.parametrize("agent", ["rewrite", "rewrite ungated"], indirect=True)
@pytest.mark.parametrize(
    ("kind", "text"), [("user_message", '{"type": "heartbeat"}'), ("system_message", GO_ON)], ids=["heartbeat", "nudge"]
)
@pytest.mark.parametrize("provisional", [NO_RESULT, OLD_NO_RESULT], ids=["new words", "old words"])
def test_a_call_waits_while_only_messages_that_make_the_agent_go_on_follow(
    agent: Agent, kind: str, text: str, provisional: str
) -> None:
    turn = agent.call(TURN)
    agent.attempts.agent.rewrite(agent.attempts.agent.messages[-1].id, provisional)
    agent.attempts.stores(kind, text)()
    assert texts(agent.say(turn, "Sunny.")) == ["Sunny."]
    assert agent.results() == ["sun"]


@pytest.mark.parametrize("agent", ["native", "approval"], indirect=True)
def test_a_call_that_is_given_up_is_not_shown_as_a_failure(agent: Agent) -> None:
    agent.call(TURN)
    agent.say(turn_with(1, "Never mind."), "All right.")
    (closed,) = [one for one in agent.letta.prompts[-1].messages if isinstance(one, Results)]
    assert [(one.text, one.ok) for one in closed.results] == [(NO_RESULT, True)]


@pytest.mark.parametrize("agent", ["prompt", "prompt v1"], indirect=True)
def test_a_call_in_text_waits_while_the_agent_goes_on_by_itself(agent: Agent) -> None:
    turn = agent.call(TURN)
    for kind in ("tool_call_message", "tool_return_message", "assistant_message"):
        agent.attempts.stores(kind, "Found.")()
    assert texts(agent.say(turn, "Sunny.")) == ["Sunny."]
    assert agent.was_sent() == ["quote: sun"]
