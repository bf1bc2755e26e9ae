"""Tools that are described in a message, and calls that are read from the agent's text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from threading import Event as Signal

import pytest

from bridge.config import read_settings
from bridge.errors import LettaUnreachable
from bridge.letta.gateway import Say, StoredMessage
from bridge.turn import AgentEvent, Message, Stopped, Text, ToolCall, ToolSpec, Turn
from tests.fake_agent import new_id
from tests.fakes import FakeGateway
from tests.test_conversation import made

WEATHER = ToolSpec("weather")
HELLO = Message("user", "Hello")
TURN = Turn("Ada", (HELLO,), (WEATHER,), id="turn-1")
CALLED = Message("assistant", tool_calls=(ToolCall("call_1", "weather", "{}"),))
RESULT = replace(TURN, messages=(HELLO, CALLED, Message("tool", "sun", tool_call_id="call_1")), id="turn-2")
CUT = LettaUnreachable("cut", code="stream_cut")

Happens = Callable[[Turn], list[AgentEvent]]


@pytest.fixture
def happens(letta: FakeGateway, environment: dict[str, str]) -> Happens:
    environment["BRIDGE_METHOD"] = "prompt"
    conversation = made(letta, read_settings(environment))
    return lambda turn: list(conversation.events(turn, Signal()))  # type: ignore[arg-type]


def calling(letta: FakeGateway, *names: str) -> str:
    """What the agent writes when it calls these, by the guide that it was given last."""
    (tag,) = set(re.findall(r"<call-\w+>", letta.prompts[-1].texts[0]))
    return "\n".join(f'{tag}{{"name": "{name}"}}{tag.replace("<", "</")}' for name in names)


def will_call(letta: FakeGateway, monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    send = letta._happening

    def written(kept: object, steps: object) -> Iterator[AgentEvent]:
        monkeypatch.setattr(letta, "_happening", send)
        return send(kept, (Text(calling(letta, *names)), Stopped("end_turn")))  # type: ignore[arg-type]

    monkeypatch.setattr(letta, "_happening", written)


def called(events: list[AgentEvent]) -> list[str]:
    return [event.name for event in events if isinstance(event, ToolCall)]


def texts(events: list[AgentEvent]) -> list[str]:
    return [event.text for event in events if isinstance(event, Text)]


def context(letta: FakeGateway) -> list[str]:
    (kept,) = letta._agents.values()
    stored = {message.id: message.text for message in kept.messages}
    return [stored[message_id] for message_id in kept.agent.message_ids if stored[message_id]]


def told(letta: FakeGateway) -> list[str]:
    return [part.text for prompt in letta.prompts for part in prompt.messages if isinstance(part, Say)]


def answers_and_is_cut(letta: FakeGateway, text: str = "") -> None:
    """The connection breaks when Letta has the agent's answer, or before there is one."""
    (kept,) = letta._agents.values()
    letta.will(lambda: text and kept.store(StoredMessage(new_id("message"), "assistant_message", text=text)), CUT)


@pytest.mark.parametrize(("parallel", "expected"), [(True, ["weather", "weather"]), (False, ["weather"])])
def test_a_client_that_takes_one_call_at_a_time_gets_one(
    letta: FakeGateway, happens: Happens, monkeypatch: pytest.MonkeyPatch, parallel: bool, expected: list[str]
) -> None:
    will_call(letta, monkeypatch, "weather", "weather")
    assert called(happens(replace(TURN, parallel_tool_calls=parallel))) == expected


@pytest.mark.parametrize("turn", [TURN, replace(TURN, tools=()), RESULT], ids=["tools", "none", "a result"])
@pytest.mark.parametrize("answer", ["", "Sunny."], ids=["no answer yet", "an answer"])
def test_what_arrived_is_not_told_again(letta: FakeGateway, happens: Happens, turn: Turn, answer: str) -> None:
    answers_and_is_cut(letta, answer)
    with pytest.raises(LettaUnreachable):
        happens(turn)
    before = [text for text in told(letta) if "application offers" not in text]
    letta.will_say("Sunny.")
    assert texts(happens(replace(turn, repeated=True))) == ["Sunny."]
    assert len(letta.prompts) == (1 if answer else 2)
    assert all(prompt.messages for prompt in letta.prompts)
    assert sum(text in before for text in told(letta)) == 1


def test_a_call_whose_answer_was_lost_is_given_again(letta: FakeGateway, happens: Happens) -> None:
    (kept,) = letta._agents.values()
    letta.will(
        lambda: kept.store(StoredMessage(new_id("message"), "assistant_message", text=calling(letta, "weather"))), CUT
    )
    with pytest.raises(LettaUnreachable):
        happens(TURN)
    assert called(happens(replace(TURN, repeated=True))) == ["weather"]
    assert len(letta.prompts) == 1


def test_no_description_of_tools_stays_behind_when_a_run_breaks_off(letta: FakeGateway, happens: Happens) -> None:
    letta.will(CUT)
    with pytest.raises(LettaUnreachable):
        happens(TURN)
    letta.will_say("Hi")
    happens(replace(TURN, id="turn-3"))
    assert context(letta) == ["Hello", "Hello", "Hi"]
