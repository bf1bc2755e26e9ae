"""Side requests are recognised by texts that programs write, never by a user's words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bridge.dialects.openai.side_requests import find_side_rule
from bridge.dialects.openai.transcript import Transcript
from bridge.turn import Message
from bridge.values import parse_own_files

RULES = parse_own_files("").side_rules
COMPACTION = "You are the component that summarizes a conversation when its context window is about to overflow."
LATER = (Message("system", "You are Qwen Code."), Message("user", "hi"), Message("assistant", "hello"))
CHOICE = (
    'Available Tools: [{"name": "read_file"}]\n\n'
    "Your task is to choose and return the correct tool(s) from the list of available tools based on the query."
)
COMMIT = "You are an expert software engineer that generates concise, one-line Git commit messages based on the diffs."
TASK = "### Task:\nGenerate tags.\n### Chat History:\n<chat_history>\nUSER: hi\n</chat_history>"

Request = tuple[Transcript, bool]


def asks(*messages: Message, tools: bool = False) -> Request:
    """A transcript, and whether the request offers tools."""
    return messages, tools


def system(text: str) -> Message:
    return Message("system", text)


def user(text: str) -> Message:
    return Message("user", text)


@pytest.mark.parametrize(
    ("request_", "name"),
    [
        (asks(system("You are a title generator. Say a title."), user("hi")), "title of OpenCode and Kilo"),
        (asks(system("You are a context summarization agent."), user("hi")), "summary of OpenCode, Kilo and pi"),
        (
            asks(
                system("You are a helpful AI assistant tasked with summarizing conversations."),
                user("CRITICAL: This summarization request is a SYSTEM OPERATION, not a user message."),
                tools=True,
            ),
            "summary of Roo Code",
        ),
        (
            asks(
                system("Formatting re-enabled\nYou are a helpful AI assistant tasked with summarizing conversations."),
                user("CRITICAL: This summarization request is a SYSTEM OPERATION, not a user message."),
                tools=True,
            ),
            "summary of Roo Code",
        ),
        (
            asks(system("You are performing a managed memory dream over files."), user("go"), tools=True),
            "memory dream of Qwen Code",
        ),
        (asks(user(TASK)), "title, tags, follow-ups and search queries of Open WebUI"),
        (asks(system("Always be kind."), user(TASK)), "title, tags, follow-ups and search queries of Open WebUI"),
        (asks(system(CHOICE), user("Query: hi")), "choice of tools of Open WebUI, where Function Calling is Legacy"),
        (asks(system(COMMIT), user("diff --git")), "commit message of Aider"),
        (
            asks(system("*Briefly* summarize this partial conversation about programming."), user("# USER\nhi")),
            "summary of Aider",
        ),
        (asks(system(COMPACTION), *LATER[1:], user("Sum up.")), "summary of Qwen Code"),
        (
            asks(
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
def test_side_requests_of_programs_are_recognised(request_: Request, name: str) -> None:
    rule = find_side_rule(*request_, RULES)
    assert rule is not None
    assert rule.name == name


@pytest.mark.parametrize(
    "request_",
    [
        asks(user("You are a title generator. Make me a title.")),
        asks(user("### Task:\nWrite an essay.")),
        asks(user("hello"), Message("assistant", "hi"), user(TASK)),
        asks(user(TASK), tools=True),
        asks(user("### Task:\nRespond to the query by these sources.\n<context>\n<source>milk</source>\n</context>")),
        asks(system("You are a title generator"), user("hi"), tools=True),
        asks(*LATER, user(COMPACTION)),
        asks(
            system("You are Qwen Code."),
            user(f"{COMPACTION} <state_snapshot> tool execution is disabled for this request"),
            Message("assistant", "Is that so?"),
            user("Yes."),
        ),
        asks(system("You are Roo."), user("CRITICAL: This summarization request is a SYSTEM OPERATION")),
        asks(system("You are a helpful AI assistant tasked with summarizing conversations"), user("hi"), tools=True),
        asks(system("Be kind. You are a title generator"), user("hi")),
        asks(system("Available Tools: a saw. Be a carpenter."), user("hi")),
        asks(user(CHOICE)),
    ],
)
def test_messages_of_users_are_not_mistaken_for_side_requests(request_: Request) -> None:
    assert find_side_rule(*request_, RULES) is None


def test_a_file_can_add_rules(tmp_path: Path) -> None:
    file = tmp_path / "side_requests.json"
    file.write_text(json.dumps([{"name": "ours", "role": "system", "begins": "Summarise for ACME", "summary": True}]))
    rules = parse_own_files(str(tmp_path)).side_rules
    rule = find_side_rule((system("Summarise for ACME: all"), user("x")), False, rules)
    assert rule is not None
    assert (rule.name, rule.summary) == ("ours", True)


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
def test_an_invalid_file_of_rules_is_refused_with_the_reason(tmp_path: Path, content: str, words: str) -> None:
    file = tmp_path / "side_requests.json"
    file.write_text(content)
    with pytest.raises(ValueError, match=words):
        parse_own_files(str(tmp_path))
