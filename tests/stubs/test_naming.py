"""Names that every server and model provider accepts, and that lead back to the client's."""

import pytest

from bridge.errors import InvalidRequest
from bridge.stubs.naming import append_digest, check_tool_name, function_name, parameter_names, server_name

KEPT = ["read_file", "Bash", "odd-server--get-weather", "mcp__files__read_text", "2fa", "a" * 64, "class", "_x", "-"]
CHANGED = {
    "fs.read.text": "fs_read_text_a0d8cd58",
    "wetter_für_köln": "wetter_fur_koln_8bbc85f4",
    "天気": "tool_bc79d84d",
    "a" * 65: "a" * 39 + "_635361c4",
    "...": "tool_ab5df625",
}


@pytest.mark.parametrize("name", KEPT)
def test_a_name_that_every_server_accepts_is_kept(name: str) -> None:
    assert server_name(name, python_names=False) == name


@pytest.mark.parametrize(("name", "expected"), CHANGED.items())
def test_another_name_stays_readable_and_gets_a_digest(name: str, expected: str) -> None:
    assert server_name(name, python_names=False) == expected
    assert len(expected) <= 48


@pytest.mark.parametrize("name", ["read-file", "class", "2fa", "print", "_x", "thinking", "a" * 64 + "b", "result_of"])
def test_a_sandboxed_tool_gets_a_name_for_a_python_function(name: str) -> None:
    changed = server_name(name, python_names=True)
    assert changed != name
    assert changed.isidentifier()
    assert function_name(changed) == changed


@pytest.mark.parametrize("name", ["read_file", "Bash", "mcp__files__read_text"])
def test_a_sandboxed_tool_keeps_its_name_where_it_can(name: str) -> None:
    assert server_name(name, python_names=True) == name


def test_a_second_name_fits_into_64_characters() -> None:
    assert append_digest("read_file", "0123456789abcdef") == "read_file_01234567"
    assert append_digest("n" * 64, "0123456789abcdef") == "n" * 55 + "_01234567"


@pytest.mark.parametrize("name", ["", "a b", "a\n", "x'", "a;b", "n" * 129, "a\u202eb", "a\x00", "{{x}}", "a\ud800"])
def test_an_invalid_name_is_refused_with_its_place(name: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        check_tool_name(name, "tools[3].function")
    assert caught.value.param == "tools[3].function.name"
    assert "tools[3].function.name" in caught.value.message


@pytest.mark.parametrize("name", ["a", "n" * 128, "fs.read", "repo/tools:search", "天気", "_", "--"])
def test_names_that_real_clients_send_are_accepted(name: str) -> None:
    check_tool_name(name, "tools[0].function")


def test_parameters_keep_their_names_except_for_three_of_lettas_own() -> None:
    kept, changed = ["path", "class", "max-results", "x.y"], ["thinking", "inner_thoughts", "request_heartbeat"]
    expected = {name: name for name in kept} | {name: f"{name}_" for name in changed}
    assert parameter_names([*kept, *changed], python_names=False) == expected


def test_symbols_and_other_alphabets_are_dropped_from_parameters() -> None:
    changed = parameter_names(["$filter", "@type", "ünïcode", "名前", "a b"], python_names=False)
    assert list(changed.values()) == ["filter", "type", "unicode", "parameter", "a_b"]


def test_a_sandboxed_parameter_is_an_identifier_that_the_script_does_not_use() -> None:
    expected = {"max-results": "max_results", "x.y": "x_y", "_x": "x", "0": "parameter_0"}
    expected |= {name: f"{name}_" for name in ("class", "str", "agent_state", "None")}
    expected["result_type"] = "parameter_result_type"
    assert parameter_names(expected, python_names=True) == expected


def test_no_two_parameters_get_the_same_name_in_any_order() -> None:
    names = ["a b", "a$b", "a_b", "a_b_2"]
    changed = parameter_names(names, python_names=False)
    assert changed == {"a b": "a_b_3", "a$b": "a_b_4", "a_b": "a_b", "a_b_2": "a_b_2"}
    assert parameter_names(reversed(names), python_names=False) == changed
