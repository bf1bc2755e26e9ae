"""An attempt of which nobody saw the end: what of it reached the agent is not sent again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from threading import Event as Signal
from typing import Any

import pytest

from bridge.config import Settings
from bridge.errors import LettaUnreachable
from bridge.interception import underway
from bridge.interception.underway import wait_for_its_runs
from bridge.letta.gateway import Results, StoredMessage
from bridge.turn import AgentCall, AgentEvent, Message, MethodChosen, Stopped, Text, ToolCall, ToolSpec, Turn
from tests.fake_agent import new_id
from tests.fakes import FakeGateway, ScriptedStep
from tests.test_conversation import made

HELLO = Message("user", "Hello")
TURN = Turn("Ada", (HELLO,), (ToolSpec("weather"),), id="turn-1")
CUT = LettaUnreachable("cut", code="stream_cut")

Attempt = Callable[[Turn], list[AgentEvent]]


@pytest.fixture
def attempt(letta: FakeGateway, settings: Settings) -> Attempt:
    conversation = made(letta, settings)
    return lambda turn: [one for one in conversation.events(turn, Signal()) if not isinstance(one, MethodChosen)]


def lost(attempt: Attempt, letta: FakeGateway, *steps: ScriptedStep, turn: Turn = TURN) -> None:
    """An attempt whose connection broke after these steps."""
    letta.will(*steps, CUT)
    with pytest.raises(LettaUnreachable):
        attempt(turn)


def stores(letta: FakeGateway, kind: str, text: str = "", **more: Any) -> Callable[[], object]:
    """What Letta has stored before the connection broke."""
    return lambda: kept(letta).store(StoredMessage(new_id("message"), kind, text=text, **more))


def kept(letta: FakeGateway) -> Any:
    return next(iter(letta._agents.values()))


def said(letta: FakeGateway) -> list[list[str]]:
    return [prompt.texts for prompt in letta.prompts]


def test_a_message_that_never_arrived_is_sent(letta: FakeGateway, attempt: Attempt) -> None:
    lost(attempt, letta)
    kept(letta).messages.pop()
    letta.will_say("Hi")
    assert Text("Hi") in attempt(replace(TURN, repeated=True))
    assert said(letta) == [["Hello"], ["Hello"]]


def test_a_message_that_a_failed_run_left_out_of_the_context_is_sent_again(
    letta: FakeGateway, attempt: Attempt
) -> None:
    """The older loops store each step at once, and put it into the context when the run has ended well."""
    kept(letta).agent = replace(kept(letta).agent, type="memgpt_v2_agent")
    for kind, text in (("user_message", "Before"), ("assistant_message", "Old.")):
        kept(letta).store(StoredMessage(new_id("message"), kind, text=text))
    before = kept(letta).agent.message_ids
    lost(attempt, letta, stores(letta, "tool_call_message"), stores(letta, "tool_return_message", "found"))
    kept(letta).agent = replace(kept(letta).agent, message_ids=before)
    letta.will_say("Hi")
    assert Text("Hi") in attempt(replace(TURN, repeated=True))
    assert said(letta) == [["Hello"], ["Hello"]]


def test_a_message_that_was_compacted_in_its_own_run_is_not_sent_again(letta: FakeGateway, attempt: Attempt) -> None:
    """letta_v1_agent stores a step and puts it into the context in one: what is not there has left it again."""
    system = kept(letta).agent.message_ids
    lost(attempt, letta, stores(letta, "tool_call_message"), stores(letta, "tool_return_message", "found"))
    summary = kept(letta).store(StoredMessage(new_id("message"), "summary_message", text="Hello was said."))
    kept(letta).agent = replace(kept(letta).agent, message_ids=(*system, summary.id))
    letta.will_say("Hi")
    assert Text("Hi") in attempt(replace(TURN, repeated=True))
    assert "Hello" not in said(letta)[1]


def test_an_answer_that_was_lost_on_the_way_is_taken_from_the_server(letta: FakeGateway, attempt: Attempt) -> None:
    lost(attempt, letta, stores(letta, "assistant_message", "Hi"), stores(letta, "assistant_message", "there"))
    events = attempt(replace(TURN, repeated=True))
    assert [one.text for one in events if isinstance(one, Text)] == ["Hi", "\n\nthere"]
    assert events[-1] == Stopped("end_turn")
    assert len(letta.prompts) == 1


def test_an_answer_of_another_turn_is_not_taken_for_this_one(letta: FakeGateway, attempt: Attempt) -> None:
    kept(letta).store(StoredMessage(new_id("message"), "assistant_message", text="Old."))
    lost(attempt, letta)
    letta.will_say("New.")
    assert Text("New.") in attempt(replace(TURN, repeated=True))


def test_an_agent_that_stopped_in_the_middle_goes_on_without_hearing_it_twice(
    letta: FakeGateway, attempt: Attempt
) -> None:
    lost(attempt, letta, stores(letta, "tool_call_message"), stores(letta, "tool_return_message", "found"))
    letta.will_say("Hi")
    assert Text("Hi") in attempt(replace(TURN, repeated=True))
    assert "Hello" not in said(letta)[1]


def test_a_call_that_was_lost_on_the_way_is_given_again(letta: FakeGateway, attempt: Attempt) -> None:
    call = AgentCall(new_id("message"), "call_1", "weather", "{}", True)
    lost(attempt, letta, call)
    (found,) = [one for one in attempt(replace(TURN, repeated=True)) if isinstance(one, ToolCall)]
    assert found.name == "weather"
    assert len(letta.prompts) == 1


def test_text_beside_a_call_is_not_taken_for_an_answer(letta: FakeGateway, attempt: Attempt) -> None:
    call = AgentCall(new_id("message"), "call_1", "weather", "{}", True)
    lost(attempt, letta, stores(letta, "assistant_message", "Let me look."), call)
    assert any(isinstance(one, ToolCall) for one in attempt(replace(TURN, repeated=True)))


def test_a_result_whose_answer_was_lost_is_answered_from_the_server(letta: FakeGateway, attempt: Attempt) -> None:
    call = AgentCall(new_id("message"), "call_1", "weather", "{}", True)
    letta.will(call, Stopped("requires_approval"))
    (for_client,) = [one for one in attempt(TURN) if isinstance(one, ToolCall)]
    asked = Message("assistant", tool_calls=(for_client,))
    turn = Turn("Ada", (HELLO, asked, Message("tool", "sun", tool_call_id=for_client.id)), TURN.tools, id="turn-2")
    lost(attempt, letta, stores(letta, "assistant_message", "Sunny."), turn=turn)
    assert [one.text for one in attempt(replace(turn, repeated=True)) if isinstance(one, Text)] == ["Sunny."]
    given = [part for prompt in letta.prompts for part in prompt.messages if isinstance(part, Results)]
    assert len(given) == 1


def test_a_result_of_which_the_server_kept_a_share_is_known_again(letta: FakeGateway, attempt: Attempt) -> None:
    call = AgentCall(new_id("message"), "call_1", "weather", "{}", True)
    letta.will(call, Stopped("requires_approval"))
    (for_client,) = [one for one in attempt(TURN) if isinstance(one, ToolCall)]
    asked = Message("assistant", tool_calls=(for_client,))
    turn = Turn("Ada", (HELLO, asked, Message("tool", "sun" * 3000, tool_call_id=for_client.id)), TURN.tools)

    def clip() -> None:
        kept(letta).messages[-1] = replace(kept(letta).messages[-1], text="sun" * 2000 + "... [truncated 3000 chars]")

    lost(attempt, letta, clip, stores(letta, "assistant_message", "Sunny."), turn=turn)
    assert [one.text for one in attempt(replace(turn, repeated=True)) if isinstance(one, Text)] == ["Sunny."]
    assert len(letta.prompts) == 2


@pytest.mark.parametrize("agent_type", ["letta_v1_agent", "memgpt_v2_agent"])
def test_a_late_result_beside_a_message_that_arrived_is_passed_over_again(
    letta: FakeGateway, attempt: Attempt, agent_type: str
) -> None:
    kept(letta).agent = replace(kept(letta).agent, type=agent_type)
    late = (Message("assistant", tool_calls=(ToolCall(f"call_{'0' * 35}", "weather", "{}"),)),)
    said = (Message("tool", "sun", tool_call_id=f"call_{'0' * 35}"), HELLO)
    turn = Turn("Ada", (HELLO, *late, *said), TURN.tools, id="turn-2")
    lost(attempt, letta, stores(letta, "assistant_message", "Hi"), turn=turn)
    assert [one.text for one in attempt(replace(turn, repeated=True)) if isinstance(one, Text)] == ["Hi"]


def test_every_message_of_a_turn_carries_its_mark(letta: FakeGateway, attempt: Attempt) -> None:
    attempt(Turn("Ada", (HELLO, Message("user", "there")), id="turn-7"))
    assert [say.otid for say in letta.prompts[0].messages if not isinstance(say, Results)] == ["turn-7-0", "turn-7-1"]


# --- a run that goes on without a bridge ----------------------------------------------------------------


def ending(letta: FakeGateway, after: int) -> Iterator[None]:
    for _ in range(after):
        yield
    letta.under_way.clear()


class Patience(Signal):
    """Lets something happen at each look instead of waiting."""

    def __init__(self, steps: Iterator[None]) -> None:
        super().__init__()
        self.steps = steps

    def wait(self, timeout: float | None = None) -> bool:
        next(self.steps, None)
        return self.is_set()


def test_a_run_that_was_left_behind_is_waited_for(letta: FakeGateway) -> None:
    letta.under_way.append("run-1")
    agent = letta.agents()[0]
    assert wait_for_its_runs(letta, agent.id, Patience(ending(letta, 3)))
    assert not wait_for_its_runs(letta, agent.id, Signal())
    assert letta.cancelled == []


def test_a_run_that_does_not_end_is_ended(letta: FakeGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(underway, "PATIENCE", 0)
    letta.under_way.append("run-1")
    agent = letta.agents()[0]
    assert wait_for_its_runs(letta, agent.id, Signal())
    assert letta.cancelled == [(agent.id, "run-1")]


def test_nobody_waits_for_a_run_on_behalf_of_a_client_that_has_gone(letta: FakeGateway) -> None:
    letta.under_way.append("run-1")
    gone = Signal()
    gone.set()
    assert wait_for_its_runs(letta, letta.agents()[0].id, gone)
    assert letta.cancelled == []
