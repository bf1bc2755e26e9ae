"""Every tool in cases/tools: what Letta gets, what the model sees, and which arguments the client gets."""

from __future__ import annotations

import ast
from pathlib import Path

import jsonschema
import pytest

from bridge.errors import InvalidRequest
from bridge.stubs.arguments import restore_arguments
from bridge.stubs.converter import make_stub
from bridge.stubs.source import PLACEHOLDER
from testbed.model.schemas import schema_findings, strict_findings
from tests.letta_schemas import AS_SENT, FORMS, count_tokens, seen_by_model
from tests.stub_cases import (
    BAD_TOOLS,
    calls_of,
    golden,
    read,
    source_file,
    spec_of,
    stub_of,
    tool_folders,
)

FOLDERS = tool_folders()
each_tool = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)


def test_there_are_enough_cases_and_each_has_calls_for_every_form() -> None:
    assert len(FOLDERS) >= 50
    silent = [(folder.name, form) for folder in FOLDERS for form in FORMS if not calls_of(folder, form)]
    assert silent == []


@each_tool
def test_letta_gets_what_was_reviewed(folder: Path) -> None:
    for form in FORMS:
        stub = stub_of(folder, form)
        assert golden(stub, form) == read(folder / f"stub.{form}.json")
        assert stub.source_code == source_file(folder, form).read_text(encoding="utf-8")


@each_tool
def test_the_client_gets_its_own_arguments(folder: Path) -> None:
    for form in FORMS:
        stub = stub_of(folder, form)
        for call in calls_of(folder, form):
            assert restore_arguments(stub, call.model) == call.client


@each_tool
def test_letta_and_the_model_accept_the_schema(folder: Path) -> None:
    for form in FORMS:
        stub = stub_of(folder, form)
        jsonschema.Draft202012Validator.check_schema(stub.json_schema["parameters"])
        count_tokens(stub.json_schema, form)
        seen = seen_by_model(stub.json_schema, form)
        assert list(schema_findings(stub.name, seen["parameters"])) == []
        assert not seen.get("strict") or list(strict_findings(stub.name, seen["parameters"])) == []


@each_tool
def test_the_source_is_one_harmless_function(folder: Path) -> None:
    for form in FORMS:
        stub = stub_of(folder, form)
        assert f"def {stub.name}" in stub.source_code
        (function,) = ast.parse(stub.source_code).body
        assert isinstance(function, ast.FunctionDef)
        namespace: dict[str, object] = {}
        exec(stub.source_code, namespace)
        stand_in = namespace[function.name]
        assert callable(stand_in)
        assert stand_in(anything=1, at_all=None) == PLACEHOLDER


@pytest.mark.parametrize("path", sorted(BAD_TOOLS.glob("*.json")), ids=lambda path: path.stem)
def test_an_invalid_tool_is_refused_with_its_place_and_fault(path: Path) -> None:
    case = read(path)
    with pytest.raises(InvalidRequest) as caught:
        make_stub(spec_of(case["tool"]), AS_SENT, where="tools[2].function")
    assert caught.value.status == 400
    assert (caught.value.param, caught.value.message) == (case["param"], case["message"])
