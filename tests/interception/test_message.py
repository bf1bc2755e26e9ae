"""Results that come as messages that quote them are sent once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bridge.config import read_settings
from bridge.interception.stored_messages import LOOK_FURTHER
from bridge.turn import Stopped, Turn
from tests.fakes import FEATURES, FakeGateway
from tests.interception.attempts import TURN, Attempts, call_of, calls, sent_results, texts, with_result


def attempts_with(letta: FakeGateway, environment: dict[str, str], method: str) -> Attempts:
    letta.has_agent("Ada", "memgpt_v2_agent")
    return Attempts(letta, read_settings({**environment, "BRIDGE_METHOD": method}))


@pytest.fixture
def letta() -> FakeGateway:
    return FakeGateway()


@pytest.fixture
def attempts(letta: FakeGateway, environment: dict[str, str]) -> Attempts:
    return attempts_with(letta, environment, "message")


@pytest.fixture
def turn(letta: FakeGateway, attempts: Attempts) -> Turn:
    """The turn that brings the result of a call."""
    calls(letta, "weather")
    return with_result(TURN, attempts.run(TURN), "sun")


def test_the_same_result_of_a_second_call_is_sent_too(letta: FakeGateway, attempts: Attempts, turn: Turn) -> None:
    calls(letta, "weather")
    turn = with_result(turn, attempts.run(turn), "sun")
    letta.will_say("Still sunny.")
    assert texts(attempts.run(turn)) == ["Still sunny."]
    assert len(sent_results(letta)) == 2


def test_a_result_whose_answer_was_lost_is_not_sent_again(letta: FakeGateway, attempts: Attempts, turn: Turn) -> None:
    attempts.lose(turn)
    letta.will_say("Sunny.")
    assert texts(attempts.repeat(turn)) == ["Sunny."]
    assert len(sent_results(letta)) == 1


def test_a_result_is_not_sent_again_when_its_call_is_too_long_ago_to_be_read(
    letta: FakeGateway, attempts: Attempts, turn: Turn
) -> None:
    attempts.run(turn)
    messages = attempts.agent.messages
    (quote,) = (place for place, message in enumerate(messages) if message.text.startswith('{"type": "tool_result"'))
    while len(messages) < quote + LOOK_FURTHER:
        attempts.answers("On it.")()
    assert attempts.run(replace(turn, id="turn-3"))[-1] == Stopped("end_turn")
    assert len(sent_results(letta)) == 1


@pytest.mark.parametrize("answer", ["", "Sunny."], ids=["no answer yet", "an answer"])
@pytest.mark.parametrize("method", ["relay", "rewrite"])
def test_a_result_that_another_method_had_to_quote_is_not_sent_again(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, method: str, answer: str
) -> None:
    """A stub can't run with such arguments, and the server may fail to change a stored message."""
    letta = FakeGateway(replace(FEATURES, message_rewrite=method == "rewrite"))
    attempts = attempts_with(letta, environment, method)
    monkeypatch.setattr(letta, "rewrite_return", lambda *_: False)
    letta.will(call_of("weather", '{"of-what": 1}'), Stopped("requires_approval"))
    turn = with_result(TURN, attempts.run(TURN), "sun")
    attempts.lose(turn, *([attempts.answers(answer)] if answer else []))
    letta.will_say("Sunny.")
    assert texts(attempts.repeat(turn)) == ["Sunny."]
    assert len(sent_results(letta)) == 1
