"""Calls that a model writes into its text."""

from __future__ import annotations

import json
import time

import pytest

from bridge.interception.calls_in_text import TaggedCall, TaggedText, find_argument_fault
from bridge.turn import ToolSpec

READ = ToolSpec(
    "read_file", parameters={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
)
CALL = '<call-12ab>{"name": "read_file", "arguments": {"path": "a.txt"}}</call-12ab>'
READ_A = TaggedCall("read_file", '{"path": "a.txt"}')

CASES: list[tuple[str, list[str | TaggedCall]]] = [
    ("Hello, < there", ["Hello, < there"]),
    (CALL, [READ_A]),
    (f"Let me see.\n{CALL}\nDone.", ["Let me see.\n", READ_A, "\nDone."]),
    (f"{CALL}\n  {CALL}", [READ_A, "\n  ", READ_A]),
    (f"To call it, write `{CALL}`.", [f"To call it, write `{CALL}`."]),
    (f"```\n{CALL}\n```\nSo.", [f"```\n{CALL}\n```\nSo."]),
    (CALL.replace("12ab", "99ff"), [CALL.replace("12ab", "99ff")]),
    ('<call-12ab>{"name": "read_file"', ['<call-12ab>{"name": "read_file"']),
]


def parts(text: TaggedText, pieces: list[str]) -> list[str | TaggedCall]:
    """The calls and the text, with neighbouring pieces of text joined."""
    found: list[str | TaggedCall] = []
    for part in [*(part for piece in pieces for part in text.feed(piece)), *text.end()]:
        if isinstance(part, str) and found and isinstance(found[-1], str):
            found[-1] += part
        else:
            found.append(part)
    return found


@pytest.mark.parametrize(("written", "expected"), CASES)
def test_calls_are_found_wherever_the_text_is_cut(written: str, expected: list[str | TaggedCall]) -> None:
    for size in (1, 2, 3, 7, len(written)):
        pieces = [written[start : start + size] for start in range(0, len(written), size)]
        assert parts(TaggedText("12ab", {"read_file": READ}), pieces) == expected


def test_many_blank_lines_before_a_call_take_no_time() -> None:
    began = time.thread_time()
    assert parts(TaggedText("12ab", {"read_file": READ}), ["\n" * 100_000 + CALL]) == ["\n" * 100_000, READ_A]
    assert time.thread_time() - began < 5


def test_only_text_that_may_become_a_tag_is_held_back() -> None:
    text = TaggedText("12ab", {"read_file": READ})
    assert list(text.feed("Hello <cal")) == ["Hello "]
    assert list(text.feed("m> you")) == ["<calm> you"]


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("not json", "not valid JSON"),
        ('{"name": "read_file", "arguments": {"path": NaN}}', "not valid JSON"),
        ('{"name": "read_file", "arguments": {"path": "a", "n": 1e400}}', "not valid JSON"),
        pytest.param("[" * 100_000, "not valid JSON", id="too deep"),
        ('{"name": "read_file", "arguments": {"path": null}}', "'path' must be of type string"),
        ('{"name": "other", "arguments": {}}', "no tool 'other'"),
        ('{"name": "read_file", "arguments": {}}', "'path' is missing"),
        ('{"name": "read_file", "arguments": {"path": 1}}', "'path' must be of type string"),
        ('{"name": "read_file", "arguments": [1]}', "must be a JSON object"),
    ],
)
def test_a_wrong_call_has_a_fault(body: str, fault: str) -> None:
    (call,) = parts(TaggedText("12ab", {"read_file": READ}), [f"<call-12ab>{body}</call-12ab>"])
    assert isinstance(call, TaggedCall)
    assert fault in call.fault


def test_a_null_that_leaves_an_optional_argument_out_is_removed() -> None:
    properties = {"path": {"type": "string"}, "user": {"type": ["string", "null"]}, "thinking": {"type": "integer"}}
    tool = ToolSpec("read_file", parameters={"type": "object", "properties": properties})
    body = '{"name": "read_file", "arguments": {"path": null, "user": null, "thinking": null}}'
    found = parts(TaggedText("12ab", {"read_file": tool}), [f"<call-12ab>{body}</call-12ab>"])
    assert found == [TaggedCall("read_file", '{"user": null}')]


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [({"n": None}, ""), ({"n": "1"}, "'n' must be of type integer or null"), ({}, "'n' is missing")],
)
def test_a_call_is_checked_by_what_keywords_of_older_drafts_mean(arguments: dict[str, object], fault: str) -> None:
    schema = {"properties": {"n": {"type": "INTEGER", "nullable": True, "required": True}}}
    body = json.dumps({"name": "count", "arguments": arguments})
    tools = {"count": ToolSpec("count", parameters=schema)}
    (call,) = parts(TaggedText("12ab", tools), [f"<call-12ab>{body}</call-12ab>"])
    assert isinstance(call, TaggedCall)
    assert fault in call.fault
    assert bool(fault) == bool(call.fault)


@pytest.mark.parametrize(
    ("arguments", "schema"),
    [
        ({"a": None}, {"properties": {"a": {"type": ["string", "null"]}}}),
        ({"a": 1.0}, {"properties": {"a": {"type": "integer"}}}),
        ({"a": 1}, {"properties": {"a": {"type": "number"}}}),
        ({"a": 1}, {"properties": {"a": {"anyOf": [{"type": "string"}]}}}),
        ({"b": 1}, {"properties": {"a": {"type": "string"}}}),
        ({}, {}),
    ],
)
def test_arguments_that_may_fit_have_no_fault(arguments: dict[str, object], schema: dict[str, object]) -> None:
    assert find_argument_fault(arguments, schema) == ""


def test_a_boolean_is_not_a_number() -> None:
    assert "'a'" in find_argument_fault({"a": True}, {"properties": {"a": {"type": "integer"}}})
