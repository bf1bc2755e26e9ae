from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from bridge.letta.agent_file import make_agent_file
from bridge.letta.capabilities import ServerFeatures, read_features
from bridge.letta.payloads import helper_payload
from bridge.turn import Image, Message, ToolCall

ROW = {"llm_config": {"model": "gpt-4o-mini"}, "embedding_config": {"embedding_dim": 1536}}
LISTS = {"components": {"schemas": {"ImportedAgentsResponse": {}}}}
NEW, MIDDLE = read_features("0.16.8", LISTS), read_features("0.11.7", LISTS)
OLD, OLDEST = read_features("0.8.17", {}), read_features("0.6.54", {})
CALL = ToolCall("call_1", "read", '{"path": "a"}')
ASK, CALLED = Message("user", "Read a."), Message("assistant", tool_calls=(CALL,))
RESULT = Message("tool", 'say "milk"', tool_call_id="call_1")
ALL = pytest.mark.parametrize("features", [NEW, MIDDLE, OLD, OLDEST], ids=lambda one: one.version_text)


def file_of(features: ServerFeatures, *history: Message) -> dict[str, Any]:
    file = make_agent_file(helper_payload(ROW, "You read.", features.helper_type), history, features)
    return json.loads(json.dumps(file))  # type: ignore[no-any-return]


def agent_in(file: dict[str, Any]) -> dict[str, Any]:
    return file["agents"][0] if "agents" in file else file  # type: ignore[no-any-return]


def messages_in(features: ServerFeatures, *history: Message) -> list[dict[str, Any]]:
    """Returns the messages of the file after the system prompt."""
    first, *others = agent_in(file_of(features, *history))["messages"]
    assert (first["role"], first["content"]) == ("system", [{"type": "text", "text": "You read."}])
    return others


def texts_of(message: dict[str, Any]) -> list[str]:
    return [part["text"] for part in message["content"] if part["type"] == "text"]


@ALL
def test_calls_and_results_stay_calls_and_results(features: ServerFeatures) -> None:
    _, called, result = messages_in(features, ASK, CALLED, RESULT)
    function = {"name": "read", "arguments": '{"path": "a"}'}
    assert (called["role"], called["content"]) == ("assistant", [])
    assert called["tool_calls"] == [{"id": "call_1", "type": "function", "function": function}]
    assert (result["role"], result["tool_call_id"]) == ("tool", "call_1")
    assert [json.loads(text) for text in texts_of(result)] == [{"status": "OK", "message": 'say "milk"'}]
    (returned,) = result["tool_returns"]
    assert (returned["tool_call_id"], returned["status"]) == ("call_1", "success")
    assert [returned["func_response"]] == texts_of(result)


@ALL
def test_the_result_of_a_tool_that_failed_says_so(features: ServerFeatures) -> None:
    *_, result = messages_in(features, ASK, CALLED, replace(RESULT, is_error=True))
    assert json.loads(texts_of(result)[0])["status"] == "Failed"
    assert result["tool_returns"][0]["status"] == "error"


@ALL
def test_all_messages_are_in_the_context_in_their_order(features: ServerFeatures) -> None:
    agent = agent_in(file_of(features, ASK, CALLED, RESULT))
    if features.lists_in_agent_files:
        assert agent["in_context_message_ids"] == [message["id"] for message in agent["messages"]]
        assert agent["in_context_message_ids"] == [f"message-{number}" for number in range(4)]
    else:
        assert agent["in_context_message_indices"] == [0, 1, 2, 3]


@ALL
def test_the_agent_is_a_helper_and_no_tool_has_source_code(features: ServerFeatures) -> None:
    file = file_of(features, ASK, Message("assistant", "Yes?"))
    agent = agent_in(file)
    assert agent["name"].startswith("letta-tool-bridge-helper-")
    assert "letta-tool-bridge-helper" in json.dumps(agent["tags"])
    assert agent["llm_config"]["model"] == "gpt-4o-mini"
    assert not [tool for tool in file["tools"] if tool["source_code"] or tool["tool_type"] != "letta_core"]


def test_a_new_agent_says_a_text_itself_and_before_the_calls_beside_it() -> None:
    called, answered = replace(CALLED, text="I look."), Message("assistant", "Milk.")
    found = messages_in(NEW, ASK, called, RESULT, answered)
    assert [(one["role"], "tool_calls" in one) for one in found[1:]] == [
        ("assistant", False),
        ("assistant", True),
        ("tool", False),
        ("assistant", False),
    ]
    assert [texts_of(found[1]), texts_of(found[2]), texts_of(found[4])] == [["I look."], [], ["Milk."]]


@pytest.mark.parametrize("features", [MIDDLE, OLD], ids=lambda one: one.version_text)
def test_an_older_agent_says_a_text_by_send_message_and_thinks_it_beside_calls(features: ServerFeatures) -> None:
    _, called, _, said, confirmed = messages_in(
        features, ASK, replace(CALLED, text="I look."), RESULT, Message("assistant", "Milk.")
    )
    assert texts_of(called) == ["I look."]
    (call,) = said["tool_calls"]
    assert call["function"] == {"name": "send_message", "arguments": '{"message": "Milk."}'}
    assert (confirmed["role"], confirmed["tool_call_id"]) == ("tool", call["id"])


def test_calls_without_results_wait_for_an_approval() -> None:
    assert [one["role"] for one in messages_in(NEW, ASK, CALLED, RESULT, CALLED)] == [
        "user",
        "assistant",
        "tool",
        "approval",
    ]


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("broken", {"arguments": "broken"}),
        ("[1]", {"arguments": "[1]"}),
        ("", {}),
        (" ", {}),
        pytest.param("[" * 100_000, {"arguments": "[" * 100_000}, id="too deep"),
    ],
)
def test_arguments_that_are_not_an_object_are_put_into_one(given: str, stored: dict[str, str]) -> None:
    called = Message("assistant", tool_calls=(replace(CALL, arguments=given),))
    found = messages_in(NEW, ASK, called, RESULT)
    assert json.loads(found[1]["tool_calls"][0]["function"]["arguments"]) == stored


@pytest.mark.parametrize("features", [NEW, MIDDLE, OLD], ids=lambda one: one.version_text)
def test_pictures_of_users_stay_pictures(features: ServerFeatures) -> None:
    shot, linked = Image("image/png", "AAAA", detail="low"), Image(url="https://example.com/cat.png")
    first, second, *_ = messages_in(
        features, replace(ASK, images=(shot, linked)), Message("user", images=(shot,)), CALLED, RESULT
    )
    assert texts_of(first) == ["Read a.\n(a picture: https://example.com/cat.png)"]
    assert texts_of(second) == ["(pictures)"]
    for message in (first, second):
        (source,) = [part["source"] for part in message["content"] if part["type"] == "image"]
        assert {"type": "letta", "media_type": "image/png", "data": "AAAA", "detail": "low"}.items() <= source.items()


def test_the_oldest_servers_pack_what_users_say() -> None:
    first, *_ = messages_in(OLDEST, ASK, CALLED, RESULT)
    assert json.loads(texts_of(first)[0]) == {"type": "user_message", "message": "Read a."}
