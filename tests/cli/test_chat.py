"""The reference client: what it sends and what it runs. It asks before it runs a call."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from flask import Flask
from werkzeug.serving import make_server

from bridge.cli.group import make_command_group
from bridge.cli.local_tools import BadTools, load_tools, schema_of_function
from bridge.errors import ModelFailed
from bridge.turn import Text
from tests.fakes import FakeGateway
from tests.test_complaints import held

pytestmark = pytest.mark.servers

PYTHON = '''
"""Tools of a test."""
import json
from typing import Literal

def add(a: int, b: int = 1) -> int:
    """Adds two numbers."""
    return a + b

def fail(why: str) -> str:
    """Fails."""
    raise LookupError(why)

def _hidden() -> None: ...
'''
COMMANDS = [
    {
        "type": "function",
        "function": {"name": "show", "description": "Shows words.", "parameters": {"type": "object"}},
        "command": ["printf", "%s|%s", "{word}", "about {word}"],
    },
    {"type": "function", "function": {"name": "find"}, "command": ["echo", "-n", '{"in": "{file-name}"}', "{}"]},
    {"type": "function", "function": {"name": "give"}, "command": ["cat"]},
    {"type": "function", "function": {"name": "broken"}, "command": ["sh", "-c", "echo oh >&2; exit 3"]},
]


@pytest.fixture
def url(app: Flask) -> Iterator[str]:
    server = make_server("127.0.0.1", 0, app, threaded=True)
    serving = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    serving.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    serving.join()
    server.server_close()


@pytest.fixture
def functions(tmp_path: Path) -> Path:
    file = tmp_path / "tools_of_a_test.py"
    file.write_text(PYTHON)
    return file


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    file = tmp_path / "tools.json"
    file.write_text(json.dumps(COMMANDS))
    return file


def chat(url: str, *arguments: str, given: str | None = None) -> Result:
    def nothing(*_: object) -> Any:
        raise AssertionError("`chat` must not need the service's settings")

    return CliRunner().invoke(make_command_group(nothing, nothing), ["chat", "Ada", "--url", url, *arguments], given)


def test_an_answer_is_printed(url: str, letta: FakeGateway) -> None:
    letta.will_say("Good ", "morning.")
    done = chat(url, "--say", "Hello")
    assert (done.exit_code, done.stdout) == (0, "Good morning.\n")
    assert letta.prompts[-1].texts == ["Hello"]


def test_a_call_is_run_and_its_result_given_back(url: str, letta: FakeGateway, functions: Path) -> None:
    letta.will(Text("Let me add."), *held(("add", '{"a": 2, "b": 3}')))
    letta.will_say("It is 5.")
    done = chat(url, "--tools", str(functions), "--yes", "--say", "Add 2 and 3")
    assert done.exit_code == 0, done.output
    assert done.stdout == "Let me add.It is 5.\n"
    assert "→ add(a=2, b=3)" in done.stderr
    assert "← 5" in done.stderr
    assert set(letta.prompts[-1].tools) == {"add", "fail"}
    assert letta.prompts[-1].messages[0].results[0].text == "5"  # type: ignore[union-attr]


@pytest.mark.parametrize(("answer", "given"), [("y\n", "5"), ("n\n", "The user did not allow this call."), ("", "The")])
def test_a_call_is_run_only_after_the_user_allows_it(
    url: str, letta: FakeGateway, functions: Path, answer: str, given: str
) -> None:
    letta.will(*held(("add", '{"a": 2, "b": 3}')))
    letta.will_say("Fine.")
    done = chat(url, "--tools", str(functions), "--say", "Add", given=answer)
    assert done.exit_code == 0, done.output
    assert "run it?" in done.stderr
    assert letta.prompts[-1].messages[0].results[0].text.startswith(given)  # type: ignore[union-attr]


def test_several_calls_at_once_are_all_answered(url: str, letta: FakeGateway, functions: Path) -> None:
    letta.will(*held(("add", '{"a": 1}'), ("add", '{"a": 5}')))
    letta.will_say("Done.")
    assert chat(url, "--tools", str(functions), "--yes", "--say", "Go").exit_code == 0
    given = letta.prompts[-1].messages[0].results  # type: ignore[union-attr]
    assert [result.text for result in given] == ["2", "6"]


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("fail", '{"why": "no reason"}', "LookupError: no reason"),
        ("add", '{"c": 1}', "TypeError: "),
        ("add", "not json", "The arguments are not a JSON object."),
        ("add", "[1, 2]", "The arguments are not a JSON object."),
    ],
)
def test_a_failing_tool_gives_its_error_as_the_result(
    url: str, letta: FakeGateway, functions: Path, name: str, arguments: str, said: str
) -> None:
    letta.will(*held((name, arguments)))
    letta.will_say("I see.")
    assert chat(url, "--tools", str(functions), "--yes", "--say", "Go").stdout == "I see.\n"
    (given,) = letta.prompts[-1].messages[0].results  # type: ignore[union-attr]
    assert given.text.startswith(said)
    assert not given.ok


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("show", {"word": "a; touch x $(date)"}, "a; touch x $(date)|about a; touch x $(date)"),
        ("show", {"word": "{other}", "other": "never put in"}, "{other}|about {other}"),
        ("find", {"file-name": "a b"}, '{"in": "a b"} {}'),
        ("give", {"n": 1}, '{"n": 1}'),
        ("broken", {}, "exit code 3\noh\n"),
    ],
)
def test_commands_get_arguments_as_words_and_as_json(
    programs: Path, name: str, arguments: dict[str, Any], said: str
) -> None:
    assert load_tools(programs)[name].run(arguments) == said


def test_the_number_of_turns_is_limited(url: str, letta: FakeGateway, functions: Path) -> None:
    for _ in range(3):
        letta.will(*held(("add", '{"a": 1}')))
    done = chat(url, "--tools", str(functions), "--yes", "--turns", "3", "--say", "Go")
    assert done.exit_code == 1
    assert "The agent still calls tools after 3 turns" in done.stderr


def test_typed_lines_are_sent_until_the_input_ends(url: str, letta: FakeGateway) -> None:
    letta.will_say("One")
    letta.will_say("Two")
    done = chat(url, given="first\n\nsecond\n")
    assert done.stdout == "One\nTwo\n"
    assert [prompt.texts for prompt in letta.prompts] == [["first"], ["second"]]


def test_an_error_of_the_bridge_is_one_line(url: str, letta: FakeGateway) -> None:
    letta.will(ModelFailed("The agent's model failed."))
    done = chat(url, "--say", "Hello")
    assert (done.exit_code, done.stderr) == (1, "Error: The agent's model failed.\n")


def test_a_reply_that_breaks_off_is_an_error(url: str, letta: FakeGateway) -> None:
    letta.will(Text("Half an"), ModelFailed("The agent's model failed."))
    done = chat(url, "--say", "Hello")
    assert done.exit_code == 1
    assert done.stderr.startswith("Error: ")


def test_a_missing_bridge_is_an_error() -> None:
    done = chat("http://127.0.0.1:9", "--say", "Hello")
    assert done.exit_code == 1
    assert "The bridge at http://127.0.0.1:9 does not answer as it should" in done.stderr


def test_control_characters_of_the_agent_do_not_reach_the_terminal(url: str, letta: FakeGateway) -> None:
    letta.will_say("red \x1b[31m and \x07 bell")
    assert chat(url, "--say", "Hello").stdout == "red ?[31m and ? bell\n"


def test_a_schema_is_made_from_a_function() -> None:
    def find(text: str, kinds: list[int], deep: bool = False, limit: int | None = None) -> str:
        """Finds things.

        Many of them.
        """
        return ""

    assert schema_of_function(find) == {
        "type": "function",
        "function": {
            "name": "find",
            "description": "Finds things.\n\nMany of them.",
            "parameters": {
                "type": "object",
                "properties": {
                    "text": {"type": "string"},
                    "kinds": {"type": "array", "items": {"type": "integer"}},
                    "deep": {"type": "boolean", "default": False},
                    "limit": {"type": "integer"},
                },
                "required": ["text", "kinds"],
            },
        },
    }


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("tools.json", "{", "can't be read as JSON"),
        ("tools.json", "{}", "must hold an array"),
        ("tools.json", '[{"type": "function"}]', "tool 1 is not of the form"),
        ("tools.json", '[{"function": {"name": "x"}}]', "needs a `command`"),
        ("tools.json", '[{"function": {"name": "x"}, "command": "ls"}]', "needs a `command`"),
        ("tools.json", "[]", "has no tools"),
        ("tools.py", "def broken(:", "can't be run"),
        ("tools.py", "import json", "has no tools"),
    ],
)
def test_an_invalid_file_of_tools_is_refused(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(BadTools, match=said):
        load_tools(tmp_path / name)
