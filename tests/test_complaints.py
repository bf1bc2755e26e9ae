"""What users of services like this one complain of, one test each: none of it may happen here.

The agent is a letta_v1_agent of the in-memory server; the same turns run on real servers in tests/real. Number 23, the
client that hangs up, needs a connection: tests/test_web_openai_api.py and tests/real/test_hang_up.py.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from typing import Any

import pytest

from bridge.errors import ModelFailed
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
    """A run that stops at these calls of (name, arguments)."""
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
    """The next request, with what the client has to say to the calls."""
    letta.will_say("Thanks")
    fields.setdefault("tools", [WEATHER, NEWS])
    return chat.ask(messages=[HELLO, {"role": "assistant", **reply.message}, *after], **fields)


def deltas(reply: ChatReply) -> list[Json]:
    assert reply.streamed is not None
    return [chunk["choices"][0]["delta"] for chunk in reply.streamed.chunks if chunk["choices"]]


def given(letta: FakeGateway) -> list[tuple[str, bool]]:
    """The results that the agent was given last: (text, success)."""
    sent = letta.prompts[-1].messages
    return [(one.text, one.ok) for part in sent if hasattr(part, "results") for one in part.results]


TWO = (("get_weather", '{"city": "Oslo"}'), ("get_news", '{"city": "Rome"}'))


def test_01_every_streamed_call_has_a_stable_index(chat: Chat, letta: FakeGateway) -> None:
    calls = [call for delta in deltas(called(chat, letta, *TWO, stream=True)) for call in delta.get("tool_calls", [])]
    assert [call["index"] for call in calls] == [0, 1]


def test_02_id_type_and_name_stand_in_the_first_delta_of_a_call_only(chat: Chat, letta: FakeGateway) -> None:
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


def test_04_ids_are_unique_and_short_and_lead_back_to_letta(chat: Chat, letta: FakeGateway) -> None:
    found = [*ids(called(chat, letta, *TWO))]
    found += ids(called(chat, letta, *TWO, stream=True))
    assert len(set(found)) == 4
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,40}", one) for one in found)


@pytest.mark.parametrize("stream", [False, True])
def test_05_the_finish_reason_is_one_of_openais_and_fits(chat: Chat, letta: FakeGateway, stream: bool) -> None:
    reply = called(chat, letta, stream=stream)
    assert reply.finish_reason == "tool_calls"
    assert answered(chat, letta, reply, result(ids(reply)[0]), stream=stream).finish_reason == "stop"
    for reason in ("end_turn", "tool_rule", "max_steps", "no_tool_call", "max_tokens_exceeded"):
        letta.will(Text("x"), Stopped(reason))
        assert chat.ask(stream=stream).finish_reason in ENDINGS - {"tool_calls"}


def test_06_one_chunk_is_the_last_and_none_before_it_has_a_finish_reason(chat: Chat, letta: FakeGateway) -> None:
    reply = called(chat, letta, stream=True)
    assert reply.streamed is not None
    reasons = [chunk["choices"][0]["finish_reason"] for chunk in reply.streamed.chunks if chunk["choices"]]
    assert reasons == [None] * (len(reasons) - 1) + ["tool_calls"]


@pytest.mark.parametrize("content", [None, "", [], [{"type": "text", "text": ""}]])
def test_07_a_message_of_calls_alone_has_no_content_and_comes_back_in_any_form(
    chat: Chat, letta: FakeGateway, content: Any
) -> None:
    reply = called(chat, letta)
    assert reply.message["content"] is None
    echoed = {"role": "assistant", **reply.message, "content": content}
    letta.will_say("Thanks")
    assert chat.ask(messages=[HELLO, echoed, result(ids(reply)[0])], tools=[WEATHER]).text == "Thanks"


@pytest.mark.parametrize("arguments", ["", "{}", " "])
def test_08_arguments_are_a_json_text_also_when_there_are_none(chat: Chat, letta: FakeGateway, arguments: str) -> None:
    reply = called(chat, letta, ("get_news", arguments), tools=[tool("get_news", None)])
    assert reply.message["tool_calls"][0]["function"]["arguments"] == "{}"


def test_09_broken_arguments_in_the_history_do_no_harm(chat: Chat, letta: FakeGateway) -> None:
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


def test_10_without_choice_no_tool_is_offered(chat: Chat, letta: FakeGateway) -> None:
    letta.will_say("Hi")
    chat.ask(tools=[WEATHER], tool_choice="none")
    assert letta.prompts[-1].tools == ()


@pytest.mark.parametrize("choice", ["sometimes", {"type": "function", "function": {"name": "unknown"}}, 7])
def test_10_a_tool_choice_that_means_nothing_is_refused(chat: Chat, choice: Any) -> None:
    reply = chat.ask(tools=[WEATHER], tool_choice=choice)
    assert reply.status == 400
    assert reply.error is not None
    assert reply.error["param"] == "tool_choice"


def test_11_without_parallel_calls_there_is_one_call_and_the_surplus_is_answered(
    chat: Chat, letta: FakeGateway
) -> None:
    reply = called(chat, letta, *TWO, parallel_tool_calls=False)
    assert len(reply.message["tool_calls"]) == 1
    assert answered(chat, letta, reply, result(ids(reply)[0]), parallel_tool_calls=False).text == "Thanks"
    assert [ok for _, ok in given(letta)] == [True, False]


def test_12_results_come_in_any_order_with_the_users_words_behind_them(chat: Chat, letta: FakeGateway) -> None:
    reply = called(chat, letta, *TWO)
    first, second = ids(reply)
    after = (result(second, "news"), result(first, "sun"), {"role": "user", "content": "and now?"})
    assert answered(chat, letta, reply, *after).text == "Thanks"
    assert given(letta) == [("sun", True), ("news", True)]
    assert letta.prompts[-1].texts == ["and now?"]


def test_13_a_call_without_a_result_does_not_hold_the_agent(chat: Chat, letta: FakeGateway) -> None:
    reply = called(chat, letta, *TWO)
    assert answered(chat, letta, reply, result(ids(reply)[0], "sun")).text == "Thanks"
    assert [ok for _, ok in given(letta)] == [True, False]
    called(chat, letta)
    letta.will_say("Hello again")
    assert chat.ask("never mind").text == "Hello again"


def test_14_a_result_of_no_call_is_refused_by_its_id(chat: Chat, letta: FakeGateway) -> None:
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
def test_15_a_result_may_be_text_or_parts(chat: Chat, letta: FakeGateway, content: Any, text: str) -> None:
    reply = called(chat, letta)
    assert answered(chat, letta, reply, result(ids(reply)[0], content)).text == "Thanks"
    assert given(letta) == [(text, True)]


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


def test_17_any_schema_is_taken(chat: Chat, letta: FakeGateway) -> None:
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


def test_18_strict_is_taken_and_what_is_optional_stays_so(chat: Chat, letta: FakeGateway) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["a"]}
    reply = called(chat, letta, ("f", '{"a": "x", "b": null}'), tools=[tool("f", schema, strict=True)])
    assert json.loads(reply.message["tool_calls"][0]["function"]["arguments"]) == {"a": "x"}


@pytest.mark.parametrize("tools", [[], None])
def test_19_without_tools_ours_are_gone_before_the_agent_thinks(chat: Chat, letta: FakeGateway, tools: Any) -> None:
    letta.will_say("Hi")
    chat.ask(tools=[WEATHER])
    letta.will_say("Hi")
    assert chat.ask(tools=tools).text == "Hi"
    assert letta.prompts[-1].tools == ()


def test_19_hundreds_of_tools_are_taken_and_more_are_refused_clearly(chat: Chat, letta: FakeGateway) -> None:
    letta.will_say("Hi")
    assert chat.ask(tools=[tool(f"tool_{number}") for number in range(512)]).text == "Hi"
    refused = chat.ask(tools=[tool(f"tool_{number}") for number in range(513)])
    assert refused.status == 400
    assert refused.error is not None
    assert "512" in refused.error["message"]


def test_20_usage_comes_when_asked_for_and_always_unstreamed(chat: Chat, letta: FakeGateway) -> None:
    letta.will_say("Hi")
    assert chat.ask(stream=True, usage=True).usage == {
        "prompt_tokens": 100,
        "completion_tokens": 10,
        "total_tokens": 110,
    }
    letta.will_say("Hi")
    assert chat.ask(stream=True, usage=False).usage is None
    letta.will_say("Hi")
    assert chat.ask().usage is not None


def test_21_a_silent_agent_keeps_its_stream_open(
    parameters: dict[str, Any], letta: FakeGateway, request: pytest.FixtureRequest
) -> None:
    parameters |= {"header_wait": 0.0, "ping_interval": 0.1}
    letta.will(lambda: time.sleep(1.5), Text("Hi"), Stopped("end_turn"))
    reply = Chat(request.getfixturevalue("client")).ask(stream=True)
    assert reply.text == "Hi"
    assert reply.streamed is not None
    assert reply.streamed.pings >= 1


def test_22_errors_have_a_true_status_before_the_headers_and_an_event_after(chat: Chat, letta: FakeGateway) -> None:
    letta.will(ModelFailed("It failed."))
    assert chat.ask(stream=True).status == 502
    letta.will(Text("Hel"), ModelFailed("It failed."))
    reply = chat.ask(stream=True)
    assert reply.status == 200
    assert reply.error is not None


def test_24_a_result_that_was_given_is_not_given_again(chat: Chat, letta: FakeGateway) -> None:
    reply = called(chat, letta)
    answered(chat, letta, reply, result(ids(reply)[0], "sun"))
    assert given(letta) == [("sun", True)]
    before = len(letta.prompts)
    assert answered(chat, letta, reply, result(ids(reply)[0], "sun")).text == "Thanks"
    assert len(letta.prompts) == before
    refused = chat.ask(
        messages=[HELLO, {"role": "assistant", **reply.message}, result(ids(reply)[0], "rain")], tools=[WEATHER]
    )
    assert refused.status == 400


def test_25_unknown_fields_and_roles_are_tolerated_and_thoughts_are_kept_apart(chat: Chat, letta: FakeGateway) -> None:
    letta.will(Reasoning("I think"), Text("Hi"), Stopped("end_turn"))
    messages = [
        {"role": "developer", "content": "Be kind."},
        {"role": "user", "content": [{"type": "text", "text": "Hello", "cache_control": {"type": "ephemeral"}}]},
    ]
    reply = chat.ask(messages=messages, seed=1, n=1, metadata={"a": "b"}, provider_specific_fields=None)
    assert (reply.text, reply.reasoning) == ("Hi", "I think")
    assert "Be kind." in letta.prompts[-1].memory.values()
