"""Plain text becomes the call by which a client expects a turn to end."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import jsonschema
import pytest

from bridge.interception.ending import end_with_call, ending_results, find_ending_tool, without_ending_results
from bridge.turn import (
    AgentEvent,
    NewInput,
    Notice,
    PlainCallIds,
    Reasoning,
    Stopped,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Used,
    UserMessage,
)

END = ToolSpec("attempt_completion", parameters={"properties": {"result": {"type": "string"}}, "required": ["result"]})
OTHER = ToolCall("call_1", "read_file", "{}")
STOP = Stopped("end_turn")
IDS = PlainCallIds()


def ended(events: Iterable[AgentEvent], tool: ToolSpec = END) -> list[AgentEvent]:
    return list(end_with_call(iter(events), tool, IDS))


def test_text_that_ends_the_turn_becomes_the_call() -> None:
    thought, used, call, stop = ended([Reasoning("hm"), Text("All "), Text("done"), Used(1, 2), STOP])
    assert (thought, used, stop) == (Reasoning("hm"), Used(1, 2), STOP)
    assert isinstance(call, ToolCall)
    assert (call.name, json.loads(call.arguments)) == ("attempt_completion", {"result": "All done"})
    assert IDS.is_ending_id(call.id)


def test_texts_of_several_messages_are_separated_by_an_empty_line() -> None:
    call, _ = ended([Text("All ", "m1"), Text("done.", "m1"), Text("Bye.", "m2"), STOP])
    assert isinstance(call, ToolCall)
    assert json.loads(call.arguments) == {"result": "All done.\n\nBye."}


def test_text_before_a_call_stays_as_it_was() -> None:
    events = [Text("Let me ", "m1"), Text("look", "m1"), OTHER, STOP]
    assert ended(events) == events


def test_text_after_a_call_stays_text() -> None:
    events = [OTHER, Text("so"), STOP]
    assert ended(events) == events


@pytest.mark.parametrize("reason", ["max_steps", "max_tokens_exceeded"])
def test_an_agent_that_was_cut_short_has_not_finished(reason: str) -> None:
    """With the call, the client would show its user that the task is done."""
    events = [Text("Let me "), Text("look"), Stopped(reason)]
    assert ended(events) == events


def test_a_notice_is_passed_on_at_once() -> None:
    events = end_with_call(iter([Text("All done"), Notice("waiting"), STOP]), END, IDS)
    assert next(events) == Notice("waiting")


def test_a_turn_without_text_stays_as_it_is() -> None:
    assert ended([STOP]) == [STOP]


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        ({"properties": {"result": {"type": "string"}}, "required": ["result"]}, {"result": "T"}),
        (
            {
                "properties": {
                    "kind": {"enum": ["ok", "bad"]},
                    "verified": {"type": "boolean"},
                    "note": {"type": "string"},
                    "files": {"type": "array", "items": {"type": "string"}},
                    "extra": {"type": "string"},
                },
                "required": ["kind", "verified", "note", "files"],
            },
            {"kind": "ok", "verified": True, "note": "T", "files": []},
        ),
        ({"properties": {"summary": {"type": ["string", "null"]}}}, {"summary": "T"}),
        ({"properties": {"code": {"type": ["integer", "null"]}}, "required": ["code"]}, {"code": None}),
        ({"properties": {"n": {"type": "integer", "default": 7}}, "required": ["n"]}, {"n": 7}),
        ({}, {"result": "T"}),
    ],
)
def test_the_arguments_are_valid_by_the_tools_schema(schema: dict[str, Any], arguments: dict[str, Any]) -> None:
    call, _ = ended([Text("T"), STOP], ToolSpec("submit_and_exit", parameters={"type": "object", **schema}))
    assert isinstance(call, ToolCall)
    assert json.loads(call.arguments) == arguments
    jsonschema.validate(json.loads(call.arguments), {"type": "object", **schema})


def test_the_arguments_fit_what_keywords_of_older_drafts_mean() -> None:
    properties = {
        "kind": {"type": "INTEGER", "nullable": True, "required": True},
        "text": {"type": "STRING", "required": True},
    }
    call, _ = ended([Text("T"), STOP], ToolSpec("submit_and_exit", parameters={"properties": properties}))
    assert isinstance(call, ToolCall)
    assert json.loads(call.arguments) == {"kind": None, "text": "T"}


def test_only_a_tool_of_the_request_ends_a_turn() -> None:
    assert find_ending_tool([ToolSpec("read_file"), END], {"attempt_completion"}) is END
    assert find_ending_tool([ToolSpec("read_file")], {"attempt_completion"}) is None


def heard(*results: ToolResult) -> NewInput:
    """Returns what the agent gets of these results."""
    new_input = NewInput((UserMessage("context"),), results)
    return without_ending_results(new_input, ending_results(new_input, IDS))


@pytest.mark.parametrize(
    "words",
    [
        "The user has provided feedback on the results.\n<feedback>\nTry again\n</feedback>",
        "<user_message>\nTry again\n</user_message>",
        '{"status": "denied", "message": "The user denied this.", "feedback": "Try again"}',
        '{"status": "error", "message": "The tool execution failed", "error": "There are open todos."}',
        "The tool failed:\n<error>\nThere are open todos.\n</error>",
    ],
    ids=["feedback", "a user's message", "denied with feedback", "an error", "an error in marks"],
)
def test_what_a_person_wrote_and_why_the_end_is_not_accepted_become_messages(words: str) -> None:
    other = ToolResult("call_0", "milk")
    expected = NewInput((UserMessage(words), UserMessage("context")), (other,))
    assert heard(other, ToolResult(IDS.new_ending_id(), words)) == expected


def test_a_result_that_the_client_calls_an_error_becomes_a_message() -> None:
    failed = ToolResult(IDS.new_ending_id(), "There are open todos.", is_error=True)
    assert heard(failed).user_messages == (UserMessage("There are open todos."), UserMessage("context"))


@pytest.mark.parametrize(
    "receipt",
    [
        "",
        "(empty)",
        "Submission recorded (verified): All done.",
        "Task was interrupted before this tool call could be completed.",
        '{"status": "approved", "message": "Good"}',
        '{"success": true, "feedback": ""}',
        "<feedback>\n</feedback>",
        "[1]",
        pytest.param("[" * 100_000, id="too deep"),
    ],
)
def test_a_receipt_never_reaches_the_agent(receipt: str) -> None:
    assert heard(ToolResult(IDS.new_ending_id(), receipt)) == NewInput((UserMessage("context"),))


def test_the_result_of_a_call_that_the_agent_made_reaches_it_whatever_it_says() -> None:
    receipt = ToolResult("call_1", "Submission recorded (verified): All done.")
    assert heard(receipt) == NewInput((UserMessage("context"),), (receipt,))


def test_an_argument_that_can_not_be_given_does_not_get_the_text() -> None:
    tool = ToolSpec("finish", "", {"type": "object", "properties": {"old": False, "new": {"type": "string"}}})
    call, _ = ended([Text("Done."), STOP], tool)
    assert isinstance(call, ToolCall)
    assert json.loads(call.arguments) == {"new": "Done."}
