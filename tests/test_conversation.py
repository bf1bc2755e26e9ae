from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from threading import Event as Signal
from typing import Any

import pytest

from app import assemble_parts
from bridge import errors
from bridge.config import Settings, read_settings
from bridge.conversation import Conversation
from bridge.journal.lingering import is_asked_to_end
from bridge.letta.gateway import Agent, Say
from bridge.sync.instructions import LABEL
from bridge.trace import Trace, set_current_trace
from bridge.turn import (
    AgentCall,
    AgentEvent,
    EndingResults,
    Message,
    MethodChosen,
    Notice,
    ReplyFormat,
    Stopped,
    Text,
    ToolCall,
    ToolChoice,
    ToolResult,
    ToolSpec,
    Turn,
    Used,
)
from tests.asked import turn_of
from tests.fake_agent import new_id
from tests.fakes import FEATURES, FakeGateway
from tests.waiting import until

HELLO = Message("user", "Hello")
KIND = Message("system", "be kind")

Ask = Callable[..., list[AgentEvent]]


def made(letta: FakeGateway, settings: Settings) -> Conversation:
    return assemble_parts(settings, letta).conversation


@pytest.fixture
def ask(letta: FakeGateway, settings: Settings) -> Ask:
    conversation = made(letta, settings)

    def ask(*messages: Message, **fields: Any) -> list[AgentEvent]:
        turn = turn_of(*(messages or (HELLO,)), **fields)
        return [event for event in conversation.events(turn, Signal()) if isinstance(event, Text | Used | Stopped)]

    return ask


def prompt_mode(mode: str, environment: dict[str, str]) -> None:
    environment["BRIDGE_SYSTEM_PROMPT"] = mode


def test_the_agent_gets_only_what_is_new(letta: FakeGateway, ask: Ask) -> None:
    letta.will_say("Hi")
    ask(HELLO)
    ask(HELLO, Message("assistant", "Hi"), Message("user", "one"), Message("user", "two"))
    prompt = letta.prompts[-1]
    assert prompt.messages == (Say("user", "one"), Say("user", "two"))


def test_events_come_in_order(letta: FakeGateway, ask: Ask) -> None:
    letta.will_say("Hel", "lo")
    assert ask() == [Text("Hel"), Text("lo"), Used(100, 10), Stopped("end_turn")]


def test_an_unknown_agent_is_refused_before_anything_is_sent(letta: FakeGateway, ask: Ask) -> None:
    with pytest.raises(errors.UnknownModel):
        ask(model="Bob")
    assert letta.prompts == []


def test_a_transcript_with_nothing_new_costs_no_call(letta: FakeGateway, ask: Ask) -> None:
    with pytest.raises(errors.InvalidRequest):
        ask(Message("assistant", "Hi"))
    assert letta.calls == []


def test_a_request_aside_without_a_user_message_costs_no_call(letta: FakeGateway, ask: Ask) -> None:
    with pytest.raises(errors.InvalidRequest):
        ask(KIND, aside=True)
    assert letta.calls == []


@pytest.mark.parametrize(
    ("agent_type", "stream", "by_token"),
    [
        ("letta_v1_agent", True, True),
        ("letta_v1_agent", False, False),
        ("memgpt_v2_agent", True, False),
        ("memgpt_v2_agent", False, False),
    ],
)
def test_text_comes_by_token_only_if_it_is_streamed_and_stays_undamaged(
    letta: FakeGateway, ask: Ask, agent_type: str, stream: bool, by_token: bool
) -> None:
    letta.has_agent("Bob", agent_type)
    ask(model="Bob", stream=stream)
    assert letta.prompts[0].by_token == by_token


# --- instructions -----------------------------------------------------------------------------------------


def test_instructions_apply_in_the_turn_that_brings_them(letta: FakeGateway, ask: Ask) -> None:
    ask(KIND, HELLO)
    assert letta.prompts[0].memory == {"persona": "I am Ada.", LABEL: "be kind"}
    assert letta.prompts[0].messages == (Say("user", "Hello"),)


def test_instructions_follow_the_client_from_turn_to_turn(letta: FakeGateway, ask: Ask) -> None:
    ask(KIND, HELLO)
    ask(KIND, HELLO)
    ask(Message("system", "be brief"), HELLO)
    ask(HELLO)
    ask(KIND, HELLO)
    assert [prompt.memory.get(LABEL) for prompt in letta.prompts] == ["be kind", "be kind", "be brief", None, "be kind"]


def test_instructions_that_did_not_change_are_not_written_again(letta: FakeGateway, ask: Ask) -> None:
    ask(KIND, HELLO)
    letta.calls.clear()
    ask(KIND, HELLO)
    assert not {"add_block", "set_block", "remove_block"} & set(letta.calls)


@pytest.mark.parametrize("mode", ["message", "ignore"])
def test_the_bridges_block_is_removed_when_the_settings_want_no_block(
    letta: FakeGateway, environment: dict[str, str], mode: str, ask: Ask
) -> None:
    ask(KIND, HELLO)
    prompt_mode(mode, environment)
    conversation = made(letta, read_settings(environment))
    list(conversation.events(turn_of(KIND, HELLO), Signal()))
    assert letta.prompts[-1].memory == {"persona": "I am Ada."}


class TestAsMessages:
    @pytest.fixture(autouse=True)
    def mode(self, environment: dict[str, str]) -> None:
        prompt_mode("message", environment)

    def test_instructions_open_the_conversation(self, letta: FakeGateway, ask: Ask) -> None:
        ask(KIND, HELLO)
        assert letta.prompts[0].messages == (Say("system", "be kind"), Say("user", "Hello"))

    def test_instructions_are_not_repeated_later(self, letta: FakeGateway, ask: Ask) -> None:
        letta.will_say("Hi")
        ask(KIND, HELLO)
        ask(KIND, HELLO, Message("assistant", "Hi"), HELLO)
        assert letta.prompts[1].messages == (Say("user", "Hello"),)

    def test_instructions_open_a_conversation_that_begins_with_an_answer_of_the_clients_own(
        self, letta: FakeGateway, ask: Ask
    ) -> None:
        letta.will_say("Hi")
        own = Message("assistant", "Ok, I will keep to these files.")
        for answered in ([], [Message("assistant", "Hi"), HELLO]):
            ask(KIND, Message("user", "a.py"), own, HELLO, *answered)
        first, second = (prompt.messages for prompt in letta.prompts)
        assert first[:2] == (Say("system", "be kind"), Say("user", "a.py"))
        assert second == (Say("user", "Hello"),)

    def test_without_instructions_there_is_no_such_message(self, letta: FakeGateway, ask: Ask) -> None:
        ask(HELLO)
        assert letta.prompts[0].messages == (Say("user", "Hello"),)


def test_instructions_can_be_ignored(letta: FakeGateway, environment: dict[str, str]) -> None:
    prompt_mode("ignore", environment)
    conversation = made(letta, read_settings(environment))
    list(conversation.events(turn_of(KIND, HELLO), Signal()))
    assert letta.prompts[0].memory == {"persona": "I am Ada."}
    assert letta.prompts[0].messages == (Say("user", "Hello"),)


@pytest.mark.parametrize("mode", ["message", "ignore"])
def test_every_turn_that_wants_a_form_of_reply_asks_for_it(
    letta: FakeGateway, environment: dict[str, str], mode: str
) -> None:
    prompt_mode(mode, environment)
    conversation = made(letta, read_settings(environment))
    letta.will_say("Hi")
    list(conversation.events(turn_of(HELLO), Signal()))
    transcript = (KIND, HELLO, Message("assistant", "Hi"), HELLO)
    list(conversation.events(turn_of(*transcript, reply_format=ReplyFormat("in JSON")), Signal()))
    assert letta.prompts[1].messages == (Say("system", "in JSON"), Say("user", "Hello"))


def test_an_agent_whose_reply_became_json_knows_the_json_of_the_transcript(letta: FakeGateway, ask: Ask) -> None:
    letta.will_say("I don't know.")
    letta.will_say('Here: {"a": 1}')
    assert ask(HELLO, reply_format=ReplyFormat("in JSON"))[0] == Text('{"a": 1}')
    ask(HELLO, Message("assistant", '{"a": 1}'), Message("user", "And?"))
    assert letta.prompts[-1].messages == (Say("user", "And?"),)


ENDING = ToolSpec("attempt_completion", parameters={"properties": {"result": {"type": "string"}}})


def test_a_request_aside_ends_by_a_call_too_if_the_client_expects_one(letta: FakeGateway, settings: Settings) -> None:
    letta.will_say("Done.")
    events = made(letta, settings).events(turn_of(HELLO, tools=(ENDING,), aside=True), Signal())
    assert [(event.name, event.arguments) for event in events if isinstance(event, ToolCall)] == [
        ("attempt_completion", '{"result": "Done."}')
    ]


def test_a_recognised_summary_stays_text(letta: FakeGateway, ask: Ask) -> None:
    summarise = Message("system", "You are a helpful AI assistant tasked with summarizing conversations.")
    request = Message("user", "CRITICAL: This summarization request is a SYSTEM OPERATION.")
    letta.will_say("They said hello.")
    assert ask(summarise, request, tools=(ENDING,))[0] == Text("They said hello.")


# --- usage ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("used", "known", "shown"),
    [
        (Used(700, 20, 1, "step-1"), None, 700),
        (Used(2100, 60, 3, "step-3"), 900, 900),
        (Used(2100, 60, 3, "step-3"), None, 700),
        (Used(2100, 60, 3, ""), 900, 700),
        (Used(2100, 60, 3, "step-3"), 2100, 700),
    ],
)
def test_usage_is_the_prompt_of_the_last_step_not_the_sum(
    letta: FakeGateway, ask: Ask, used: Used, known: int | None, shown: int
) -> None:
    letta.step_sizes = {} if known is None else {"step-3": known}
    letta.will(Text("Hi"), used, Stopped("end_turn"))
    (found,) = [event for event in ask() if isinstance(event, Used)]
    assert (found.prompt_tokens, found.completion_tokens) == (shown, used.completion_tokens)


def test_an_answer_is_not_lost_if_its_usage_cannot_be_read(letta: FakeGateway, ask: Ask) -> None:
    letta.fails(errors.LettaUnreachable("It broke."), at="step_prompt_tokens")
    letta.will(Text("Hi"), Used(2100, 60, 3, "step-3"), Stopped("end_turn"))
    assert ask() == [Text("Hi"), Used(700, 60, 3, "step-3"), Stopped("end_turn")]


# --- failures ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(1, 8))
def test_a_failure_of_letta_at_any_call_reaches_the_client(letta: FakeGateway, ask: Ask, number: int) -> None:
    letta.fails(errors.LettaUnreachable("It is down."), at=number)
    with pytest.raises(errors.LettaUnreachable, match="It is down"):
        ask(KIND, HELLO)
    assert len(letta.calls) == number


def test_the_calls_of_a_first_turn_and_of_the_next_one(letta: FakeGateway, ask: Ask) -> None:
    """The bridge asks for runs that go on when it does not know that the previous turn ended."""
    ask(KIND, HELLO)
    looks = ["agents_named", "agent", "features", "runs_under_way", "agent"]
    assert letta.calls == [*looks, "features", "add_block", "send_messages"]
    letta.calls.clear()
    ask(KIND, HELLO)
    assert letta.calls == ["agent", "features", "send_messages"]


@pytest.mark.parametrize("number", range(1, 8))
def test_the_next_turn_works_after_a_failure_at_any_call(letta: FakeGateway, ask: Ask, number: int) -> None:
    letta.fails(errors.LettaUnreachable("It is down."), at=number)
    with pytest.raises(errors.LettaUnreachable):
        ask(KIND, HELLO)
    letta.will_say("Hi")
    assert ask(KIND, HELLO)[0] == Text("Hi")
    assert letta.prompts[-1].memory == {"persona": "I am Ada.", LABEL: "be kind"}


# --- turns without a client ----------------------------------------------------------------------------------


CALL = ToolSpec("weather")
GOODBYE = Message("user", "Goodbye")


@pytest.mark.parametrize(("aside", "is_ended"), [(False, True), (True, False)])
def test_a_turn_that_waits_for_its_agent_ends_earlier_turns_of_its_conversation(
    letta: FakeGateway, settings: Settings, aside: bool, is_ended: bool
) -> None:
    parts = assemble_parts(settings, letta)
    parts.conversation.note_lingering(turn_of(HELLO, id="turn-1", aside=aside), "token-1", 0.0)
    later = turn_of(HELLO, GOODBYE, id="turn-2")
    waits = threading.Thread(target=lambda: list(parts.conversation.events(later, Signal())))
    with parts.hold(letta.agents()[0].id):
        waits.start()
        if is_ended:
            until(lambda: is_asked_to_end(parts.store, "token-1"))
        else:
            threading.Event().wait(0.6)
    waits.join()
    assert is_asked_to_end(parts.store, "token-1") is is_ended


def test_a_turn_that_waits_for_another_clients_result_ends_earlier_turns_of_its_conversation(
    letta: FakeGateway, settings: Settings
) -> None:
    parts = assemble_parts(settings, letta)
    letta.will(AgentCall(new_id("message"), "call_1", "weather", "{}", True), Stopped("requires_approval"))
    list(parts.conversation.events(turn_of(Message("user", "Weather?"), tools=(CALL,)), Signal()))
    parts.conversation.note_lingering(turn_of(HELLO, id="turn-1"), "token-1", 0.0)
    list(parts.conversation.events(turn_of(HELLO, GOODBYE, id="turn-2"), Signal()))
    assert is_asked_to_end(parts.store, "token-1")


# --- after a turn that was broken off -----------------------------------------------------------------------


CUT = errors.LettaUnreachable("It broke.", code="stream_cut")


def opens_a_call_and_breaks_off(letta: FakeGateway, conversation: Conversation) -> Turn:
    """A client's call is open; the turn that brought its result broke off in the middle."""
    letta.will(AgentCall(new_id("message"), "call_1", "weather", "{}", True), Stopped("requires_approval"))
    happened = conversation.events(turn_of(HELLO, tools=(CALL,)), Signal())
    (call,) = [event for event in happened if isinstance(event, ToolCall)]
    messages = (HELLO, Message("assistant", tool_calls=(call,)), Message("tool", "sun", tool_call_id=call.id))
    letta.will(CUT)
    with pytest.raises(errors.LettaUnreachable):
        list(conversation.events(turn_of(*messages, tools=(CALL,)), Signal()))
    letta.calls.clear()
    return turn_of(*messages, tools=(CALL,))


def leaves_when_the_agent_is_read(letta: FakeGateway, monkeypatch: pytest.MonkeyPatch) -> Signal:
    gone, agent = Signal(), letta.agent

    def read(agent_id: str) -> Agent:
        gone.set()
        return agent(agent_id)

    monkeypatch.setattr(letta, "agent", read)
    return gone


@pytest.mark.parametrize("tools", [(CALL,), (ToolSpec("clock"),)], ids=["the same client", "another client"])
def test_a_client_that_leaves_before_its_turn_keeps_the_mark_of_a_broken_turn(
    letta: FakeGateway, settings: Settings, monkeypatch: pytest.MonkeyPatch, tools: tuple[ToolSpec, ...]
) -> None:
    conversation = made(letta, settings)
    turn = opens_a_call_and_breaks_off(letta, conversation)
    with monkeypatch.context() as patch:
        gone = leaves_when_the_agent_is_read(letta, patch)
        with suppress(errors.ClientGone):
            list(conversation.events(turn_of(HELLO, tools=tools), gone))
    letta.calls.clear()
    list(conversation.events(turn, Signal()))
    assert "runs_under_way" in letta.calls


def test_an_action_of_the_operator_keeps_the_mark_of_a_broken_turn(letta: FakeGateway, settings: Settings) -> None:
    parts = assemble_parts(settings, letta)
    conversation = parts.conversation
    turn = opens_a_call_and_breaks_off(letta, conversation)
    parts.offering.resync_tools(letta.agents()[0].id, (CALL,))
    letta.calls.clear()
    list(conversation.events(turn, Signal()))
    assert "runs_under_way" in letta.calls


def test_nothing_is_sent_for_a_client_that_leaves_while_a_run_is_waited_for(
    letta: FakeGateway, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation = made(letta, settings)
    turn = opens_a_call_and_breaks_off(letta, conversation)
    sent = len(letta.prompts)
    gone = Signal()

    def runs_under_way(agent_id: str) -> list[str]:
        gone.set()
        return ["run-1"]

    monkeypatch.setattr(letta, "runs_under_way", runs_under_way)
    with pytest.raises(errors.ClientGone):
        list(conversation.events(turn, gone))
    assert len(letta.prompts) == sent


def test_an_answer_aside_is_not_lost_if_its_helper_cannot_be_removed(letta: FakeGateway, ask: Ask) -> None:
    letta.fails(errors.LettaTimeout("It is slow."), at="delete_agent")
    letta.will_say("A title")
    assert ask(aside=True)[0] == Text("A title")


@pytest.mark.parametrize(("sleeptime", "rule"), [(False, "requires_approval"), (True, "exit_loop")])
def test_calls_of_an_agent_with_sleeptime_are_not_held_when_no_answer_frees_them(
    settings: Settings, sleeptime: bool, rule: str
) -> None:
    letta = FakeGateway(replace(FEATURES, version=(0, 12, 1), tool_returns=False))
    agent = letta.has_agent("Ada", "memgpt_v2_agent", sleeptime=sleeptime)
    list(made(letta, settings).events(turn_of(HELLO, tools=(CALL,)), Signal()))
    assert [one["type"] for one in letta.agent(agent.id).rules] == [rule]


# --- waiting --------------------------------------------------------------------------------------------------


def asks_for_weather(letta: FakeGateway, conversation: Conversation) -> None:
    """A client asks, and the agent calls the client's tool."""
    letta.will(AgentCall(new_id("message"), "call_1", "weather", "{}", True), Stopped("requires_approval"))
    events = list(conversation.events(turn_of(HELLO, tools=(CALL,)), Signal()))
    assert any(isinstance(event, ToolCall) for event in events)


def test_a_turn_that_waits_for_another_conversations_result_says_so_before_it(
    letta: FakeGateway, settings: Settings
) -> None:
    conversation, trace = made(letta, settings), Trace()
    set_current_trace(trace)
    asks_for_weather(letta, conversation)
    assert trace.waits == {}
    letta.will_say("Hi")
    events = list(conversation.events(turn_of(Message("user", "Hi")), Signal()))
    assert events[:2] == [Notice("waiting for another client's tool result"), MethodChosen("approval")]
    assert [*trace.waits] == ["another client's tool result"]


def test_nobody_waits_for_the_result_of_a_call_whose_client_left_before_it(
    letta: FakeGateway, settings: Settings
) -> None:
    """The server could not cancel the run, which ended with a call."""
    conversation, gone = made(letta, settings), Signal()
    call = AgentCall(new_id("message"), "call_1", "weather", "{}", True)
    letta.will(gone.set, call, Stopped("requires_approval"))
    list(conversation.events(turn_of(HELLO, tools=(CALL,)), gone))
    letta.will_say("Hi")
    events = list(conversation.events(turn_of(Message("user", "Hi")), Signal()))
    assert not any(isinstance(event, Notice) for event in events)


def test_a_turn_that_waits_for_another_turn_says_so(letta: FakeGateway, settings: Settings) -> None:
    parts, trace = assemble_parts(settings, letta), Trace()
    set_current_trace(trace)
    letta.will_say("Hi")
    events = parts.conversation.events(turn_of(HELLO), Signal())
    with parts.hold(letta.agents()[0].id):
        assert next(events) == Notice("waiting for another turn")
    assert [event for event in events if isinstance(event, Text | Notice)] == [Text("Hi")]
    assert [*trace.waits] == ["another turn"]


def test_a_turn_that_waits_for_a_run_under_way_says_so(letta: FakeGateway, settings: Settings) -> None:
    conversation = made(letta, settings)
    turn = opens_a_call_and_breaks_off(letta, conversation)
    trace = Trace()
    set_current_trace(trace)
    letta.under_way.append("run-1")
    letta.will_say("Sun.")
    events = conversation.events(turn, Signal())
    assert next(events) == Notice("waiting for a run under way")
    letta.under_way.clear()
    assert [event for event in events if isinstance(event, Text | Notice)] == [Text("Sun.")]


def test_a_free_agent_is_not_waited_for(letta: FakeGateway, settings: Settings) -> None:
    trace = Trace()
    set_current_trace(trace)
    events = list(made(letta, settings).events(turn_of(HELLO), Signal()))
    assert not any(isinstance(event, Notice) for event in events)
    assert trace.waits == {}


def test_twenty_forced_calls_in_turn_hold_up_nobody(letta: FakeGateway, settings: Settings) -> None:
    conversation, trace = made(letta, settings), Trace()
    set_current_trace(trace)
    for number in range(20):
        spec = ToolSpec(f"Schema{number}")
        letta.will(AgentCall(new_id("message"), "call_1", spec.name, "{}", True), Stopped("requires_approval"))
        forced = turn_of(HELLO, tools=(spec,), tool_choice=ToolChoice("function", spec.name))
        events = list(conversation.events(forced, Signal()))
        assert [event.name for event in events if isinstance(event, ToolCall)] == [spec.name]
    assert trace.waits == {}


# --- receipts -------------------------------------------------------------------------------------------------


def test_a_receipt_for_a_call_of_the_bridge_is_recorded_and_not_heard(letta: FakeGateway, settings: Settings) -> None:
    conversation = made(letta, settings)
    letta.will_say("All done.")
    (end,) = [
        event for event in conversation.events(turn_of(HELLO, tools=(ENDING,)), Signal()) if isinstance(event, ToolCall)
    ]
    receipt = Message("tool", "Submission recorded (verified): All done.", tool_call_id=end.id)
    so_far = (HELLO, Message("assistant", tool_calls=(end,)), receipt)
    events = list(conversation.events(turn_of(*so_far, tools=(ENDING,)), Signal()))
    kept = EndingResults((ToolResult(end.id, receipt.text, name=end.name, arguments=end.arguments),))
    assert events == [kept, MethodChosen("none"), Text("Done."), Stopped("end_turn")]
    events = list(conversation.events(turn_of(*so_far, Message("user", "Next."), tools=(ENDING,)), Signal()))
    assert events[0] == kept
    assert [prompt.texts for prompt in letta.prompts] == [["Hello"], ["Next."]]
