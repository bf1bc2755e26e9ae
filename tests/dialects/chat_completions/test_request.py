from __future__ import annotations

import contextlib
from typing import Any

import pytest

from bridge.dialects.base import RequestRules
from bridge.dialects.chat_completions.request import ROLES, parse_chat_request, parse_transcript, wants_usage
from bridge.dialects.openai.call_ids import CALL_IDS
from bridge.dialects.openai.known_transcripts import KnownTranscripts
from bridge.dialects.openai.transcript import Transcript
from bridge.errors import InvalidRequest
from bridge.turn import Message, NewInput, ToolCall, Turn, UserMessage

RULES = RequestRules()
HELLO = Turn("Ada", NewInput((UserMessage("Hello"),)), call_ids=CALL_IDS)
USER = {"role": "user", "content": "Hello"}


def body(**fields: Any) -> dict[str, Any]:
    return {"model": "Ada", "messages": [USER], **fields}


def message(**fields: Any) -> dict[str, Any]:
    return body(messages=[{"role": "user", "content": "Hello", **fields}])


def parse(value: Any) -> Turn:
    return parse_chat_request(value, RULES)


def transcript(value: Any) -> Transcript:
    return parse_transcript(value, RULES, KnownTranscripts()).messages


def text_of(content: Any, role: str = "user") -> str:
    return transcript(message(role=role, content=content))[0].text


# --- refused requests -------------------------------------------------------------------------------------

BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"messages": [USER]}, "model", "name or id of an agent"),
    (body(model=None), "model", "name or id of an agent"),
    (body(model=7), "model", "name or id of an agent"),
    (body(model=""), "model", "name or id of an agent"),
    (body(model="  "), "model", "name or id of an agent"),
    (body(model=["Ada"]), "model", "name or id of an agent"),
    ({"model": "Ada"}, "messages", "array with at least one message"),
    (body(messages=None), "messages", "array with at least one message"),
    (body(messages=[]), "messages", "array with at least one message"),
    (body(messages={}), "messages", "array with at least one message"),
    (body(messages="Hello"), "messages", "array with at least one message"),
    (body(messages=["Hello"]), "messages[0]", "must be an object"),
    (body(messages=[USER, None]), "messages[1]", "must be an object"),
    (body(messages=[USER, {}]), "messages[1].role", "must be one of system, developer, user"),
    (message(role="robot"), "messages[0].role", "must be one of"),
    (message(role=None), "messages[0].role", "must be one of"),
    (message(role=1), "messages[0].role", "must be one of"),
    (message(role=["user"]), "messages[0].role", "must be one of"),
    (message(role={"user": 1}), "messages[0].role", "must be one of"),
    (message(content=7), "messages[0].content", "string or an array"),
    (message(content=True), "messages[0].content", "string or an array"),
    (message(content={"type": "text", "text": "Hello"}), "messages[0].content", "string or an array"),
    (message(content=[7]), "messages[0].content[0]", "must be an object"),
    (message(content=[None]), "messages[0].content[0]", "must be an object"),
    (message(content=[{"type": "text"}]), "messages[0].content[0].text", "must be a string"),
    (message(content=[{"type": "text", "text": 7}]), "messages[0].content[0].text", "must be a string"),
    (message(content=[{}]), "messages[0].content[0].text", "must be a string"),
    (message(content=[{"type": ["text"], "text": "a"}]), "messages[0].content[0]", "messages[0].content[0]"),
    (message(role="tool"), "messages[0].tool_call_id", "the id of the tool call"),
    (message(role="tool", tool_call_id=7), "messages[0].tool_call_id", "the id of the tool call"),
    (
        message(role="tool", tool_call_id="call_1", content=[{"type": "input_audio"}]),
        "messages[0].content[0]",
        "messages[0].content[0]",
    ),
    (body(stream="yes"), "stream", "must be true or false"),
    (body(stream=1), "stream", "must be true or false"),
]


@pytest.mark.parametrize(("sent", "param", "words"), BAD)
def test_a_bad_field_is_refused_by_its_name(sent: dict[str, Any], param: str, words: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse(sent)
    assert (caught.value.status, caught.value.type, caught.value.param) == (400, "invalid_request_error", param)
    assert words in caught.value.message
    assert f"`{param}`" in caught.value.message


def test_a_refusal_repeats_only_a_little_of_the_request() -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse(message(content=[{"type": "x" * 1000}]))
    assert len(caught.value.message) < 200


# --- accepted requests ------------------------------------------------------------------------------------


def test_the_smallest_request_is_a_turn() -> None:
    assert parse(body()) == HELLO


@pytest.mark.parametrize(("role", "taken"), ROLES.items())
def test_every_role_of_openai_is_accepted(role: str, taken: str) -> None:
    assert transcript(message(role=role, tool_call_id="call_1"))[0].role == taken


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("Hello", "Hello"),
        ("", ""),
        (None, ""),
        ([], ""),
        ([{"type": "text", "text": "Hello"}], "Hello"),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\n\nb"),
        ([{"type": "text", "text": ""}, {"type": "text", "text": "b"}], "b"),
        ([{"type": "input_text", "text": "a", "cache_control": {"type": "ephemeral"}}], "a"),
        ([{"text": "no type"}], "no type"),
        (["a", "b"], "a\n\nb"),
    ],
)
def test_content_is_a_string_or_parts_of_text(content: Any, text: str) -> None:
    assert text_of(content) == text


def test_a_message_without_content_is_empty() -> None:
    assert transcript(body(messages=[USER, {"role": "assistant"}]))[1].text == ""


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([{"type": "refusal", "refusal": "No."}], "No."),
        ([{"type": "output_text", "text": "a", "annotations": [], "tool_calls": [], "role": "assistant"}], "a"),
        ([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}], "a"),
    ],
)
def test_the_echo_of_an_answer_may_hold_parts_of_all_kinds(content: Any, text: str) -> None:
    assert text_of(content, role="assistant") == text


@pytest.mark.fault("bodies too large, too deep, or no JSON")
def test_characters_that_no_database_can_store_are_removed_from_a_text() -> None:
    assert text_of("a\x00b\ud800c\udc00\ud83d\ude00") == "ab\ufffdc\ufffd\U0001f600"


@pytest.mark.fault("bodies too large, too deep, or no JSON")
def test_halves_of_a_character_in_two_parts_are_not_joined() -> None:
    assert text_of([{"type": "text", "text": "\ud83d"}, {"type": "text", "text": "\ude00"}]) == "\ufffd\n\n\ufffd"


def test_the_name_beside_a_result_is_storable_too() -> None:
    result = {"role": "tool", "tool_call_id": "call_1", "name": "a\ud800", "content": "one"}
    assert transcript(body(messages=[result]))[0].name == "a\ufffd"


def test_the_name_of_a_model_is_storable_too() -> None:
    assert parse(body(model=" Ada\ud800\x00 ")).model == "Ada\ufffd"


def test_ids_of_calls_are_storable_and_still_belong_together() -> None:
    call = {"id": "call_\ud800\x00", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    result = {"role": "tool", "tool_call_id": "call_\ud800\x00", "content": "one"}
    messages = [{"role": "user", "content": "Read"}, {"role": "assistant", "tool_calls": [call]}, result]
    (found,) = parse(body(messages=messages)).new_input.results
    assert (found.call_id, found.name) == ("call_\ufffd", "read")


def test_calls_and_results_keep_their_ids() -> None:
    call = {"id": "call_1", "type": "function", "index": 0, "function": {"name": "read", "arguments": '{"a":1}'}}
    messages = transcript(
        body(
            messages=[
                USER,
                {"role": "assistant", "content": None, "tool_calls": [call], "reasoning_content": "hm"},
                {"role": "tool", "tool_call_id": "call_1", "name": "read", "content": [{"type": "text", "text": "x"}]},
            ]
        )
    )
    assert messages[1].tool_calls == (ToolCall("call_1", "read", '{"a":1}'),)
    assert messages[2] == Message("tool", "x", name="read", tool_call_id="call_1")


@pytest.mark.parametrize("calls", [None, [], "x", 7, [None], [{}], [{"function": None}], [{"function": "x"}]])
def test_malformed_calls_in_an_echoed_answer_are_ignored(calls: Any) -> None:
    messages = transcript(body(messages=[USER, {"role": "assistant", "content": "", "tool_calls": calls}]))
    assert messages[1].tool_calls == ()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"a": [None, "é"]}, '{"a": [null, "\\u00e9"]}'),
        (None, "{}"),
        ('{"a": "\ud800"}', '{"a": "\ufffd"}'),
        (r'{"a": "\ud800"}', '{"a": "\ufffd"}'),
        ("", ""),
    ],
)
def test_echoed_arguments_are_a_json_text_that_can_be_stored(arguments: Any, text: str) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": arguments}}
    messages = transcript(body(messages=[USER, {"role": "assistant", "content": None, "tool_calls": [call]}]))
    assert messages[1].tool_calls == (ToolCall("call_1", "read", text),)


def test_a_wish_for_usage_that_is_not_a_boolean_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="must be true or false") as caught:
        wants_usage(body(stream_options={"include_usage": "yes"}))
    assert caught.value.param == "stream_options.include_usage"


@pytest.mark.parametrize("options", [None, {}, {"include_usage": None}, {"include_obfuscation": False}, "x", 7, []])
def test_usage_is_streamed_only_when_asked_for(options: Any) -> None:
    assert wants_usage(body(stream=True, stream_options=options)) is False


def test_streaming_and_its_usage_can_be_asked_for() -> None:
    asked = body(stream=True, stream_options={"include_usage": True})
    assert (parse(asked).stream, wants_usage(asked)) == (True, True)


def test_unknown_fields_are_accepted_everywhere() -> None:
    unusual = {
        "role": "user",
        "content": [{"type": "text", "text": "Hello", "cache_control": {}}],
        "name": 7,
        "annotations": [],
        "audio": None,
        "refusal": None,
        "provider_specific_fields": {"a": [1]},
    }
    turn = parse(
        {
            "model": "Ada",
            "messages": [unusual],
            "seed": 12345678901234567890123456789,
            "temperature": 1e308,
            "n": 1,
            "store": False,
            "metadata": {"a": {"b": None}},
            "max_completion_tokens": 10,
            "reasoning_effort": "high",
            "x-own": [[]],
        }
    )
    assert turn == HELLO


def test_every_refusal_is_one_of_our_errors() -> None:
    """Any value of a known field is accepted or refused. No other error is raised."""
    values: list[Any] = [None, True, 0, -1.5, 10**30, "", "x", [], [[]], {}, {"a": []}, [{}], [None], {"type": "text"}]
    for value in values:
        for sent in (
            body(model=value),
            body(messages=value),
            body(stream=value),
            body(stream_options=value),
            body(temperature=value, max_tokens=value),
            body(stop=value),
            message(role=value),
            message(content=value),
            message(content=[value]),
            message(content=[{"type": value, "text": value}]),
            message(name=value, tool_call_id=value),
            body(messages=[USER, {"role": "assistant", "content": value, "tool_calls": value}]),
            body(messages=[USER, {"role": "assistant", "tool_calls": [{"id": value, "function": {"name": value}}]}]),
        ):
            with contextlib.suppress(InvalidRequest):
                parse(sent)
