"""A turn that was broken off in the middle is repaired by its repeat, or by the next turn."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bridge.config import read_settings
from bridge.errors import LettaUnreachable
from bridge.interception.method import GO_ON, NO_RESULT
from bridge.stubs.source import RELAY_COUNT
from bridge.turn import AgentReturn, Stopped, Text, ToolCall
from tests.fake_agent import new_id
from tests.fakes import FEATURES, FakeGateway
from tests.interception.attempts import CUT, TURN, Attempts, call_of, called, calls, texts

NEXT = replace(TURN, id="turn-2")


@pytest.fixture
def letta() -> FakeGateway:
    letta = FakeGateway(replace(FEATURES, version=(0, 12, 1), tool_returns=False))
    letta.has_agent("Ada", "memgpt_v2_agent")
    return letta


@pytest.fixture(params=["rewrite", "relay"])
def attempts(letta: FakeGateway, environment: dict[str, str], request: pytest.FixtureRequest) -> Attempts:
    return Attempts(letta, read_settings({**environment, "BRIDGE_METHOD": request.param}))


def test_a_repeat_gets_the_call_that_had_no_return_yet(letta: FakeGateway, attempts: Attempts) -> None:
    attempts.lose(TURN, call_of("weather"))
    assert called(attempts.repeat(TURN)) == ["weather"]
    assert len(letta.prompts) == 1


@pytest.mark.parametrize("attempts", ["rewrite"], indirect=True)
def test_a_repeat_denies_the_call_that_had_no_return_yet(attempts: Attempts) -> None:
    attempts.lose(TURN, call_of("weather"))
    attempts.repeat(TURN)
    assert attempts.agent.held is None


def test_a_repeat_gets_the_call_under_the_same_id(letta: FakeGateway, attempts: Attempts) -> None:
    calls(letta, "weather")
    first, second = (
        [event for event in attempt(TURN) if isinstance(event, ToolCall)] for attempt in (attempts.run, attempts.repeat)
    )
    assert first == second


@pytest.mark.parametrize("method", ["native", "approval", "relay", "rewrite", "message"])
def test_a_reply_to_the_bridges_own_message_is_not_lost_and_that_message_does_not_stay(
    environment: dict[str, str], method: str
) -> None:
    letta = FakeGateway(replace(FEATURES, client_tools=method == "native"))
    letta.has_agent("Ada", "letta_v1_agent" if method in ("native", "approval") else "memgpt_v2_agent")
    attempts = Attempts(letta, read_settings({**environment, "BRIDGE_METHOD": method}))
    attempts.lose(TURN, attempts.stores("tool_call_message"), attempts.stores("tool_return_message", "found"))
    letta.will(attempts.answers("Hi"), CUT)
    with pytest.raises(LettaUnreachable):
        attempts.repeat(TURN)
    assert texts(attempts.repeat(TURN)) == ["Hi"]
    known = [message for message in attempts.agent.messages if message.id in attempts.agent.agent.message_ids]
    assert [message.text for message in known[1:]] == ["Hello", "", "found", "Hi"]


def test_the_next_turn_removes_what_the_bridge_has_added(letta: FakeGateway, attempts: Attempts) -> None:
    go_on, response = attempts.stores("system_message", GO_ON), attempts.stores("approval_response_message")
    denied = attempts.stores("tool_return_message", f"Error: denied. {NO_RESULT}")
    heartbeat = attempts.stores("user_message", '{"type": "heartbeat"}')
    attempts.lose(TURN, go_on, replace(call_of("weather"), held=False), response, denied, heartbeat)
    attempts.run(NEXT)
    stored = {message.id: message for message in attempts.agent.messages}
    kept = [stored[message_id] for message_id in attempts.agent.agent.message_ids]
    assert [message.kind.removesuffix("_message") for message in kept] == [
        "system",
        "user",
        "tool_call",
        "tool_return",
        "user",
        "assistant",
    ]
    assert kept[3].text == NO_RESULT


@pytest.mark.parametrize("attempts", ["relay"], indirect=True)
def test_the_next_turn_removes_a_relayed_result(attempts: Attempts) -> None:
    attempts.lose(TURN)
    attempts.agent.variables = {"OWN": "x", RELAY_COUNT: "1"}
    attempts.run(NEXT)
    assert attempts.agent.variables == {"OWN": "x"}


def test_a_call_that_returns_was_not_held(letta: FakeGateway, attempts: Attempts) -> None:
    """By token, 0.12 announces every call of an agent with gated tools as held."""
    call = call_of("memory_search")
    letta.will(call, AgentReturn(new_id("message"), call.call_id, "found"), Text("Hi"), Stopped("end_turn"))
    assert texts(attempts.run(TURN)) == ["Hi"]
