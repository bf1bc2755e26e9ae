"""An agent whose reply does not have the wanted form is asked again, with messages that are told apart later."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from app import assemble_parts
from bridge.config import read_settings
from bridge.interception.stored_messages import LOOK_BACK
from bridge.letta.gateway import Say
from bridge.turn import FormatChecked, OriginalReply, ReplyFormat, Stopped, Text, ToolCall, TurnEvent, Used
from tests.fakes import FakeGateway, Prompt
from tests.interception.attempts import TURN, Attempts, call_of, called, texts, with_result

WANTED = replace(TURN, reply_format=ReplyFormat("in JSON"))
VALID = FormatChecked("valid")


@pytest.fixture(params=["auto", "native", "approval", "rewrite", "relay", "message", "prompt"])
def method(request: pytest.FixtureRequest, environment: dict[str, str], letta: FakeGateway) -> str:
    if request.param in ("native", "relay"):
        letta._features = replace(letta._features, version=(0, 16, 8), client_tools=True, message_rewrite=False)
    if request.param == "relay":
        (kept,) = letta._agents.values()
        kept.agent = replace(kept.agent, type="memgpt_v2_agent")
    environment["BRIDGE_METHOD"] = request.param
    return str(request.param)


def attempts_of(letta: FakeGateway, environment: dict[str, str], **more: str) -> Attempts:
    return Attempts(letta, read_settings({**environment, **more}))


def sent(prompt: Prompt) -> list[tuple[str, str]]:
    return [(one.role, one.text) for one in prompt.messages if isinstance(one, Say) and "Tools:" not in one.text]


def otids(prompt: Prompt) -> list[str]:
    return [one.otid for one in prompt.messages if isinstance(one, Say) and one.otid]


def test_the_agent_is_told_the_fault_by_a_message_that_is_not_the_users(
    letta: FakeGateway, environment: dict[str, str], method: str
) -> None:
    letta.will_say("I don't know.")
    letta.will_say('{"a": 1}')
    events = attempts_of(letta, environment).run(WANTED)
    assert [event for event in events if not isinstance(event, Used)] == [
        OriginalReply("I don't know.", "it contains no JSON value instead of one"),
        VALID,
        Text('{"a": 1}'),
        Stopped("end_turn"),
    ]
    first, second = letta.prompts
    assert sent(first) == [("user", "Hello")]
    ((role, words),) = sent(second)
    assert role == "system"
    assert "it contains no JSON value instead of one" in words


def test_the_correction_has_an_id_of_its_own_that_belongs_to_the_turn(
    letta: FakeGateway, environment: dict[str, str]
) -> None:
    for _ in range(3):
        letta.will_say("no")
    attempts_of(letta, environment, BRIDGE_FORMAT_RETRIES="2").run(WANTED)
    assert [otids(prompt) for prompt in letta.prompts] == [["turn-1-0"], ["turn-1-format1-0"], ["turn-1-format2-0"]]


@pytest.mark.parametrize(("retries", "runs"), [("0", 1), ("1", 2), ("3", 4)])
def test_the_setting_says_how_often_an_agent_is_asked(
    letta: FakeGateway, environment: dict[str, str], retries: str, runs: int
) -> None:
    for _ in range(5):
        letta.will_say("no")
    events = attempts_of(letta, environment, BRIDGE_FORMAT_RETRIES=retries).run(WANTED)
    assert len(letta.prompts) == runs
    assert FormatChecked("invalid") in events
    assert texts(events) == ["no"]


def test_a_call_in_the_second_reply_gets_its_result(letta: FakeGateway, environment: dict[str, str]) -> None:
    attempts = attempts_of(letta, environment)
    letta.will_say("no")
    letta.will(call_of("weather"), Stopped("requires_approval"))
    events = attempts.run(WANTED)
    assert called(events) == ["weather"]
    letta.will_say('{"a": 1}')
    assert texts(attempts.run(with_result(WANTED, events, "sunny"))) == ['{"a": 1}']


def test_nobody_is_asked_again_for_a_client_that_has_left(letta: FakeGateway, environment: dict[str, str]) -> None:
    gone = threading.Event()
    letta.will(Text("no"), gone.set, Stopped("end_turn"))
    events = assemble_parts(read_settings(environment), letta).conversation.events(WANTED, gone)
    assert FormatChecked("invalid") in list(events)
    assert len(letta.prompts) == 1


def test_a_request_aside_is_asked_again_too(letta: FakeGateway, environment: dict[str, str]) -> None:
    letta.will_say("no")
    letta.will_say('Here: {"a": 1}')
    assert texts(attempts_of(letta, environment).run(replace(WANTED, aside=True, tools=()))) == ['{"a": 1}']
    assert len({prompt.agent_id for prompt in letta.prompts}) == 1


def test_the_json_becomes_the_argument_of_an_ending_tool(letta: FakeGateway, environment: dict[str, str]) -> None:
    letta.will_say("no")
    letta.will_say('Here: {"a": 1}')
    events = attempts_of(letta, environment, BRIDGE_FINAL_TOOLS="weather").run(WANTED)
    (call,) = [event for event in events if isinstance(event, ToolCall)]
    assert (call.name, call.arguments) == ("weather", '{"result": "{\\"a\\": 1}"}')
    assert texts(events) == []


def test_the_tokens_of_both_runs_are_summed_and_the_prompt_is_that_of_the_last_step(
    letta: FakeGateway, environment: dict[str, str]
) -> None:
    letta.step_sizes = {"step-2": 120}
    letta.will(Text("no"), Used(100, 10, 1, "step-1"), Stopped("end_turn"))
    letta.will(Text("{}"), Used(120, 5, 1, "step-2"), Stopped("end_turn"))
    events = attempts_of(letta, environment).run(WANTED)
    assert [event for event in events if isinstance(event, Used)] == [Used(120, 15, 2, "step-2")]


# --- repeats ----------------------------------------------------------------------------------------------


def outcome_of(events: list[TurnEvent]) -> list[str]:
    return [event.outcome for event in events if isinstance(event, FormatChecked)]


def test_a_repeat_gets_the_second_reply_that_was_lost(letta: FakeGateway, environment: dict[str, str]) -> None:
    attempts = attempts_of(letta, environment)
    letta.will_say("no")
    attempts.lose(WANTED, attempts.answers('{"a": 1}'))
    events = attempts.repeat(WANTED)
    assert (outcome_of(events), texts(events)) == (["valid"], ['{"a": 1}'])
    assert len(letta.prompts) == 2


def test_a_repeat_asks_again_if_no_earlier_attempt_did(letta: FakeGateway, environment: dict[str, str]) -> None:
    attempts = attempts_of(letta, environment)
    attempts.lose(WANTED, attempts.answers("no"))
    letta.will_say('{"a": 1}')
    events = attempts.repeat(WANTED)
    assert (outcome_of(events), texts(events)) == (["valid"], ['{"a": 1}'])
    assert otids(letta.prompts[-1]) == ["turn-1-format1-0"]


def test_a_repeat_does_not_ask_more_often_than_one_attempt_may(letta: FakeGateway, environment: dict[str, str]) -> None:
    attempts = attempts_of(letta, environment)
    letta.will_say("no")
    attempts.lose(WANTED, attempts.answers("still no"))
    events = attempts.repeat(WANTED)
    assert (outcome_of(events), texts(events)) == (["invalid"], ["still no"])
    assert len(letta.prompts) == 2


def test_a_correction_that_a_failed_run_left_out_of_the_context_is_sent_again(
    letta: FakeGateway, environment: dict[str, str]
) -> None:
    attempts = attempts_of(letta, environment)
    known: list[tuple[str, ...]] = []
    letta.will(Text("no"), Stopped("end_turn"), lambda: known.append(attempts.agent.agent.message_ids))
    attempts.lose(WANTED)
    attempts.agent.agent = replace(attempts.agent.agent, message_ids=known[0])
    letta.will_say('{"a": 1}')
    events = attempts.repeat(WANTED)
    assert (outcome_of(events), texts(events)) == (["valid"], ['{"a": 1}'])


def test_a_repeat_counts_a_correction_before_many_steps(letta: FakeGateway, environment: dict[str, str]) -> None:
    attempts = attempts_of(letta, environment)
    letta.will_say("no")
    own_steps = [attempts.stores("tool_call_message"), attempts.stores("tool_return_message", "noted")] * LOOK_BACK
    attempts.lose(WANTED, *own_steps, attempts.answers("still no"))
    events = attempts.repeat(WANTED)
    assert (outcome_of(events), texts(events)) == (["invalid"], ["still no"])
    assert len(letta.prompts) == 2


def test_a_repeat_goes_on_where_the_second_reply_never_came(letta: FakeGateway, environment: dict[str, str]) -> None:
    attempts = attempts_of(letta, environment)
    letta.will_say("no")
    attempts.lose(WANTED)
    letta.will_say('{"a": 1}')
    events = attempts.repeat(WANTED)
    assert (outcome_of(events), texts(events)) == (["valid"], ['{"a": 1}'])
    assert [text for prompt in letta.prompts for _, text in sent(prompt)].count("Hello") == 1
