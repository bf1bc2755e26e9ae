from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bridge.dialects.base import RequestRules
from bridge.dialects.responses.items import added_tools, input_items, read_transcript
from bridge.dialects.responses.tools import parse_offered_tools
from bridge.errors import InvalidRequest
from bridge.turn import Image, Message, ToolCall

PICTURE = "data:image/png;base64,iVBORw0KGgo="
CALL: Any = {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": '{"path": "a"}'}
OUTPUT: Any = {"type": "function_call_output", "call_id": "call_1", "output": "empty"}


def transcript(*items: Any, rules: RequestRules | None = None, **fields: Any) -> list[Message]:
    body = {"input": [*items], **fields}
    given = input_items(body)
    tools = parse_offered_tools(body, added_tools(given), 512)
    return read_transcript(body, given, tools, rules or RequestRules())


def test_a_string_is_one_message_of_the_user() -> None:
    assert input_items({"input": "Hi"}) == [{"role": "user", "content": "Hi"}]


@pytest.mark.parametrize("kind", [{}, {"type": "message"}, {"type": "message", "id": "msg_1", "status": "completed"}])
@pytest.mark.parametrize(("role", "told"), [("user", "user"), ("developer", "system"), ("system", "system")])
def test_messages_of_each_role_are_read_in_each_form(kind: Any, role: str, told: Any) -> None:
    for content in ("Hi", [{"type": "input_text", "text": "Hi"}]):
        assert transcript({**kind, "role": role, "content": content}) == [Message(told, "Hi")]


def test_instructions_come_before_all_items() -> None:
    assert transcript({"role": "user", "content": "Hi"}, instructions="Be short.")[0] == Message("system", "Be short.")


def test_the_items_of_one_answer_are_joined_once(monkeypatch: pytest.MonkeyPatch) -> None:
    joined: list[Message] = []

    def join(message: Message, **changes: Any) -> Message:
        joined.append(message)
        return replace(message, **changes)

    monkeypatch.setattr("bridge.dialects.responses.items.replace", join)
    found = transcript({"role": "user", "content": "Hi"}, *[CALL] * 1_000, {"role": "user", "content": "Hi"})
    assert (len(found), len(found[1].tool_calls), len(joined)) == (3, 1_000, 1)


def test_items_of_one_answer_are_one_message() -> None:
    answer = [
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"role": "assistant", "content": [{"type": "output_text", "text": "Let me see."}]},
        CALL,
        {"role": "assistant", "content": "And:"},
        {**CALL, "call_id": "call_2"},
    ]
    calls = (ToolCall("call_1", "read", '{"path": "a"}'), ToolCall("call_2", "read", '{"path": "a"}'))
    assert transcript({"role": "user", "content": "Hi"}, *answer, OUTPUT) == [
        Message("user", "Hi"),
        Message("assistant", "Let me see.\n\nAnd:", tool_calls=calls),
        Message("tool", "empty", tool_call_id="call_1"),
    ]


@pytest.mark.parametrize("reference", [{"type": "item_reference", "id": "msg_1"}, {"id": "msg_1"}])
def test_a_reference_to_an_answer_stands_between_what_was_said_before_and_after_it(reference: Any) -> None:
    one, two = {"role": "user", "content": "One"}, {"role": "user", "content": "Two"}
    assert transcript(one, reference, two) == [Message("user", "One"), Message("assistant"), Message("user", "Two")]


def test_items_of_unknown_types_are_passed_over() -> None:
    odd = [{"type": "compaction", "encrypted_content": "x"}, {"type": "web_search_call", "id": "ws_1"}]
    assert transcript(*odd, {"role": "user", "content": "Hi"}) == [Message("user", "Hi")]


def test_an_output_may_be_parts_with_pictures() -> None:
    parts = [{"type": "input_text", "text": "See:"}, {"type": "input_image", "image_url": PICTURE, "detail": "high"}]
    (message,) = transcript({**OUTPUT, "output": parts})
    assert (message.text, message.images) == ("See:", (Image("image/png", "iVBORw0KGgo=", detail="high"),))


def test_a_call_of_free_text_is_one_of_the_function_that_the_agent_has() -> None:
    call = {"type": "custom_tool_call", "call_id": "call_1", "name": "patch", "input": 'a "b"'}
    output = {"type": "custom_tool_call_output", "call_id": "call_1", "output": "ok"}
    said, result = transcript(call, output)
    assert said.tool_calls == (ToolCall("call_1", "patch", '{"input": "a \\"b\\""}'),)
    assert (result.tool_call_id, result.text) == ("call_1", "ok")


def test_a_call_in_a_namespace_has_the_name_that_the_agent_knows() -> None:
    (message,) = transcript({**CALL, "namespace": "agents"})
    assert message.tool_calls[0].name == "agents__read"


def test_an_output_that_is_too_long_is_refused() -> None:
    with pytest.raises(InvalidRequest) as refused:
        transcript({**OUTPUT, "output": "x" * 11}, rules=RequestRules(longest_result=10))
    assert (refused.value.param, refused.value.code) == ("input[0].output", "tool_result_too_large")


@pytest.mark.parametrize("surrogate", ["\ud800", "a\x00b"])
def test_what_no_database_can_store_is_replaced(surrogate: str) -> None:
    (message,) = transcript({**CALL, "name": surrogate, "arguments": surrogate, "call_id": surrogate})
    written = repr(message)
    assert "\\ud800" not in written
    assert "\\x00" not in written
