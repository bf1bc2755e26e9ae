from __future__ import annotations

import json

import pytest

from bridge.catalogue.access import LONGEST_DESCRIPTION, Answer, ToolAccess, access_tools, choose_names
from bridge.catalogue.catalogue import Catalogue
from bridge.turn import ToolCall, ToolSpec

READ = ToolSpec("read_file", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
SILENT = ToolSpec("now")
CATALOGUE = Catalogue([READ, SILENT, ToolSpec("write_file", "Writes a file.")])
ACCESS = ToolAccess(CATALOGUE, choose_names(CATALOGUE), lambda spec, arguments: "")


def answer(tool: str, access: ToolAccess = ACCESS, /, **arguments: object) -> ToolCall | Answer | None:
    return access.answer(ToolCall("call-1", tool, json.dumps(arguments)))


def text(tool: str, access: ToolAccess = ACCESS, /, **arguments: object) -> str:
    found = answer(tool, access, **arguments)
    assert isinstance(found, Answer)
    return found.text


def test_the_three_tools_have_names_that_are_free() -> None:
    assert [spec.name for spec in access_tools(choose_names(CATALOGUE))] == [
        "search_tools",
        "describe_tool",
        "call_tool",
    ]
    taken = Catalogue([ToolSpec("search_tools"), ToolSpec("bridge_search_tools"), ToolSpec("call_tool")])
    names = choose_names(taken)
    assert (names.search, names.describe, names.call) == (
        "bridge_search_tools_2",
        "describe_tool",
        "bridge_call_tool",
    )


def test_calls_of_other_tools_are_not_answered() -> None:
    assert answer("read_file", path="a") is None


def test_a_call_becomes_that_of_the_clients_tool_with_the_same_id() -> None:
    called = answer("call_tool", name="read_file", arguments={"path": "a"})
    assert called == ToolCall("call-1", "read_file", '{"path": "a"}')
    assert answer("call_tool", name="now") == ToolCall("call-1", "now", "{}")


def test_a_description_has_the_exact_schema() -> None:
    shown = json.loads(text("describe_tool", name="read_file").splitlines()[0])
    assert shown == {"name": "read_file", "description": "Reads a file.", "parameters": READ.parameters}
    assert json.loads(text("describe_tool", name="now").splitlines()[0])["parameters"]["properties"] == {}


def test_a_very_long_description_is_cut() -> None:
    long = Catalogue([ToolSpec("long", "x" * 2 * LONGEST_DESCRIPTION)])
    shown = text("describe_tool", ToolAccess(long, choose_names(long), ACCESS.check), name="long")
    assert len(shown) < LONGEST_DESCRIPTION + 200
    assert "more characters are left out" in shown


def test_answers_name_the_tools_as_the_model_sees_them() -> None:
    shown = {"search_tools": "search_tools_1", "describe_tool": "describe_tool_2", "call_tool": "call_tool_3"}
    access = ACCESS.shown_as(shown)
    assert "describe_tool_2" in text("search_tools", access, words="file")
    assert "call_tool_3" in text("describe_tool", access, name="now")
    assert "search_tools_1" in text("call_tool", access, name="nothing")
    assert "called by itself" in text("call_tool", access, name="search_tools_1")


@pytest.mark.parametrize("schema_length", [10, 10_000])
def test_a_fault_of_arguments_is_answered_with_the_schema_if_it_is_short(schema_length: int) -> None:
    spec = ToolSpec("odd", "", {"type": "object", "title": "x" * schema_length})
    catalogue = Catalogue([spec])
    access = ToolAccess(catalogue, choose_names(catalogue), lambda spec, arguments: "it is wrong")
    shown = text("call_tool", access, name="odd", arguments={})
    assert "do not fit odd: it is wrong" in shown
    assert ('"title"' in shown) == (schema_length < 1_000)
    assert len(shown) < 5_000


def test_a_client_may_have_tools_of_all_names_that_come_to_mind() -> None:
    taken = Catalogue([ToolSpec("search_tools"), *(ToolSpec(f"bridge_search_tools_{n}") for n in range(5_000))])
    assert choose_names(taken).search == "bridge_search_tools"
    taken = Catalogue([*taken.specs, ToolSpec("bridge_search_tools")])
    assert choose_names(taken).search == "bridge_search_tools_5000"


def test_answers_have_no_letters_that_letta_can_not_store() -> None:
    odd = Catalogue([ToolSpec("odd\ud800", "Does\x00 odd \udfff things.", {"title": "\x00"})])
    access = ToolAccess(odd, choose_names(odd), ACCESS.check)
    for found in (text("search_tools", access, words="odd"), text("describe_tool", access, name="odd")):
        found.encode()
        assert "\x00" not in found
