"""Tests of the compact form of the messages that the model was shown."""

import json
from typing import Any

from testbed.model.context import ShownCall, ShownMessage, shown, story


def wrapped_result(text: Any, status: str = "OK") -> str:
    return json.dumps({"status": status, "message": text, "time": "t"})


def call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def wrapped_user(kind: str, **more: str) -> dict[str, Any]:
    return {"role": "user", "content": json.dumps({"type": kind, "time": "t", **more})}


CONVERSATION: list[dict[str, Any]] = [
    {"role": "system", "content": "You are an agent."},
    wrapped_user("login", last_login="Never (first login)"),
    wrapped_user("user_message", message="Weather?"),
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            call("c1", "get_weather", '{"thinking": "Hm", "city": "Oslo", "request_heartbeat": true}'),
            call("c2", "get_weather", '{"ci'),
        ],
    },
    {"role": "tool", "tool_call_id": "c2", "content": wrapped_result("no such city", "Failed")},
    {"role": "tool", "tool_call_id": "c1", "content": wrapped_result("12 degrees")},
    wrapped_user("heartbeat", reason="Continuing."),
    {"role": "assistant", "content": None, "tool_calls": [call("c3", "send_message", '{"message": "Mild"}')]},
    {"role": "tool", "tool_call_id": "c3", "content": wrapped_result(None)},
    {"role": "user", "content": [{"type": "text", "text": "Thanks"}, {"type": "text", "text": "all"}]},
    {"role": "assistant", "content": "Bye"},
    {"role": "system", "content": "[go on]"},
]


def test_the_story_shows_the_context_without_ids_and_wrapping() -> None:
    assert story(CONVERSATION) == [
        "login: Never (first login)",
        "user: Weather?",
        'call get_weather {"city": "Oslo"}',
        'call get_weather {"ci',
        "result of get_weather FAILED: no such city",
        "result of get_weather: 12 degrees",
        "heartbeat: Continuing.",
        "assistant: Mild",
        "result of send_message: null",
        "user: Thanks\nall",
        "assistant: Bye",
        "system: [go on]",
    ]


def test_the_story_can_start_at_a_text() -> None:
    assert story(CONVERSATION, since="Thanks") == ["user: Thanks\nall", "assistant: Bye", "system: [go on]"]
    assert story(CONVERSATION, since="not in it") == []


def test_each_message_is_shown_as_a_value() -> None:
    context = shown(CONVERSATION)
    arguments = {"thinking": "Hm", "city": "Oslo", "request_heartbeat": True}
    assert context[0] == ShownMessage("system", "You are an agent.")
    assert context[3].calls == (ShownCall("c1", "get_weather", arguments), ShownCall("c2", "get_weather", '{"ci'))
    assert context[3].calls[0].own == {"city": "Oslo"}
    assert context[5] == ShownMessage("tool", "12 degrees", call_id="c1", tool="get_weather", status="OK")


def test_a_result_that_letta_did_not_wrap_is_shown_unchanged() -> None:
    (message,) = shown([{"role": "tool", "tool_call_id": "x", "content": '{"message": "m"}'}])
    assert (message.text, message.status, message.tool) == ('{"message": "m"}', "", "")


def test_text_beside_a_call_comes_before_it() -> None:
    both = {"role": "assistant", "content": "One moment", "tool_calls": [call("c", "now", "{}")]}
    assert story([both]) == ["assistant: One moment", "call now {}"]


def test_a_malformed_context_is_shown_as_far_as_possible() -> None:
    broken = [{}, {"role": "assistant", "tool_calls": ["x", {"function": {}}]}, {"role": "tool", "content": None}]
    assert [one.kind for one in shown(broken)] == ["None", "assistant", "tool"]
