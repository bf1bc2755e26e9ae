"""What an earlier attempt has brought to the agent is not sent again, and its answer is not lost."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from bridge.config import Settings
from bridge.errors import LettaNotFound, RunBrokenOff
from bridge.interception.stored_messages import LOOK_BACK
from bridge.letta.gateway import Say
from bridge.turn import NewInput, RunStarted, Stopped, Text, ToolResult, Used, UserMessage
from tests.fakes import FakeGateway
from tests.interception.attempts import (
    TURN,
    Attempts,
    call_of,
    called,
    calls,
    sent,
    sent_results,
    texts,
    with_result,
)


@pytest.fixture
def attempts(letta: FakeGateway, settings: Settings) -> Attempts:
    return Attempts(letta, settings)


def test_a_message_that_did_not_arrive_is_sent_again(letta: FakeGateway, attempts: Attempts) -> None:
    attempts.lose(TURN)
    attempts.agent.messages.pop()
    letta.will_say("Hi")
    assert texts(attempts.repeat(TURN)) == ["Hi"]
    assert sent(letta) == ["Hello", "Hello"]


def test_a_message_that_a_failed_run_left_out_of_the_context_is_sent_again(
    letta: FakeGateway, attempts: Attempts
) -> None:
    """The older loops store each step at once, and put it into the context when the run has ended well."""
    agent = attempts.agent
    agent.agent = replace(agent.agent, type="memgpt_v2_agent")
    attempts.stores("user_message", "Before")()
    attempts.answers("Old.")()
    before = agent.agent.message_ids
    attempts.lose(TURN, attempts.stores("tool_call_message"), attempts.stores("tool_return_message", "found"))
    agent.agent = replace(agent.agent, message_ids=before)
    letta.will_say("Hi")
    assert texts(attempts.repeat(TURN)) == ["Hi"]
    assert sent(letta) == ["Hello", "Hello"]


def test_a_message_that_was_compacted_in_its_own_run_is_not_sent_again(letta: FakeGateway, attempts: Attempts) -> None:
    """letta_v1_agent stores a step and puts it into the context at once: a message that is not there was removed."""
    agent = attempts.agent
    system = agent.agent.message_ids
    attempts.lose(TURN, attempts.stores("tool_call_message"), attempts.stores("tool_return_message", "found"))
    summary = attempts.stores("summary_message", "Hello was said.")()
    agent.agent = replace(agent.agent, message_ids=(*system, summary.id))
    letta.will_say("Hi")
    assert texts(attempts.repeat(TURN)) == ["Hi"]
    assert sent(letta).count("Hello") == 1


def test_a_lost_answer_is_read_from_the_server(letta: FakeGateway, attempts: Attempts) -> None:
    attempts.lose(TURN, attempts.answers("Hi"), attempts.answers("there"))
    events = attempts.repeat(TURN)
    stored = attempts.agent.messages[-2:]
    assert events == [Text("Hi", stored[0].id), Text("there", stored[1].id), Stopped("end_turn")]
    assert len(letta.prompts) == 1


@pytest.mark.parametrize("agent_type", ["letta_v1_agent", "memgpt_v2_agent"])
def test_a_lost_turn_of_many_steps_is_not_run_again(letta: FakeGateway, attempts: Attempts, agent_type: str) -> None:
    attempts.agent.agent = replace(attempts.agent.agent, type=agent_type)
    own_steps = [attempts.stores("tool_call_message"), attempts.stores("tool_return_message", "noted")] * LOOK_BACK
    attempts.lose(TURN, *own_steps, attempts.answers("Hi"))
    assert texts(attempts.repeat(TURN)) == ["Hi"]
    assert sent(letta) == ["Hello"]


def test_the_answer_of_another_turn_is_not_given(letta: FakeGateway, attempts: Attempts) -> None:
    attempts.answers("Old.")()
    attempts.lose(TURN)
    letta.will_say("New.")
    assert texts(attempts.repeat(TURN)) == ["New."]


def test_an_agent_that_was_broken_off_goes_on_without_the_message_again(letta: FakeGateway, attempts: Attempts) -> None:
    attempts.lose(TURN, attempts.stores("tool_call_message"), attempts.stores("tool_return_message", "found"))
    letta.will_say("Hi")
    assert texts(attempts.repeat(TURN)) == ["Hi"]
    assert sent(letta).count("Hello") == 1


def test_a_lost_call_is_given_again(letta: FakeGateway, attempts: Attempts) -> None:
    attempts.lose(TURN, call_of("weather"))
    assert called(attempts.repeat(TURN)) == ["weather"]
    assert len(letta.prompts) == 1


def test_a_lost_call_is_given_again_if_text_came_before_it(attempts: Attempts) -> None:
    attempts.lose(TURN, attempts.answers("Let me look."), call_of("weather"))
    assert called(attempts.repeat(TURN)) == ["weather"]


def test_a_lost_answer_to_a_result_is_read_from_the_server(letta: FakeGateway, attempts: Attempts) -> None:
    calls(letta, "weather")
    turn = with_result(TURN, attempts.run(TURN), "sun")
    attempts.lose(turn, attempts.answers("Sunny."))
    assert texts(attempts.repeat(turn)) == ["Sunny."]
    assert len(sent_results(letta)) == 1


def test_a_result_that_the_server_has_clipped_is_recognised(letta: FakeGateway, attempts: Attempts) -> None:
    calls(letta, "weather")
    turn = replace(with_result(TURN, attempts.run(TURN), "sun" * 3000), id="")

    def clip() -> None:
        messages = attempts.agent.messages
        messages[-1] = replace(messages[-1], text="sun" * 2000 + "... [truncated 3000 chars]")

    attempts.lose(turn, clip, attempts.answers("Sunny."))
    assert texts(attempts.repeat(turn)) == ["Sunny."]
    assert len(letta.prompts) == 2


@pytest.mark.parametrize("agent_type", ["letta_v1_agent", "memgpt_v2_agent"])
def test_a_stale_result_beside_a_delivered_message_is_ignored(attempts: Attempts, agent_type: str) -> None:
    attempts.agent.agent = replace(attempts.agent.agent, type=agent_type)
    result = ToolResult("message-00000000-0000-0000-0000-000000000000/0", "sun")
    turn = replace(TURN, new_input=NewInput((UserMessage("Hello"),), (result,)))
    attempts.lose(turn, attempts.answers("Hi"))
    assert texts(attempts.repeat(turn)) == ["Hi"]


LOST = RunBrokenOff("lost")


def test_the_answer_of_a_run_that_letta_lost_is_read_from_the_server(letta: FakeGateway, attempts: Attempts) -> None:
    letta.will(attempts.answers("Hi"), LOST)
    assert texts(attempts.run(TURN)) == ["Hi"]
    assert sent(letta) == ["Hello"]


def test_a_call_of_a_run_that_letta_lost_is_read_from_the_server(letta: FakeGateway, attempts: Attempts) -> None:
    call = call_of("weather")
    letta.will(lambda: attempts.agent.record(call), LOST)
    assert called(attempts.run(TURN)) == ["weather"]
    assert sent(letta) == ["Hello"]


def test_a_result_whose_run_letta_lost_is_not_given_again(letta: FakeGateway, attempts: Attempts) -> None:
    calls(letta, "weather")
    turn = with_result(TURN, attempts.run(TURN), "12 degrees")
    letta.will(attempts.answers("It is mild."), LOST)
    assert texts(attempts.run(turn)) == ["It is mild."]
    assert len(sent_results(letta)) == 1


def test_a_message_that_letta_did_not_keep_is_sent_again_at_once(letta: FakeGateway, attempts: Attempts) -> None:
    letta.will(lambda: attempts.agent.messages.pop(), LOST)
    letta.will_say("Hi")
    assert texts(attempts.run(TURN)) == ["Hi"]
    assert sent(letta) == ["Hello", "Hello"]


def test_a_run_that_letta_loses_twice_is_an_error_and_its_answer_is_for_the_repeat(
    letta: FakeGateway, attempts: Attempts
) -> None:
    letta.will(lambda: attempts.agent.messages.pop(), LOST)
    letta.will(attempts.answers("Hi"), LOST)
    with pytest.raises(RunBrokenOff):
        attempts.run(TURN)
    assert texts(attempts.repeat(TURN)) == ["Hi"]
    assert sent(letta) == ["Hello", "Hello"]


def test_a_run_that_letta_loses_in_the_middle_is_an_error_and_its_answer_is_for_the_repeat(
    letta: FakeGateway, attempts: Attempts
) -> None:
    letta.will(Text("Hi"), attempts.answers("Hi"), LOST)
    with pytest.raises(RunBrokenOff):
        attempts.run(TURN)
    assert texts(attempts.repeat(TURN)) == ["Hi"]
    assert len(letta.prompts) == 1


def test_an_agent_that_vanished_with_its_run_is_missing(letta: FakeGateway, attempts: Attempts) -> None:
    letta.will(lambda: letta.loses_agent(attempts.agent.agent.id), LOST)
    with pytest.raises(LettaNotFound):
        attempts.run(TURN)


def test_nothing_is_sent_again_if_the_messages_of_the_turn_cannot_be_recognised(
    letta: FakeGateway, attempts: Attempts
) -> None:
    letta.will(attempts.answers("Hi"), LOST)
    with pytest.raises(RunBrokenOff):
        attempts.run(replace(TURN, id=""))
    assert sent(letta) == ["Hello"]


def test_every_message_carries_the_id_of_its_turn(letta: FakeGateway, attempts: Attempts) -> None:
    attempts.run(replace(TURN, new_input=NewInput((UserMessage("Hello"), UserMessage("there"))), id="turn-7"))
    otids = [message.otid for message in letta.prompts[0].messages if isinstance(message, Say)]
    assert otids == ["turn-7-0", "turn-7-1"]


# --- a good end without a word ------------------------------------------------------------------------------------

SILENT = (RunStarted("run-1"), Used(682, 1), Stopped("end_turn"))


def test_a_message_that_letta_lost_in_a_run_with_a_good_end_is_sent_again(
    letta: FakeGateway, attempts: Attempts
) -> None:
    """Letta 0.16.1 did that when it got no connection to its database."""
    letta.will(attempts.agent.messages.pop, *SILENT)
    letta.will_say("Hi")
    assert texts(attempts.run(TURN)) == ["Hi"]
    assert sent(letta) == ["Hello", "Hello"]


@pytest.mark.parametrize("reason", ["end_turn", "cancelled", "max_steps"])
def test_an_agent_that_says_nothing_is_not_asked_again(letta: FakeGateway, attempts: Attempts, reason: str) -> None:
    lost = attempts.agent.messages.pop if reason != "end_turn" else lambda: None
    letta.will(lost, RunStarted("run-1"), Used(682, 1), Stopped(reason))
    events = attempts.run(TURN)
    assert (texts(events), sent(letta)) == ([], ["Hello"])
    assert [event for event in events if isinstance(event, (Used, Stopped))][-1] == Stopped(reason)


def test_an_answer_costs_no_look_at_what_is_stored(letta: FakeGateway, attempts: Attempts) -> None:
    letta.will_say("Hi")
    letta.calls.clear()
    attempts.run(TURN)
    looked = letta.calls.count("newest_messages")
    letta.will(*SILENT)
    letta.calls.clear()
    attempts.run(replace(TURN, id="another"))
    assert letta.calls.count("newest_messages") == looked + 1


def test_a_result_that_letta_lost_in_a_run_with_a_good_end_is_sent_again(
    letta: FakeGateway, attempts: Attempts
) -> None:
    calls(letta, "weather")
    events = attempts.run(TURN)
    held = attempts.agent.held
    assert held is not None

    def lose() -> None:
        attempts.agent.messages.pop()
        attempts.agent.held = held
        attempts.agent.agent = replace(attempts.agent.agent, message_ids=attempts.agent.agent.message_ids[:-1])

    letta.will(lose, *SILENT)
    letta.will_say("12 degrees")
    assert texts(attempts.run(with_result(TURN, events, "12"))) == ["12 degrees"]
    assert len(sent_results(letta)) == 2


def test_nothing_is_sent_again_for_a_client_that_left(letta: FakeGateway, attempts: Attempts) -> None:
    gone = threading.Event()
    letta.will(attempts.agent.messages.pop, gone.set, *SILENT)
    events = [*attempts.conversation.events(TURN, gone)]
    assert (texts(events), sent(letta)) == ([], ["Hello"])
