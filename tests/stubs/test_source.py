"""The stub's source does what it should, and nothing else gets into it."""

import ast
from pathlib import Path

import pytest

from bridge.stubs import source
from bridge.stubs.source import RELAY_COUNT, RELAY_PIECE, RELAY_PREFIX, UnsafeSource, stub_source


def run(code: str, name: str) -> str:
    namespace: dict[str, object] = {}
    exec(code, namespace)
    function = namespace[name]
    assert callable(function)
    result = function(os="x", command=None)
    assert isinstance(result, str)
    return result


def test_a_comment_says_what_the_source_is_and_whose() -> None:
    comment = stub_source("read_file").split("def ")[0]
    assert "letta-tool-bridge" in comment
    assert "client" in comment
    assert "don't edit" in comment


def test_the_source_is_one_function_without_named_parameters_that_returns_text() -> None:
    (function,) = ast.parse(stub_source("read_file")).body
    assert isinstance(function, ast.FunctionDef)
    assert ast.unparse(function.args) == "**kwargs"
    assert "client" in run(stub_source("read_file"), "read_file")


def test_letta_finds_a_name_that_is_not_valid_in_python() -> None:
    code = stub_source("odd-server--get")
    assert "\n# def odd-server--get " in code
    assert "\ndef odd_server_get(**kwargs):" in code
    assert "# def" not in stub_source("read_file")


@pytest.mark.parametrize("name", ["class", "2fa", "None", "print", "-", "_", "__import__"])
def test_every_valid_name_of_a_tool_makes_a_function(name: str) -> None:
    code = stub_source(name)
    (function,) = ast.parse(code).body
    assert isinstance(function, ast.FunctionDef)
    assert "client" in run(code, function.name)


@pytest.mark.parametrize("name", ["a\n", "a\nimport os", "x'", "a b", "", "a" * 65, "ü", "{{x}}", "a#b"])
def test_a_name_that_might_be_code_is_refused(name: str) -> None:
    with pytest.raises(UnsafeSource):
        stub_source(name)


@pytest.mark.parametrize("addition", ["\nimport os", "\n    print(kwargs)", "\nx = 1"])
def test_a_template_with_additional_code_is_refused(
    addition: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    template = (source.TEMPLATES / source.TEMPLATE).read_text(encoding="utf-8")
    (tmp_path / source.TEMPLATE).write_text(template + addition, encoding="utf-8")
    monkeypatch.setattr(source, "TEMPLATES", tmp_path)
    monkeypatch.setattr(source, "_template_environment", source._template_environment.__wrapped__)
    with pytest.raises(UnsafeSource):
        stub_source.__wrapped__("read_file")


def test_the_relay_returns_the_text_in_the_agents_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    code = stub_source("read_file", "relay")
    assert run(code, "read_file") == ""
    for number, piece in enumerate(["Grüße, ", "", "\n{}"]):
        monkeypatch.setenv(f"{RELAY_PIECE}{number}", RELAY_PREFIX + piece)
    monkeypatch.setenv(RELAY_COUNT, "3")
    assert run(code, "read_file") == "Grüße, \n{}"
