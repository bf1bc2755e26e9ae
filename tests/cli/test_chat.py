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
from bridge.running import RunningBridge
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


def chat(url: str, *arguments: str, given: str | None = None, agent: str = "Ada") -> Result:
    named = [agent] if agent else []
    return run_chat(*named, "--url", url, *arguments, given=given)


def run_chat(*arguments: str, given: str | None = None) -> Result:
    def nothing(*_: object) -> Any:
        raise AssertionError("`chat` must not need the service's settings")

    return CliRunner().invoke(make_command_group(nothing, nothing), ["chat", *arguments], given)


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


# --- agents -----------------------------------------------------------------------------------------------


def test_the_only_agent_need_not_be_named(url: str, letta: FakeGateway) -> None:
    letta.will_say("Hello.")
    assert chat(url, "--say", "Hi", agent="").stdout == "Hello.\n"
    assert letta.prompts[-1].texts == ["Hi"]


@pytest.mark.parametrize(("agent", "said"), [("", "Name the agent to talk to."), ("Adda", "Error: ")])
def test_without_a_right_name_the_agents_are_listed_before_anything_is_asked(
    url: str, letta: FakeGateway, agent: str, said: str
) -> None:
    letta.has_agent("Bob")
    done = chat(url, given="Hi\n", agent=agent)
    assert done.exit_code == 1
    assert said in done.stderr
    assert done.stderr.endswith("\nThe agents are:\n  Ada\n  Bob\n")
    assert letta.prompts == []


def test_a_long_list_of_agents_is_cut_short(url: str, letta: FakeGateway) -> None:
    for number in range(30):
        letta.has_agent(f"agent {number}")
    assert chat(url, agent="").stderr.endswith("\n  agent 18\n  and 11 more\n")


def test_a_server_without_agents_is_said(url: str, letta: FakeGateway) -> None:
    letta.loses_agent(letta.agents_named("Ada")[0].id)
    assert "There is no agent yet that you may talk to." in chat(url, agent="").stderr


@pytest.mark.parametrize("name", ["Ada/Lovelace & co.", "a:b?c#d"])
def test_a_name_may_have_any_character(url: str, letta: FakeGateway, name: str) -> None:
    letta.has_agent(name)
    letta.will_say("Hello.")
    assert chat(url, "--say", "Hi", agent=name).stdout == "Hello.\n"


def test_an_agent_can_be_asked_aside(url: str, letta: FakeGateway) -> None:
    letta.will_say("Hello.")
    assert chat(url, "--say", "Hi", agent="Ada:aside").stdout == "Hello.\n"


# --- the bridge -------------------------------------------------------------------------------------------


def test_the_bridge_of_make_run_is_found(
    url: str, letta: FakeGateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    letta.will_say("Hello.")
    monkeypatch.setattr("bridge.cli.chat.find_running", lambda: RunningBridge(url, {}))
    assert run_chat("Ada", "--say", "Hi").stdout == "Hello.\n"


def test_without_a_running_bridge_the_usual_address_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.cli.chat.find_running", lambda: None)
    monkeypatch.setattr("bridge.cli.chat.USUAL_URL", "http://127.0.0.1:9")
    done = run_chat("Ada", "--say", "Hi")
    assert done.stderr.startswith("Error: The bridge at http://127.0.0.1:9 does not answer")
    assert "`make run` starts a bridge; `--url` or BRIDGE_URL names another one." in done.stderr


@pytest.mark.parametrize("form", ["{}/", "{}/v1", "{}/v1/"])
def test_the_address_may_be_the_base_url_of_a_client(url: str, letta: FakeGateway, form: str) -> None:
    letta.will_say("Hello.")
    assert chat(form.format(url).removeprefix("http://"), "--say", "Hi").stdout == "Hello.\n"


class TestABridgeWithKeys:
    @pytest.fixture
    def environment(self, environment: dict[str, str]) -> dict[str, str]:
        return {**environment, "BRIDGE_API_KEYS": "a-long-enough-key"}

    def test_the_key_is_asked_for_by_its_variable(self, url: str, letta: FakeGateway) -> None:
        assert chat(url, "--say", "Hi").stderr.endswith(
            " This command takes it from the variable BRIDGE_KEY, or from `--key`.\n"
        )
        letta.will_say("Hello.")
        assert chat(url, "--say", "Hi", "--key", "a-long-enough-key").stdout == "Hello.\n"


# --- typed lines ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("typed", ["/quit\n", " /quit \n"])
def test_quit_ends_the_chat(url: str, letta: FakeGateway, typed: str) -> None:
    letta.will_say("One")
    done = chat(url, given=f"first\n{typed}second\n")
    assert (done.exit_code, done.stdout) == (0, "One\n")


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("/help", "/help shows this. /quit ends"),
        ("/exit", "There is no command /exit.\n/help shows this."),
        ("/tell me more", "There is no command /tell.\n/help shows this."),
    ],
)
def test_commands_are_not_sent_to_the_agent(url: str, letta: FakeGateway, typed: str, said: str) -> None:
    done = chat(url, given=f"{typed}\n")
    assert (done.exit_code, done.stdout) == (0, "")
    assert said in done.stderr
    assert letta.prompts == []


@pytest.mark.parametrize("typed", ["/etc/hosts is what?", " /tell me", "a /help"])
def test_other_lines_with_a_slash_are_messages(url: str, letta: FakeGateway, typed: str) -> None:
    letta.will_say("One")
    chat(url, given=f"{typed}\n")
    assert letta.prompts[-1].texts == [typed]


def test_ctrl_c_at_the_prompt_ends_the_chat_as_ctrl_d_does(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(prompt: str) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("builtins.input", interrupt)
    done = chat(url)
    assert (done.exit_code, done.output.count("\n")) == (0, 2)


def test_ctrl_c_in_an_answer_ends_the_chat_without_a_traceback(
    url: str, letta: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(piece: str) -> None:
        raise KeyboardInterrupt

    letta.will_say("One")
    monkeypatch.setattr("bridge.cli.chat._print_text", interrupt)
    done = chat(url, "--say", "Hi")
    assert (done.exit_code, done.output) == (130, "\n")


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
