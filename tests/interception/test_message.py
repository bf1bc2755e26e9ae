"""Results that come as messages that quote them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import Event as Signal

import pytest

from bridge.config import read_settings
from bridge.errors import LettaUnreachable
from bridge.interception.stored_messages import LOOK_BACK
from bridge.letta.gateway import StoredMessage
from bridge.turn import AgentCall, AgentEvent, Message, Stopped, Text, ToolCall, ToolSpec, Turn
from tests.fake_agent import new_id
from tests.fakes import FEATURES, FakeGateway
from tests.test_conversation import made

TOOLS = (ToolSpec("status"),)
ASKED = Turn("Bob", (Message("user", "Is it done?"),), TOOLS, id="turn-1")

Happens = Callable[[Turn], list[AgentEvent]]


@pytest.fixture
def happens(letta: FakeGateway, environment: dict[str, str]) -> Happens:
    """Bob has an older loop, and takes results as messages."""
    letta.has_agent("Bob", "memgpt_v2_agent")
    environment["BRIDGE_METHOD"] = "message"
    conversation = made(letta, read_settings(environment))
    return lambda turn: list(conversation.events(turn, Signal()))  # type: ignore[arg-type]


def calls(letta: FakeGateway) -> None:
    letta.will(AgentCall(new_id("message"), new_id("call"), "status", "{}", True), Stopped("requires_approval"))


def with_result(turn: Turn, events: list[AgentEvent], text: str) -> Turn:
    """The client's next request; its turn has a mark of its own."""
    (call,) = [event for event in events if isinstance(event, ToolCall)]
    told = (Message("assistant", tool_calls=(call,)), Message("tool", text, tool_call_id=call.id))
    return replace(turn, messages=(*turn.messages, *told), id=f"{turn.id}-next")


def results(letta: FakeGateway) -> list[str]:
    return [text for prompt in letta.prompts for text in prompt.texts if text.startswith('{"type": "tool_result"')]


def test_the_same_result_of_a_second_call_is_told_too(letta: FakeGateway, happens: Happens) -> None:
    calls(letta)
    turn = with_result(ASKED, happens(ASKED), "running")
    calls(letta)
    turn = with_result(turn, happens(turn), "running")
    letta.will_say("Still running.")
    assert Text("Still running.") in happens(turn)
    assert len(results(letta)) == 2


def test_a_result_whose_answer_was_lost_is_not_told_again(letta: FakeGateway, happens: Happens) -> None:
    calls(letta)
    turn = with_result(ASKED, happens(ASKED), "running")
    letta.will(LettaUnreachable("cut", code="stream_cut"))
    with pytest.raises(LettaUnreachable):
        happens(turn)
    letta.will_say("Still running.")
    assert Text("Still running.") in happens(replace(turn, repeated=True))
    assert len(results(letta)) == 1


def test_a_result_that_was_told_is_known_when_its_call_is_too_long_ago(letta: FakeGateway, happens: Happens) -> None:
    calls(letta)
    turn = with_result(ASKED, happens(ASKED), "running")
    happens(turn)
    kept = letta._agents[letta.agents_named("Bob")[0].id]
    (told,) = (place for place, message in enumerate(kept.messages) if message.text in results(letta))
    while len(kept.messages) < told + LOOK_BACK:
        kept.store(StoredMessage(new_id("message"), "assistant_message", text="On it."))
    assert happens(replace(turn, id="turn-3"))[-1] == Stopped("end_turn")
    assert len(results(letta)) == 1


@pytest.mark.parametrize("answer", ["", "Still running."], ids=["no answer yet", "an answer"])
@pytest.mark.parametrize("method", ["relay", "rewrite"])
def test_a_result_that_had_to_be_quoted_is_not_told_again(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, method: str, answer: str
) -> None:
    """No stub can be run with such arguments; and a stored message may resist its change."""
    letta = FakeGateway(replace(FEATURES, message_rewrite=method == "rewrite"))
    kept = letta._agents[letta.has_agent("Bob", "memgpt_v2_agent").id]
    monkeypatch.setattr(letta, "rewrite_return", lambda *_: False)
    environment["BRIDGE_METHOD"] = method
    conversation = made(letta, read_settings(environment))
    letta.will(AgentCall(new_id("message"), "call_1", "status", '{"of-what": 1}', True), Stopped("requires_approval"))
    turn = with_result(ASKED, list(conversation.events(ASKED, Signal())), "running")  # type: ignore[arg-type]
    said = StoredMessage(new_id("message"), "assistant_message", text=answer)
    letta.will(lambda: answer and kept.store(said), LettaUnreachable("cut", code="stream_cut"))
    with pytest.raises(LettaUnreachable):
        list(conversation.events(turn, Signal()))
    letta.will_say("Still running.")
    assert Text("Still running.") in list(conversation.events(replace(turn, repeated=True), Signal()))
    assert len(results(letta)) == 1
