"""One test for each common complaint about services like this one.

The agent is a letta_v1_agent of the in-memory server; tests/real has the same turns on real servers. Number 23, the
client that hangs up, needs a connection: tests/web/test_listener.py and tests/real/test_hang_up.py.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from typing import Any

import pytest

from bridge.errors import ModelFailed
from bridge.stubs.source import PLACEHOLDER
from bridge.turn import AgentCall, AgentEvent, Reasoning, Stopped, Text, Used
from tests.actors import Chat, ChatReply
from tests.fakes import FakeGateway

Json = dict[str, Any]
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
HELLO = {"role": "user", "content": "Hello"}
ENDINGS = {"stop", "length", "tool_calls", "content_filter"}


def tool(name: str, parameters: Any = CITY, **more: Any) -> Json:
    return {"type": "function", "function": {"name": name, "description": "A tool.", "parameters": parameters, **more}}


WEATHER, NEWS = tool("get_weather"), tool("get_news")


def held(*calls: tuple[str, str]) -> list[AgentEvent]:
    """Returns the events of a run that stops at these calls of (name, arguments)."""
    message = f"message-{uuid.uuid4()}"
    events = [AgentCall(message, f"call_{n}", name, arguments, True, n) for n, (name, arguments) in enumerate(calls)]
    return [*events, Used(100, 10), Stopped("requires_approval")]


def result(call_id: str, content: Any = "12 degrees", **more: Any) -> Json:
    return {"role": "tool", "tool_call_id": call_id, "content": content, **more}


def ids(reply: ChatReply) -> list[str]:
    return [call["id"] for call in reply.message["tool_calls"]]


def called(chat: Chat, letta: FakeGateway, *calls: tuple[str, str], stream: bool = False, **fields: Any) -> ChatReply:
    letta.will(*held(*(calls or (("get_weather", '{"city": "Oslo"}'),))))
    fields.setdefault("tools", [WEATHER, NEWS])
    return chat.ask(stream=stream, **fields)


def answered(chat: Chat, letta: FakeGateway, reply: ChatReply, *after: Json, **fields: Any) -> ChatReply:
    """Sends the next request, with the client's results."""
    letta.will_say("Thanks")
    fields.setdefault("tools", [WEATHER, NEWS])
    return chat.ask(messages=[HELLO, {"role": "assistant", **reply.message}, *after], **fields)


def deltas(reply: ChatReply) -> list[Json]:
    assert reply.streamed is not None
    return [chunk["choices"][0]["delta"] for chunk in reply.streamed.chunks if chunk["choices"]]


def delivered(letta: FakeGateway) -> list[tuple[str, bool]]:
    """Returns the results (text, success) in the last message to the agent."""
    sent = letta.prompts[-1].messages
    return [(one.text, one.ok) for part in sent if hasattr(part, "results") for one in part.results]


TWO = (("get_weather", '{"city": "Oslo"}'), ("get_news", '{"city": "Rome"}'))


def test_01_every_streamed_call_has_a_stable_index(chat: Chat, letta: FakeGateway) -> None:
    calls = [call for delta in deltas(called(chat, letta, *TWO, stream=True)) for call in delta.get("tool_calls", [])]
    assert [call["index"] for call in calls] == [0, 1]


def test_02_id_type_and_name_are_only_in_the_first_delta_of_a_call(chat: Chat, letta: FakeGateway) -> None:
    calls = [call for delta in deltas(called(chat, letta, *TWO, stream=True)) for call in delta.get("tool_calls", [])]
    for index in (0, 1):
        first, *later = [call for call in calls if call["index"] == index]
        assert first["id"]
        assert first["type"] == "function"
        assert first["function"]["name"]
        assert not any("id" in call or "name" in call["function"] for call in later)


def test_03_the_pieces_of_the_arguments_are_one_json_object(chat: Chat, letta: FakeGateway) -> None:
    calls = [call for delta in deltas(called(chat, letta, stream=True)) for call in delta.get("tool_calls", [])]
    assert json.loads("".join(call["function"]["arguments"] for call in calls)) == {"city": "Oslo"}


def test_04_ids_are_unique_and_short(chat: Chat, letta: FakeGateway) -> None:
    found = [*ids(called(chat, letta, *TWO))]
    found += ids(called(chat, letta, *TWO, stream=True))
    assert len(set(found)) == 4
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,40}", one) for one in found)


@pytest.mark.parametrize("stream", [False, True])
def test_05_the_finish_reason_is_the_right_one_of_openais(chat: Chat, letta: FakeGateway, stream: bool) -> None:
    reply = called(chat, letta, stream=stream)
    assert reply.finish_reason == "tool_calls"
    assert answered(chat, letta, reply, result(ids(reply)[0]), stream=stream).finish_reason == "stop"
    for reason in ("end_turn", "tool_rule", "max_steps", "no_tool_call", "max_tokens_exceeded"):
        letta.will(Text("x"), Stopped(reason))
        assert chat.ask(stream=stream).finish_reason in ENDINGS - {"tool_calls"}


def test_06_only_the_last_chunk_has_a_finish_reason(chat: Chat, letta: FakeGateway) -> None:
    reply = called(chat, letta, stream=True)
    assert reply.streamed is not None
    reasons = [chunk["choices"][0]["finish_reason"] for chunk in reply.streamed.chunks if chunk["choices"]]
    assert reasons == [None] * (len(reasons) - 1) + ["tool_calls"]


@pytest.mark.parametrize("content", [None, "", [], [{"type": "text", "text": ""}]])
def test_07_a_message_of_calls_has_null_content_and_may_be_sent_back_with_any_empty_content(
    chat: Chat, letta: FakeGateway, content: Any
) -> None:
    reply = called(chat, letta)
    assert reply.message["content"] is None
    echoed = {"role": "assistant", **reply.message, "content": content}
    letta.will_say("Thanks")
    assert chat.ask(messages=[HELLO, echoed, result(ids(reply)[0])], tools=[WEATHER]).text == "Thanks"


@pytest.mark.parametrize("arguments", ["", "{}", " "])
def test_08_missing_arguments_are_an_empty_json_object(chat: Chat, letta: FakeGateway, arguments: str) -> None:
    reply = called(chat, letta, ("get_news", arguments), tools=[tool("get_news", None)])
    assert reply.message["tool_calls"][0]["function"]["arguments"] == "{}"


def test_09_broken_arguments_in_the_transcript_are_harmless(chat: Chat, letta: FakeGateway) -> None:
    reply = called(chat, letta)
    reply.message["tool_calls"][0]["function"]["arguments"] = '{"city": "Os'
    assert answered(chat, letta, reply, result(ids(reply)[0])).text == "Thanks"


@pytest.mark.parametrize(
    ("choice", "forced"),
    [
        ("auto", []),
        ("required", ["get_weather", "get_news"]),
        ({"type": "function", "function": {"name": "get_news"}}, ["get_news"]),
    ],
)
def test_10_the_tool_choice_is_enforced_on_the_server(
    chat: Chat, letta: FakeGateway, choice: Any, forced: list[str]
) -> None:
    called(chat, letta, tool_choice=choice)
    (agent,) = letta.whole_agents()
    assert [rule["tool_name"] for rule in agent.rules if rule["type"] == "run_first"] == forced


def test_10_with_the_choice_none_no_tool_is_offered(chat: Chat, letta: FakeGateway) -> None:
    letta.will_say("Hi")
    chat.ask(tools=[WEATHER], tool_choice="none")
    assert letta.prompts[-1].tools == ()


@pytest.mark.parametrize("choice", ["sometimes", {"type": "function", "function": {"name": "unknown"}}, 7])
def test_10_an_invalid_tool_choice_is_refused(chat: Chat, choice: Any) -> None:
    reply = chat.ask(tools=[WEATHER], tool_choice=choice)
    assert reply.status == 400
    assert reply.error is not None
    assert reply.error["param"] == "tool_choice"


def test_11_without_parallel_calls_there_is_one_call_and_the_others_are_answered(
    chat: Chat, letta: FakeGateway
) -> None:
    reply = called(chat, letta, *TWO, parallel_tool_calls=False)
    assert len(reply.message["tool_calls"]) == 1
    assert answered(chat, letta, reply, result(ids(reply)[0]), parallel_tool_calls=False).text == "Thanks"
    assert [ok for _, ok in delivered(letta)] == [True, False]


def test_12_results_may_come_in_any_order_and_before_a_user_message(chat: Chat, letta: FakeGateway) -> None:
    reply = called(chat, letta, *TWO)
    first, second = ids(reply)
    after = (result(second, "news"), result(first, "sun"), {"role": "user", "content": "and now?"})
    assert answered(chat, letta, reply, *after).text == "Thanks"
    assert delivered(letta) == [("sun", True), ("news", True)]
    assert letta.prompts[-1].texts == ["and now?"]


def test_13_a_call_without_a_result_does_not_block_the_agent(chat: Chat, letta: FakeGateway) -> None:
    reply = called(chat, letta, *TWO)
    assert answered(chat, letta, reply, result(ids(reply)[0], "sun")).text == "Thanks"
    assert delivered(letta) == [("sun", True), (PLACEHOLDER, True)]
    called(chat, letta)
    letta.will_say("Hello again")
    assert chat.ask("never mind").text == "Hello again"


def test_14_a_result_of_an_unknown_call_is_refused_with_its_id(chat: Chat, letta: FakeGateway) -> None:
    reply = chat.ask(messages=[HELLO, {"role": "assistant", "content": "Hi"}, result("call_of_somebody_else")])
    assert reply.status == 400
    assert reply.error is not None
    assert "call_of_somebody_else" in reply.error["message"]
    letta.will_say("Hi")
    assert chat.ask().text == "Hi"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("sun", "sun"),
        ("", ""),
        ([{"type": "text", "text": "sun"}, {"type": "text", "text": "rain"}], "sun\n\nrain"),
        ('{"status": "OK", "message": "é😀"}', '{"status": "OK", "message": "é😀"}'),
    ],
)
def test_15_a_result_can_be_text_or_parts(chat: Chat, letta: FakeGateway, content: Any, text: str) -> None:
    reply = called(chat, letta)
    assert answered(chat, letta, reply, result(ids(reply)[0], content)).text == "Thanks"
    assert delivered(letta) == [(text, True)]


def test_15_a_picture_in_a_result_is_shown_beside_it(chat: Chat, letta: FakeGateway) -> None:
    reply = called(chat, letta)
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    assert answered(chat, letta, reply, result(ids(reply)[0], [picture])).text == "Thanks"
    assert any(getattr(part, "images", ()) for part in letta.prompts[-1].messages)


@pytest.mark.parametrize("name", ["mcp--odd-server--get.weather", "a" * 128, "get-weather.v2", "Read", "wetter_ü"])
def test_16_any_name_reaches_the_server_and_comes_back(chat: Chat, letta: FakeGateway, name: str) -> None:
    letta.will_say("Hi")
    chat.ask(tools=[tool(name)])
    (on_server,) = letta.prompts[-1].tools
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", on_server)
    reply = called(chat, letta, (on_server, '{"city": "Oslo"}'), tools=[tool(name)])
    assert reply.message["tool_calls"][0]["function"]["name"] == name


def test_17_any_schema_is_accepted(chat: Chat, letta: FakeGateway) -> None:
    odd = {
        "type": "object",
        "properties": {
            "from": {"type": ["string", "null"]},
            "class": {"$ref": "#/$defs/node"},
            "max-results": {"anyOf": [{"type": "integer"}, {"const": "all"}]},
        },
        "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}},
    }
    arguments = '{"from": null, "class": {"next": {}}, "max-results": "all"}'
    reply = called(chat, letta, ("f", arguments), tools=[tool("f", odd)])
    assert json.loads(reply.message["tool_calls"][0]["function"]["arguments"]) == json.loads(arguments)


def test_18_strict_is_accepted_and_optional_arguments_stay_optional(chat: Chat, letta: FakeGateway) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["a"]}
    reply = called(chat, letta, ("f", '{"a": "x", "b": null}'), tools=[tool("f", schema, strict=True)])
    assert json.loads(reply.message["tool_calls"][0]["function"]["arguments"]) == {"a": "x"}


@pytest.mark.parametrize("tools", [[], None])
def test_19_without_tools_the_bridges_tools_are_detached_before_the_turn(
    chat: Chat, letta: FakeGateway, tools: Any
) -> None:
    letta.will_say("Hi")
    chat.ask(tools=[WEATHER])
    letta.will_say("Hi")
    assert chat.ask(tools=tools).text == "Hi"
    assert letta.prompts[-1].tools == ()


def test_19_5000_tools_are_accepted_and_more_are_refused(chat: Chat, letta: FakeGateway) -> None:
    letta.will_say("Hi")
    assert chat.ask(tools=[tool(f"tool_{number}") for number in range(5_000)]).text == "Hi"
    refused = chat.ask(tools=[tool(f"tool_{number}") for number in range(5_001)])
    assert refused.status == 400
    assert refused.error is not None
    assert "5000" in refused.error["message"]


def test_20_usage_is_streamed_if_requested_and_always_in_an_unstreamed_reply(chat: Chat, letta: FakeGateway) -> None:
    letta.will_say("Hi")
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    assert chat.ask(stream=True, usage=True).usage == usage
    letta.will_say("Hi")
    assert chat.ask(stream=True, usage=False).usage is None
    letta.will_say("Hi")
    assert chat.ask().usage is not None


def test_21_pings_keep_the_stream_of_a_silent_agent_open(
    parameters: dict[str, Any], letta: FakeGateway, request: pytest.FixtureRequest
) -> None:
    parameters |= {"header_wait": 0.0, "ping_interval": 0.1}
    letta.will(lambda: time.sleep(1.5), Text("Hi"), Stopped("end_turn"))
    reply = Chat(request.getfixturevalue("client")).ask(stream=True)
    assert reply.text == "Hi"
    assert reply.streamed is not None
    assert reply.streamed.pings >= 1


def test_22_an_error_is_a_status_before_the_headers_and_an_event_after_them(chat: Chat, letta: FakeGateway) -> None:
    letta.will(ModelFailed("It failed."))
    assert chat.ask(stream=True).status == 502
    letta.will(Text("Hel"), ModelFailed("It failed."))
    reply = chat.ask(stream=True)
    assert reply.status == 200
    assert reply.error is not None


def test_24_a_repeated_result_is_not_delivered_again(chat: Chat, letta: FakeGateway) -> None:
    reply = called(chat, letta)
    answered(chat, letta, reply, result(ids(reply)[0], "sun"))
    assert delivered(letta) == [("sun", True)]
    before = len(letta.prompts)
    assert answered(chat, letta, reply, result(ids(reply)[0], "sun")).text == "Thanks"
    assert len(letta.prompts) == before
    refused = chat.ask(
        messages=[HELLO, {"role": "assistant", **reply.message}, result(ids(reply)[0], "rain")], tools=[WEATHER]
    )
    assert refused.status == 400


def test_25_unknown_fields_are_ignored_and_reasoning_is_separate_from_text(chat: Chat, letta: FakeGateway) -> None:
    letta.will(Reasoning("I think"), Text("Hi"), Stopped("end_turn"))
    messages = [
        {"role": "developer", "content": "Be kind."},
        {"role": "user", "content": [{"type": "text", "text": "Hello", "cache_control": {"type": "ephemeral"}}]},
    ]
    reply = chat.ask(messages=messages, seed=1, n=1, metadata={"a": "b"}, provider_specific_fields=None)
    assert (reply.text, reply.reasoning) == ("Hi", "I think")
    assert "Be kind." in letta.prompts[-1].memory.values()
