"""Tests of the script language, from a message's text to the steps of the model."""

import pytest

from testbed.model import script
from testbed.model.script import WORDS, Failure, Script, ScriptedCall, ScriptError, ScriptStep, parse_script


def steps(text: str) -> tuple[ScriptStep, ...]:
    found = parse_script(text)
    assert found is not None
    return found.steps


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("!say Hello, world", ScriptStep(text="Hello, world")),
        ("!say one\\ntwo", ScriptStep(text="one\ntwo")),
        ('!say "exactly \\\\n \\u00e9"', ScriptStep(text="exactly \\n é")),
        ('!say "quoted" and more', ScriptStep(text='"quoted" and more')),
        ("!say", ScriptStep(text="")),
        ("!plain Hi", ScriptStep(text="Hi", plain=True)),
        ("!think of it", ScriptStep(thought="of it")),
        ("!reason why", ScriptStep(reasoning="why")),
        ("!answer", ScriptStep(answer=True)),
        ("!call now", ScriptStep(calls=(ScriptedCall("now", "{}"),))),
        (
            '!call f {"b": 1,  "a": [1e400, "}"]}',
            ScriptStep(calls=(ScriptedCall("f", '{"b": 1,  "a": [1e400, "}"]}'),)),
        ),
        ('!raw f {"a": ', ScriptStep(calls=(ScriptedCall("f", '{"a":', raw=True),))),
        ("!raw f", ScriptStep(calls=(ScriptedCall("f", "", raw=True),))),
        ("!delay 0.5", ScriptStep(delay=0.5)),
        ("!slow 1", ScriptStep(slow=1.0)),
        ("!status 503", ScriptStep(failure=Failure(503))),
        ("!status 400 context_length_exceeded", ScriptStep(failure=Failure(400, "context_length_exceeded"))),
        ("!cut", ScriptStep(cut=True)),
        ("!disobey", ScriptStep(disobey=True)),
    ],
)
def test_a_command_makes_its_step(line: str, step: ScriptStep) -> None:
    assert steps(line) == (step,)


def test_every_command_is_described_at_the_top_of_the_module() -> None:
    assert [name for name in WORDS if f"    !{name}" not in (script.__doc__ or "")] == []


def test_lines_add_to_one_step_until_next_begins_another() -> None:
    assert steps("!think first\n!call a {}\n!call b {}\n!next\n!say done") == (
        ScriptStep(thought="first", calls=(ScriptedCall("a", "{}"), ScriptedCall("b", "{}"))),
        ScriptStep(text="done"),
    )


def test_commands_may_follow_each_other_in_one_line() -> None:
    one_line = '!delay 1 !call a {"x": {}} !next !say "so" !cut'
    assert steps(one_line) == steps('!delay 1\n!call a {"x": {}}\n!next\n!say so\n!cut')


def test_other_lines_of_the_message_are_ignored() -> None:
    message = "<task>\r\nPlease: !say no\n   !say yes\r\n</task>\n!important.md\n! call x"
    assert steps(message) == (ScriptStep(text="yes"),)


@pytest.mark.parametrize("text", ["", "Hello", "Wow!", "!important", "!important: read !say", "!", "say !say"])
def test_a_message_without_commands_has_no_script(text: str) -> None:
    assert parse_script(text) is None


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("Hi\n!say a\n!cal b", "line 3 of the message, '!cal b': unknown command; there are answer, call,"),
        ("!call", "the name of a tool is missing"),
        ("!raw", "the name of a tool is missing"),
        ('!call f {"a": }', "the arguments are not a JSON object; use !raw for broken ones"),
        ("!call f [1]", "unexpected '[1]' after !call"),
        ("!call f {} please", "unexpected 'please' after !call"),
        ("!answer now", "unexpected 'now' after !answer"),
        ("!delay soon", "a number of seconds is missing"),
        ("!slow -1", "the seconds must lie between 0 and 3600"),
        ("!delay nan", "the seconds must lie between 0 and 3600"),
        ("!status 200", "a status code between 400 and 599 is missing"),
        ("!status", "a status code between 400 and 599 is missing"),
    ],
)
def test_a_malformed_script_is_an_error_that_names_the_line(text: str, complaint: str) -> None:
    with pytest.raises(ScriptError) as raised:
        parse_script(text)
    assert complaint in str(raised.value)


def test_arguments_that_are_nested_too_deeply_are_an_error() -> None:
    with pytest.raises(ScriptError, match="not a JSON object"):
        parse_script("!call f " + '{"a":' * 100_000)


def test_there_is_no_step_behind_the_last() -> None:
    two = Script((ScriptStep(text="a"), ScriptStep(text="b")))
    assert [two.step(number) for number in range(3)] == [ScriptStep(text="a"), ScriptStep(text="b"), None]
