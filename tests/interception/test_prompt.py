"""Tools that a message describes, and calls that are read from the agent's text."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bridge.config import read_settings
from bridge.interception.prompt import nonce_for_turn
from bridge.turn import Stopped, Text, ToolCall
from tests.fake_agent import new_id
from tests.fakes import FakeGateway
from tests.interception.attempts import TURN, Attempts, called, sent, texts, with_result


@pytest.fixture
def attempts(letta: FakeGateway, environment: dict[str, str]) -> Attempts:
    return Attempts(letta, read_settings({**environment, "BRIDGE_METHOD": "prompt"}))


def call_text() -> str:
    """The text by which the agent calls a tool in the first turn."""
    nonce = nonce_for_turn(TURN.id)
    return f'<call-{nonce}>{{"name": "weather"}}</call-{nonce}>'


def context(attempts: Attempts) -> list[str]:
    stored = {message.id: message.text for message in attempts.agent.messages}
    return [stored[message_id] for message_id in attempts.agent.agent.message_ids if stored[message_id]]


@pytest.mark.parametrize(("parallel", "expected"), [(True, ["weather", "weather"]), (False, ["weather"])])
def test_a_client_that_takes_one_call_at_a_time_gets_one(
    letta: FakeGateway, attempts: Attempts, parallel: bool, expected: list[str]
) -> None:
    letta.will(Text(f"{call_text()}\n{call_text()}"), Stopped("end_turn"))
    assert called(attempts.run(replace(TURN, parallel_tool_calls=parallel))) == expected


def test_a_call_in_a_second_message_is_at_the_beginning_of_a_line(letta: FakeGateway, attempts: Attempts) -> None:
    letta.will(Text("Let me ", "m1"), Text("look.", "m1"), Text(call_text(), "m2"), Stopped("end_turn"))
    events = attempts.run(TURN)
    assert called(events) == ["weather"]
    assert "".join(texts(events)) == "Let me look.\n\n"
    assert {event.item_id for event in events if isinstance(event, Text)} == {""}


@pytest.mark.parametrize("kind", ["tools", "no tools", "a result"])
@pytest.mark.parametrize("answer", ["", "Sunny."], ids=["no answer yet", "an answer"])
def test_delivered_messages_are_not_sent_again(letta: FakeGateway, attempts: Attempts, kind: str, answer: str) -> None:
    turn = replace(TURN, tools=()) if kind == "no tools" else TURN
    if kind == "a result":
        letta.will(Text(call_text(), new_id("message")), Stopped("end_turn"))
        turn = with_result(TURN, attempts.run(TURN), "sun")
        letta.prompts.clear()
    attempts.lose(turn, *([attempts.answers(answer)] if answer else []))
    (before,) = [text for text in sent(letta) if "application offers" not in text]
    letta.will_say("Sunny.")
    assert texts(attempts.repeat(turn)) == ["Sunny."]
    assert len(letta.prompts) == (1 if answer else 2)
    assert all(prompt.messages for prompt in letta.prompts)
    assert sent(letta).count(before) == 1


def test_each_call_in_a_message_has_an_id_of_its_own_which_is_the_same_in_a_repeat(
    letta: FakeGateway, attempts: Attempts
) -> None:
    message_id = new_id("message")
    letta.will(Text(f"{call_text()}\n{call_text()}", message_id), Stopped("end_turn"))
    for attempt in (attempts.run, attempts.repeat):
        ids = [event.id for event in attempt(TURN) if isinstance(event, ToolCall)]
        assert ids == [f"{message_id}/0", f"{message_id}/1"]


def test_a_call_in_a_lost_answer_is_given_again(letta: FakeGateway, attempts: Attempts) -> None:
    attempts.lose(TURN, attempts.answers(call_text()))
    assert called(attempts.repeat(TURN)) == ["weather"]
    assert len(letta.prompts) == 1


def test_the_description_of_the_tools_is_removed_after_the_run(letta: FakeGateway, attempts: Attempts) -> None:
    letta.will_say("Hi")
    attempts.run(TURN)
    assert context(attempts) == ["Hello", "Hi"]


def test_the_description_of_the_tools_is_removed_after_a_run_that_broke_off(
    letta: FakeGateway, attempts: Attempts
) -> None:
    attempts.lose(TURN)
    letta.will_say("Hi")
    attempts.run(replace(TURN, id="turn-3"))
    assert context(attempts) == ["Hello", "Hello", "Hi"]
