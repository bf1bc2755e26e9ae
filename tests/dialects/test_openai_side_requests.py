"""Requests beside the conversation: known when a program wrote them, and never by a user's words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bridge.dialects.openai.side_requests import side_rule, told_at_once
from bridge.errors import InvalidRequest
from bridge.turn import Image, Message, ToolCall, ToolSpec, Turn, UserMessage
from bridge.values import side_rules

RULES = side_rules("")
COMPACTION = "You are the component that summarizes a conversation when its context window is about to overflow."
LATER = (Message("system", "You are Qwen Code."), Message("user", "hi"), Message("assistant", "hello"))
TASK = "### Task:\nGenerate tags.\n### Chat History:\n<chat_history>\nUSER: hi\n</chat_history>"


def turn(*messages: Message, tools: bool = False) -> Turn:
    return Turn("Ada", messages, tools=(ToolSpec("read_file"),) if tools else ())


def system(text: str) -> Message:
    return Message("system", text)


def user(text: str) -> Message:
    return Message("user", text)


@pytest.mark.parametrize(
    ("request_", "name"),
    [
        (turn(system("You are a title generator. Say a title."), user("hi")), "title of OpenCode and Kilo"),
        (turn(system("You are a context summarization agent."), user("hi")), "summary of OpenCode, Kilo and pi"),
        (
            turn(
                system("You are a helpful AI assistant tasked with summarizing conversations."),
                user("CRITICAL: This summarization request is a SYSTEM OPERATION, not a user message."),
                tools=True,
            ),
            "summary of Roo Code",
        ),
        (
            turn(
                system("Formatting re-enabled\nYou are a helpful AI assistant tasked with summarizing conversations."),
                user("CRITICAL: This summarization request is a SYSTEM OPERATION, not a user message."),
                tools=True,
            ),
            "summary of Roo Code",
        ),
        (
            turn(system("You are performing a managed memory dream over files."), user("go"), tools=True),
            "memory dream of Qwen Code",
        ),
        (turn(user(TASK)), "title, tags, follow-ups and search queries of Open WebUI"),
        (turn(system("Always be kind."), user(TASK)), "title, tags, follow-ups and search queries of Open WebUI"),
        (turn(system(COMPACTION), *LATER[1:], user("Sum up.")), "summary of Qwen Code"),
        (
            turn(
                *LATER,
                user(
                    f"{COMPACTION}\n<state_snapshot>\nDo not call tools; tool execution is disabled for this request."
                ),
                tools=True,
            ),
            "summary of Qwen Code, where it hopes for the cache of the conversation",
        ),
    ],
)
def test_what_programs_send_is_known(request_: Turn, name: str) -> None:
    rule = side_rule(request_, RULES)
    assert rule is not None
    assert rule.name == name


@pytest.mark.parametrize(
    "request_",
    [
        turn(user("You are a title generator. Make me a title.")),
        turn(user("### Task:\nWrite an essay.")),
        turn(user("hello"), Message("assistant", "hi"), user(TASK)),
        turn(user(TASK), tools=True),
        turn(user("### Task:\nRespond to the query by these sources.\n<context>\n<source>milk</source>\n</context>")),
        turn(system("You are a title generator"), user("hi"), tools=True),
        turn(*LATER, user(COMPACTION)),
        turn(
            system("You are Qwen Code."),
            user(f"{COMPACTION} <state_snapshot> tool execution is disabled for this request"),
            Message("assistant", "Is that so?"),
            user("Yes."),
        ),
        turn(system("You are Roo."), user("CRITICAL: This summarization request is a SYSTEM OPERATION")),
        turn(system("You are a helpful AI assistant tasked with summarizing conversations"), user("hi"), tools=True),
        turn(system("Be kind. You are a title generator"), user("hi")),
    ],
)
def test_what_a_user_may_well_say_is_not(request_: Turn) -> None:
    assert side_rule(request_, RULES) is None


def test_a_file_can_add_rules(tmp_path: Path) -> None:
    file = tmp_path / "rules.json"
    file.write_text(json.dumps([{"name": "ours", "role": "system", "begins": "Summarise for ACME"}]))
    rule = side_rule(turn(system("Summarise for ACME: all"), user("x")), side_rules(str(file)))
    assert rule is not None
    assert rule.name == "ours"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "can't be read as JSON"),
        ("{}", "must hold a JSON array"),
        ('[{"nme": "x"}]', "not of the form"),
        ("[1]", "not of the form"),
        ('[{"name": "x", "role": "user", "begins": "Sum this up", "contains": "for ACME"}]', "not of the form"),
        ('[{"name": "x", "role": "user", "begins": 12345678}]', "not of the form"),
        ('[{"name": "x", "role": "user", "begins": "Sum this up", "alone": "no"}]', "not of the form"),
        ('[{"name": "x", "role": "user", "begins": "Hi"}]', "at least 8 characters"),
        ('[{"name": "x", "role": "tool", "begins": "Hello there"}]', "needs a role"),
    ],
)
def test_a_file_that_is_wrong_says_how(tmp_path: Path, content: str, words: str) -> None:
    file = tmp_path / "rules.json"
    file.write_text(content)
    with pytest.raises(ValueError, match=words):
        side_rules(str(file))


def test_messages_of_the_user_alone_are_told_as_they_are() -> None:
    assert told_at_once(turn(system("S"), user("one"), user("two"))).said == (UserMessage("one"), UserMessage("two"))


def test_a_history_is_told_as_one_text_before_the_last_message() -> None:
    call = ToolCall("call_1", "read_file", '{"path": "a"}')
    told = told_at_once(
        turn(
            user("read it"),
            Message("assistant", "sure", tool_calls=(call,)),
            Message("tool", "milk", tool_call_id="call_1"),
            user("sum up"),
        )
    )
    history, last = (said.text for said in told.said)
    assert last == "sum up"
    for words in ("[user]\nread it", 'calls read_file with {"path": "a"}', "[result of a tool]\nmilk"):
        assert words in history
    assert told.results == ()
    assert told.instructions == ""


def test_pictures_of_the_history_are_shown_with_it() -> None:
    shot, chart = Image("image/png", "AAAA"), Image("image/png", "BBBB")
    told = told_at_once(
        turn(
            Message("user", "What is this?", images=(shot,)),
            Message("assistant", "A cat. I look closer.", tool_calls=(ToolCall("call_1", "zoom", "{}"),)),
            Message("tool", "", tool_call_id="call_1", images=(chart,)),
            user("And its colour?"),
        )
    )
    assert [said.images for said in told.said] == [(shot, chart), ()]


@pytest.mark.parametrize("messages", [(system("Be kind."),), (system("Be kind."), user(" "))])
def test_a_request_in_which_nobody_says_anything_is_refused(messages: tuple[Message, ...]) -> None:
    with pytest.raises(InvalidRequest, match="Nothing to answer") as caught:
        told_at_once(turn(*messages))
    assert caught.value.param == "messages"
