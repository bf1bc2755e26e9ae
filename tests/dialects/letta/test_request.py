from __future__ import annotations

from typing import Any

import pytest

from bridge.dialects.base import RequestRules
from bridge.dialects.letta.request import Place, is_for_the_bridge, parse_request, wants_stream
from bridge.dialects.openai.call_ids import CALL_IDS
from bridge.errors import InvalidRequest
from bridge.turn import Turn, UserMessage
from tests.sse_checker import Json

AGENT = "agent-12345678-1234-1234-1234-123456789001"
REQUEST = "message-12345678-1234-1234-1234-123456789001"
CALL = CALL_IDS.id_in_message(REQUEST, 0)
TOOL: Json = {"name": "read", "description": "Reads.", "parameters": {"type": "object", "properties": {}}}
USER: Json = {"role": "user", "content": "Hi"}


def parse(*messages: Json, **fields: Any) -> Turn:
    body = {"messages": list(messages), "client_tools": [TOOL], **fields}
    return parse_request(body, Place(AGENT), RequestRules())[0]


def answer(**fields: Any) -> Json:
    return {"type": "approval", "approvals": [{"tool_call_id": CALL, **fields}]}


def test_a_message_with_tools_is_a_turn() -> None:
    turn = parse({"role": "system", "content": "Be short."}, USER)
    assert turn.model == AGENT
    assert turn.new_input.user_messages == (UserMessage("Be short.", role="system"), UserMessage("Hi"))
    (tool,) = turn.tools
    assert (tool.name, tool.description, tool.place) == ("read", "Reads.", "client_tools[0].parameters")
    assert (turn.session, turn.answers_all_calls, turn.comes_once) == ("letta:default", True, False)


def test_a_message_may_have_no_type() -> None:
    assert parse({**USER, "type": None}).new_input.user_messages == (UserMessage("Hi"),)


def test_the_parts_of_a_text_are_joined() -> None:
    parts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    assert parse({"role": "user", "content": parts}).new_input.user_messages == (UserMessage("one\ntwo"),)
    assert parse(input="Hi", messages=None).new_input.user_messages == (UserMessage("Hi"),)


def test_pictures_of_messages_and_of_results_reach_the_agent() -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    (said,) = parse({"role": "user", "content": [picture]}).new_input.user_messages
    assert [(image.media_type, image.data) for image in said.images] == [("image/png", "aGk=")]
    turn = parse(answer(type="tool", tool_return=[{"type": "text", "text": "a"}, picture], status="success"))
    assert turn.new_input.results[0].text == "a"
    assert len(turn.new_input.user_messages[0].images) == 1


def test_an_answer_is_the_result_of_its_call() -> None:
    turn = parse(answer(type="tool", tool_return="text", status="error"))
    (result,) = turn.new_input.results
    assert (result.call_id, result.text, result.is_error) == (CALL, "text", True)
    assert (turn.known_calls, turn.closed_calls, turn.comes_once) == ({CALL}, 1, True)


@pytest.mark.parametrize(
    ("decision", "text"),
    [
        ({"type": "approval", "approve": False, "reason": "no"}, "Error: request to call tool denied. User reason: no"),
        ({"approve": False}, "Error: request to call tool denied. User reason: None"),
        ({"type": "approval", "approve": True}, "Tool not found"),
    ],
)
def test_a_decision_is_the_result_that_letta_makes_of_it(decision: Json, text: str) -> None:
    (result,) = parse(answer(**decision)).new_input.results
    assert (result.text, result.is_error) == (text, True)


def test_the_older_form_decides_on_the_call_of_its_request() -> None:
    item = {"type": "approval", "approve": False, "approval_request_id": REQUEST, "reason": "no"}
    assert is_for_the_bridge({"messages": [item]})
    assert parse(item).new_input.results[0].call_id == CALL


def test_the_first_answer_to_a_call_counts() -> None:
    turn = parse(answer(tool_return="one"), answer(tool_return="two"))
    assert [result.text for result in turn.new_input.results] == ["one"]
    assert turn.closed_calls == 1


def test_a_result_may_have_an_empty_decision_beside_it() -> None:
    (result,) = parse(answer(type="tool", tool_return="text", approve=None)).new_input.results
    assert result.text == "text"


def test_a_stale_call_is_denied_together_with_a_new_message() -> None:
    turn = parse(answer(type="approval", approve=False, reason="stale"), USER)
    assert [one.call_id for one in turn.new_input.results] == [CALL]
    assert turn.new_input.user_messages == (UserMessage("Hi"),)


def test_the_ids_of_messages_say_that_the_same_request_is_a_repeat() -> None:
    assert parse({**USER, "otid": "one"}).comes_once
    assert not parse(USER).comes_once


@pytest.mark.parametrize(
    ("body", "is_ours"),
    [
        ({"messages": [USER]}, False),
        ({"messages": [USER], "client_tools": []}, False),
        ({"messages": [USER], "client_tools": [TOOL]}, True),
        ({"messages": [answer(type="tool", tool_return="x")]}, True),
        ({"messages": [{"type": "approval", "approvals": [{"tool_call_id": "call_of_letta"}]}]}, False),
        ({"messages": [{"type": "approval", "approve": True, "approval_request_id": "x"}]}, False),
        ({"messages": [{"type": "approval", "approvals": "x"}, 3, None]}, False),
        ({"messages": "x"}, False),
    ],
)
def test_only_client_tools_and_answers_to_their_calls_are_for_the_bridge(body: Json, is_ours: bool) -> None:
    assert is_for_the_bridge(body) is is_ours


@pytest.mark.parametrize(
    ("place", "streaming", "streams"),
    [
        (Place(AGENT), None, False),
        (Place(AGENT), True, True),
        (Place(AGENT, streams=True), None, True),
        (Place(AGENT, streams=True), False, False),
        (Place(AGENT, always_streams=True), False, True),
    ],
)
def test_the_place_says_whether_a_reply_is_a_stream(place: Place, streaming: bool | None, streams: bool) -> None:
    assert wants_stream({} if streaming is None else {"streaming": streaming}, place) is streams


def test_skills_of_the_client_become_instructions() -> None:
    skills = [{"name": "pdf", "description": "Reads PDF files.", "location": "/skills/pdf"}, "x"]
    told = parse(USER, client_skills=skills).new_input.instructions
    assert told == "<available_skills>\n- pdf (/skills/pdf): Reads PDF files.\n</available_skills>"
    assert parse(USER).new_input.instructions == ""


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"messages": "x"}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": [3]}, "messages[0]"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0].text"),
        ({"messages": [{"role": "user", "content": [{"type": "audio"}]}]}, "messages[0].content[0]"),
        ({"messages": [{"role": "user", "content": ["x"]}]}, "messages[0].content[0]"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "base64", "data": "%"}}]}]},
            "messages[0].content[0].source.data",
        ),
        (
            {
                "messages": [
                    {"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "http://x"}}]}
                ]
            },
            "messages[0].content[0].source.url",
        ),
        ({"messages": [{"role": "user", "content": [{"type": "image"}]}]}, "messages[0].content[0].source"),
        ({"messages": [{"type": "approval"}]}, "messages[0].approval_request_id"),
        ({"messages": [{"type": "approval", "approvals": 3}]}, "messages[0].approvals"),
        ({"messages": [{"type": "approval", "approvals": [{}]}]}, "messages[0].approvals[0].tool_call_id"),
        ({"messages": [answer(type="tool")]}, "messages[0].approvals[0].tool_return"),
        ({"messages": [answer(approve="no")]}, "messages[0].approvals[0].approve"),
        ({"messages": [USER], "client_tools": "x"}, "client_tools"),
        ({"messages": [USER], "client_tools": ["x"]}, "client_tools[0]"),
        ({"messages": [USER], "client_tools": [{"type": "function", "function": {}}]}, "client_tools[0].name"),
        ({"messages": [USER], "client_tools": [TOOL, TOOL]}, "client_tools[1].name"),
        ({"messages": [USER], "client_tools": [TOOL] * 5_001}, "client_tools"),
        ({"messages": [USER], "streaming": "yes"}, "streaming"),
    ],
)
def test_a_malformed_request_is_refused_by_its_place(body: Json, param: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse_request(body, Place(AGENT), RequestRules())
    assert refused.value.param == param


def test_a_result_that_is_too_long_is_refused() -> None:
    body = {"messages": [answer(type="tool", tool_return="long text")]}
    with pytest.raises(InvalidRequest) as refused:
        parse_request(body, Place(AGENT), RequestRules(longest_result=5))
    assert refused.value.code == "tool_result_too_large"
