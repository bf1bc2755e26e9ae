from __future__ import annotations

import logging

import pytest

from bridge import errors
from bridge.history.log_line import LONGEST_NAME, MOST_NAMES, log_fields
from bridge.history.records import Step, TurnRecord
from bridge.turn import AgentCall, Stopped, Text, ToolCall, Used
from tests.actors import Chat
from tests.fakes import FakeGateway
from tests.log_lines import lines

TOOLS = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}}}]


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO)
    return caplog


def test_names_are_cut_and_limited_in_number() -> None:
    calls = tuple(Step(0.1, "call", "x" * 500) for _ in range(100))
    fields = log_fields(TurnRecord("t1", 0.0, "y" * 500, steps=calls))
    assert fields["model"] == "y" * LONGEST_NAME
    assert fields["calls"] == ["x" * LONGEST_NAME] * MOST_NAMES


@pytest.mark.parametrize("api", ["chat_completions", "responses"])
def test_the_line_names_the_api_by_which_the_turn_came(api: str) -> None:
    assert log_fields(TurnRecord("t1", 0.0, "Ada", dialect=api))["dialect"] == api


def test_times_are_in_milliseconds_and_add_up() -> None:
    fields = log_fields(TurnRecord("t1", 0.0, "Ada", seconds=1.5, letta_seconds=1.0, waited_seconds=0.25))
    assert [fields[name] for name in ("ms", "letta_ms", "waited_ms", "bridge_ms")] == [1500.0, 1000.0, 250.0, 250.0]


@pytest.mark.parametrize(
    ("waits", "named"),
    [
        ({}, ""),
        ({"another turn": 0.0001}, ""),
        ({"another turn": 2.5}, "another turn"),
        ({"another turn": 0.2, "a run under way": 2.5}, "a run under way, another turn"),
    ],
)
def test_the_line_names_what_the_turn_waited_for(waits: dict[str, float], named: str) -> None:
    assert log_fields(TurnRecord("t1", 0.0, "Ada", waits=waits))["waited_for"] == named


@pytest.mark.parametrize("streamed", [False, True])
def test_a_turn_has_one_line(chat: Chat, letta: FakeGateway, log: pytest.LogCaptureFixture, streamed: bool) -> None:
    letta.will(
        AgentCall("message-1", "call_1", "conversation_search", "{}"),
        Text("Hello"),
        Used(100, 10),
        Stopped("end_turn"),
    )
    chat.ask("the words of the user", stream=streamed, headers={"X-Request-Id": "req-1"})
    (line,) = lines(log, "turn")
    assert lines(log, "request") == []
    assert (line["outcome"], line["model"], line["method"], line["stream"]) == ("stop", "Ada", "approval", streamed)
    assert line["agent"] == letta.agents_named("Ada")[0].id
    assert (line["own_calls"], line["characters"], line["prompt_tokens"]) == (1, 5, 100)
    assert (line["behind_search"], line["look_ups"]) == (0, 0)
    assert line["ms"] >= line["letta_ms"] + line["waited_ms"]
    assert "the words of the user" not in str(line)


def test_the_line_counts_calls_and_results(chat: Chat, letta: FakeGateway, log: pytest.LogCaptureFixture) -> None:
    letta.will(ToolCall("call_1", "read", "{}"), Stopped("tool_rule"))
    chat.ask(
        tools=TOOLS,
        messages=[
            {"role": "assistant", "content": "", "tool_calls": []},
            {"role": "tool", "tool_call_id": "call_0", "content": "x"},
            {"role": "user", "content": "go on"},
        ],
    )
    (line,) = lines(log, "turn")
    assert (line["outcome"], line["tools"], line["results"], line["calls"]) == ("tool_calls", 1, 1, ["read"])


@pytest.mark.parametrize(
    ("fault", "outcome"), [(errors.ModelFailed("It failed."), "model_failed"), (RuntimeError("oh"), "internal_error")]
)
@pytest.mark.parametrize("streamed", [False, True])
def test_the_line_of_a_failed_turn_names_the_error(
    chat: Chat, letta: FakeGateway, log: pytest.LogCaptureFixture, fault: Exception, outcome: str, streamed: bool
) -> None:
    letta.will(fault)
    chat.ask(stream=streamed)
    assert [line["outcome"] for line in lines(log, "turn")] == [outcome]


def test_a_request_for_an_unknown_agent_has_one_line(chat: Chat, log: pytest.LogCaptureFixture) -> None:
    chat.ask(model="Bob")
    assert [line["outcome"] for line in lines(log, "turn")] == ["model_not_found"]
    assert lines(log, "request") == []
