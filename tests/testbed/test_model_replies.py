"""Tests of the replies that the model finds from the context alone."""

import json
from typing import Any

import pytest

from testbed.model.examples import example
from testbed.model.replies import DONE, HELP, ModelReply, ReplyCall, reply_to
from testbed.model.usage import completion_tokens, prompt_tokens
from testbed.model.wire import AnswerMetadata, chunks, completion, pieces

Message = dict[str, Any]


def tool(name: str, *parameters: str) -> dict[str, Any]:
    properties = {parameter: {"type": "string"} for parameter in parameters}
    schema = {"type": "object", "properties": properties, "required": list(parameters)}
    return {"type": "function", "function": {"name": name, "parameters": schema}}


PLAIN = [tool("get_weather", "city"), tool("now")]
HEARTBEAT = [tool("send_message", "thinking", "message"), tool("get_weather", "thinking", "city", "request_heartbeat")]
OLD = [
    tool("send_message", "inner_thoughts", "message", "request_heartbeat"),
    tool("get_weather", "inner_thoughts", "city"),
]


def user(text: Any) -> Message:
    return {"role": "user", "content": text}


def asked(*calls: str) -> Message:
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": call, "type": "function", "function": {"name": "get_weather", "arguments": "{}"}} for call in calls
        ],
    }


def result(call: str, text: str) -> Message:
    return {"role": "tool", "tool_call_id": call, "content": text}


def wrapped_result(text: str, status: str = "OK") -> str:
    return json.dumps({"status": status, "message": text, "time": "2026-11-18 08:16:07 AM UTC+0000"})


HEARTBEAT_MESSAGE = user(json.dumps({"type": "heartbeat", "reason": "Continuing: continue tool rule.", "time": "x"}))


def reply(*messages: Message, **more: Any) -> ModelReply:
    return reply_to({"model": "gpt-4o-mini", "messages": list(messages), **more})


# Without a script


def test_without_a_script_the_model_repeats_the_user_message() -> None:
    assert reply(user("Hello")).content == "You said: Hello"


def test_only_the_start_of_a_long_text_is_repeated() -> None:
    found = reply(user("x" * 5000)).content
    assert found == "You said: " + "x" * 1000 + "…"


def test_help_explains_the_model_and_how_to_see_a_tool_call() -> None:
    assert reply(user("Help!")).content == HELP
    assert "scripted demo model" in HELP
    assert '!call get_weather {"city": "Oslo"}' in HELP


def test_after_a_tool_result_the_model_says_done() -> None:
    assert reply(user("Hi"), asked("c"), result("c", "12")).content == DONE


def test_a_system_message_after_a_tool_result_is_ignored() -> None:
    go_on = {"role": "system", "content": "[go on]"}
    assert reply(user("Hi"), asked("c"), result("c", "12"), go_on).content == DONE


def test_a_user_message_after_a_tool_result_is_repeated() -> None:
    assert reply(user("Hi"), asked("c"), result("c", "12"), user("And now?")).content == "You said: And now?"


def test_heartbeats_and_logins_are_not_user_messages() -> None:
    login = user(json.dumps({"type": "login", "last_login": "Never", "time": "x"}))
    assert reply(login, user("Hi"), HEARTBEAT_MESSAGE).content == "You said: Hi"


def test_other_json_is_a_user_message() -> None:
    assert reply(user('{"type": "order", "message": "x"}')).content == 'You said: {"type": "order", "message": "x"}'


# The current script and its step


SCRIPT = '!call get_weather {"city":"Oslo"}\n!next\n!say Mild\n!next\n!say More'


def test_the_steps_follow_the_turns_of_the_model() -> None:
    turns = [user(SCRIPT), asked("a"), result("a", "12"), {"role": "assistant", "content": "Mild"}]
    assert reply(*turns[:1], tools=PLAIN).calls == (ReplyCall("get_weather", '{"city":"Oslo"}'),)
    assert reply(*turns[:3], tools=PLAIN).content == "Mild"
    assert reply(*turns, tools=PLAIN).content == "More"


def test_after_the_last_step_the_model_replies_as_without_a_script() -> None:
    turns = [user("!say a"), {"role": "assistant", "content": "a"}]
    assert reply(*turns, user("thanks")).content == "You said: thanks"
    assert reply(*turns, asked("c"), result("c", "x")).content == DONE


def test_the_newest_script_is_followed() -> None:
    assert reply(user("!say old"), {"role": "assistant", "content": "old"}, user("!say new")).content == "new"


def test_a_user_message_without_a_script_does_not_end_the_script() -> None:
    assert reply(user(SCRIPT), asked("a"), result("a", "12"), user("well?"), tools=PLAIN).content == "Mild"


def test_a_system_message_can_have_a_script_unless_it_is_the_first_message() -> None:
    system = {"role": "system", "content": "!say from the system"}
    assert reply(user("Hi"), system).content == "from the system"
    assert reply(system, user("Hi")).content == "You said: Hi"


def test_a_script_in_content_parts_is_read() -> None:
    parts = [{"type": "text", "text": "Look:"}, {"type": "image_url", "image_url": {"url": "data:x"}}]
    assert reply(user([*parts, {"type": "text", "text": "!say seen"}])).content == "seen"


def test_lettas_wrapping_of_user_texts_is_removed() -> None:
    wrapped = json.dumps({"type": "user_message", "message": "Hi\n!say a\\nb", "time": "x"})
    assert reply(user(wrapped)).content == "a\nb"


def test_the_same_request_gets_the_same_answer() -> None:
    assert reply(user(SCRIPT), tools=PLAIN) == reply(user(SCRIPT), tools=PLAIN)


def test_a_malformed_script_is_reported_once() -> None:
    answered = [user("!call"), {"role": "assistant", "content": "I could not read the script."}, user("Hello")]
    assert reply(*answered).content == "You said: Hello"


def test_a_malformed_script_is_reported_in_the_answer_and_in_the_record() -> None:
    found = reply(user("!call"), tools=HEARTBEAT)
    assert found.script_error is not None
    assert "the name of a tool is missing" in found.script_error
    assert "could not read the script" in found.calls[0].arguments


# The forms of an answer


def test_send_message_is_called_if_it_is_offered() -> None:
    assert reply(user("!say é"), tools=HEARTBEAT, tool_choice="required").calls == (
        ReplyCall("send_message", '{"thinking":"I call send_message.","message":"é"}'),
    )
    old = '{"inner_thoughts":"I call send_message.","message":"Hi","request_heartbeat":false}'
    assert reply(user("!say Hi"), tools=OLD).calls == (ReplyCall("send_message", old),)


def test_a_clients_tool_of_that_name_is_not_send_message() -> None:
    found = reply(user("!say Hi"), tools=[tool("send_message_0a1b2c3d", "path")])
    assert (found.content, found.calls) == ("Hi", ())


def test_plain_text_stays_plain_even_if_a_call_is_demanded() -> None:
    found = reply(user("!plain Hi"), tools=HEARTBEAT, tool_choice="required")
    assert (found.content, found.calls) == ("Hi", ())


def test_a_call_gets_the_arguments_that_letta_requires() -> None:
    assert reply(user('!call get_weather {"city":  "Oslo"} !next !answer'), tools=HEARTBEAT).calls == (
        ReplyCall(
            "get_weather",
            '{"thinking":"I call get_weather.","city":  "Oslo","request_heartbeat":true}',
        ),
    )


def test_the_last_step_requests_no_heartbeat() -> None:
    (call,) = reply(user("!call get_weather\n!think Hm"), tools=HEARTBEAT).calls
    assert call.arguments == '{"thinking":"Hm","request_heartbeat":false}'


def test_arguments_that_the_script_has_are_not_added_again() -> None:
    given = '{"request_heartbeat":false,"thinking":"mine"}'
    (call,) = reply(user(f"!call get_weather {given} !next !answer"), tools=HEARTBEAT).calls
    assert call.arguments == given


def test_raw_arguments_are_sent_unchanged() -> None:
    (call,) = reply(user('!raw get_weather {"ci'), tools=HEARTBEAT).calls
    assert call.arguments == '{"ci'


def test_a_thought_without_an_argument_becomes_content_beside_the_call() -> None:
    found = reply(user("!think Let me see\n!call now"), tools=PLAIN)
    assert (found.content, found.calls) == ("Let me see", (ReplyCall("now", "{}"),))


def test_a_thought_beside_a_text_is_reasoning() -> None:
    found = reply(user("!think Hm\n!say Hi"))
    assert (found.content, found.reasoning) == ("Hi", "Hm")


def test_text_and_calls_of_one_step_are_sent_together() -> None:
    found = reply(user("!say One moment\n!call now\n!call get_weather"), tools=PLAIN)
    assert (found.content, [call.name for call in found.calls]) == ("One moment", ["now", "get_weather"])


def test_the_newest_results_are_the_answer_without_lettas_wrapping() -> None:
    script = user("!call get_weather !call get_weather !next !answer")
    turns = (script, asked("a", "b"), result("a", wrapped_result("12")), result("b", wrapped_result("13", "Failed")))
    assert reply(*turns, HEARTBEAT_MESSAGE).content == "12\n13"
    assert reply(user("!answer")).content == "(there is no tool result)"


def test_a_star_in_a_name_matches_the_first_offered_tool_that_fits() -> None:
    found = reply(user("!call get_* {}"), tools=PLAIN)
    assert [call.name for call in found.calls] == ["get_weather"]


def test_a_name_also_matches_with_the_digest_that_the_bridge_adds() -> None:
    digested = [{"type": "function", "function": {"name": "read_file_0a1b2c3d"}}]
    assert [call.name for call in reply(user("!call read_file"), tools=digested).calls] == ["read_file_0a1b2c3d"]
    assert reply(user("!call read"), tools=digested).calls == ()


def test_a_tool_that_is_not_offered_is_called_only_by_a_model_that_disobeys() -> None:
    note = "the script calls 'delete_all', which the request does not offer"
    found = reply(user("!call delete_all"), tools=PLAIN)
    assert (found.calls, found.content, found.notes) == ((), f"I have no such tool: {note}.", (note,))
    found = reply(user("!disobey !call delete_all"), tools=PLAIN)
    assert ([call.name for call in found.calls], found.notes) == (["delete_all"], (note,))


# What the request demands


def test_no_tool_is_called_if_none_is_offered() -> None:
    found = reply(user("!call now"))
    assert (found.content, found.calls) == (DONE, ())
    assert found.notes == ("the script calls 'now', which the request does not offer",)


def test_tool_choice_none_is_obeyed() -> None:
    assert reply(user("!call now"), tools=PLAIN, tool_choice="none").calls == ()


def test_a_forced_tool_is_called_even_if_the_script_says_otherwise() -> None:
    forced = {"type": "function", "function": {"name": "get_weather"}}
    for script in ("!say no", "!call now"):
        found = reply(user(script), tools=PLAIN, tool_choice=forced)
        assert found.calls == (ReplyCall("get_weather", '{"city":"text"}'),)
        assert found.content is None
        assert found.notes


def test_a_demanded_call_is_send_message_if_that_is_allowed() -> None:
    forced = {"type": "function", "function": {"name": "send_message"}}
    for choice in ("required", forced):
        found = reply(user("!say Hi"), tools=HEARTBEAT, tool_choice=choice)
        assert [call.name for call in found.calls] == ["send_message"]


def test_a_demanded_call_has_lettas_arguments_once() -> None:
    forced = {"type": "function", "function": {"name": "get_weather"}}
    (call,) = reply(user("!say no"), tools=HEARTBEAT, tool_choice=forced).calls
    assert call.arguments == '{"thinking":"I call get_weather.","city":"text","request_heartbeat":false}'


def test_parallel_calls_are_made_only_if_they_are_allowed() -> None:
    script = user("!call now !call get_weather")
    assert len(reply(script, tools=PLAIN).calls) == 2
    assert [call.name for call in reply(script, tools=PLAIN, parallel_tool_calls=False).calls] == ["now"]


def test_a_disobedient_step_ignores_tool_choice_and_parallel_tool_calls() -> None:
    found = reply(
        user("!disobey !call now !call get_weather"), tools=PLAIN, tool_choice="none", parallel_tool_calls=False
    )
    assert [call.name for call in found.calls] == ["now", "get_weather"]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string"}, "text"),
        ({"type": ["null", "integer"]}, 1),
        ({"enum": ["b", "a"]}, "b"),
        ({"const": 0}, 0),
        ({"anyOf": [{"type": "boolean"}, {"type": "null"}]}, True),
        ({"type": "array", "items": {"type": "number"}}, []),
        ({"type": "array", "items": {"type": "number"}, "minItems": 2}, [1.5, 1.5]),
        ({"type": "object", "properties": {"a": {"type": "null"}, "b": {}}, "required": ["a"]}, {"a": None}),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"type": "integer"}}}, 1),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}, "text"),
        ({"$ref": "#/$defs/missing"}, "text"),
        (True, "text"),
    ],
)
def test_an_example_fits_its_schema(schema: Any, value: Any) -> None:
    assert example(schema) == value


# On the wire


METADATA = AnswerMetadata("chatcmpl-1", 1, "gpt-4o-mini", ("call_1", "call_2"), 7)
REPLY = ModelReply("Let me see é", "because", (ReplyCall("a", '{"x":"y z"}'), ReplyCall("b", "")))


def test_the_joined_deltas_are_the_message() -> None:
    whole = completion(REPLY, METADATA)["choices"][0]
    content, reasoning, calls, finishes = "", "", [("", ""), ("", "")], []
    for chunk in chunks(REPLY, METADATA, include_usage=False):
        (choice,) = chunk["choices"]
        delta = choice["delta"]
        content += delta.get("content") or ""
        reasoning += delta.get("reasoning_content", "")
        for call in delta.get("tool_calls", ()):
            call_id, arguments = calls[call["index"]]
            calls[call["index"]] = (call.get("id") or call_id, arguments + call["function"]["arguments"])
        finishes.append(choice["finish_reason"])
    message = whole["message"]
    assert (content, reasoning) == (message["content"], message["reasoning_content"])
    assert calls == [(call["id"], call["function"]["arguments"]) for call in message["tool_calls"]]
    assert finishes == [None] * (len(finishes) - 1) + ["tool_calls"]


def test_usage_comes_last_and_only_if_requested() -> None:
    with_usage = list(chunks(REPLY, METADATA, include_usage=True))
    assert with_usage[-1]["choices"] == []
    assert with_usage[-1]["usage"] == completion(REPLY, METADATA)["usage"]
    assert all(chunk["usage"] is None for chunk in with_usage[:-1])
    assert all("usage" not in chunk for chunk in chunks(REPLY, METADATA, include_usage=False))


def test_usage_counts_four_characters_as_a_token() -> None:
    body = {"messages": [{"role": "user", "content": "é"}], "tools": None}
    assert prompt_tokens(body) == -(-len('[{"role":"user","content":"é"}]') // 4)
    assert completion_tokens("12345", None, [("ab", "{}")]) == 3
    assert completion(REPLY, METADATA)["usage"]["total_tokens"] == 7 + completion_tokens(
        "Let me see é", "because", [("a", '{"x":"y z"}'), ("b", "")]
    )


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        (
            '{"thinking":"I call it.","x":1}',
            ['{"', "thinking", '":"', "I", " call", " it", '.","', "x", '":', "1", "}"],
        ),
        ("", []),
        ("a  b\n\n c_d 12345 😀é", ["a", " ", " b", "\n\n", " c", "_d", " ", "123", "45", " 😀", "é"]),
    ],
)
def test_text_is_cut_where_tokens_end(text: str, cut: list[str]) -> None:
    assert pieces(text) == cut


def test_a_long_text_is_cut_into_a_limited_number_of_pieces() -> None:
    text = "".join(map(chr, range(1, 0xD800))) * 2
    assert "".join(pieces(text)) == text
    assert len(pieces(text)) <= 200
