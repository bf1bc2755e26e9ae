"""Properties of all tools, hostile ones too. HYPOTHESIS_EXAMPLES=5000 tries more examples, other ones each time."""

from __future__ import annotations

import ast
import json
import os
import random
import re
from typing import Any

import jsonschema
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridge.stubs.arguments import restore_arguments
from bridge.stubs.converter import make_stub, rename_stub
from bridge.stubs.naming import append_digest, check_tool_name, is_script_safe, parameter_names, server_name
from bridge.stubs.source import stub_source
from bridge.turn import ToolSpec
from testbed.model.schemas import schema_findings, strict_findings
from tests.letta_schemas import FORMS, count_tokens, seen_by_model
from tests.model_side import arguments_from_model
from tests.strategies import parameter_names as hostile_names
from tests.strategies import parameter_schemas, parameters_with_arguments, texts, tool_names

EXAMPLES = int(os.environ.get("HYPOTHESIS_EXAMPLES", "0"))
hostile = settings(
    max_examples=EXAMPLES or 30,
    derandomize=not EXAMPLES,
    deadline=None,
    # Schemas are large, and the strategies are already as small as they can be.
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


def shuffled(value: Any, order: random.Random) -> Any:
    if isinstance(value, dict):
        items = list(value.items())
        order.shuffle(items)
        return {key: shuffled(inner, order) for key, inner in items}
    return [shuffled(inner, order) for inner in value] if isinstance(value, list) else value


def schemas_in(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the parameters and all schemas inside of them, except those that descriptions quote."""
    inner = [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]
    return [found for part in inner for found in [part, *schemas_in(part)]]


@hostile
@given(tool_names, texts, parameter_schemas(), st.sampled_from(["placeholder", "relay"]))
def test_only_the_name_of_a_tool_gets_into_the_source(
    name: str, description: str, schema: dict[str, Any], kind: Any
) -> None:
    for form in FORMS.values():
        stub = make_stub(ToolSpec(name, description, schema), form, kind=kind)
        assert stub.source_code == stub_source(stub.name, kind)
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", stub.name)
        assert f"def {stub.name}" in stub.source_code
        (function,) = ast.parse(stub.source_code).body
        assert isinstance(function, ast.FunctionDef)


@hostile
@given(st.lists(tool_names, min_size=2, max_size=6, unique=True), st.booleans())
def test_names_of_tools_are_valid_and_different(names: list[str], python_names: bool) -> None:
    for name in names:
        check_tool_name(name, "tools[0].function")
    given_names = [server_name(name, python_names) for name in names]
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in given_names)
    assert len(set(given_names)) == len(names)
    assert not python_names or all(map(is_script_safe, given_names))


@hostile
@given(st.lists(hostile_names, max_size=12, unique=True), st.booleans())
def test_names_of_parameters_are_valid_and_different(names: list[str], python_names: bool) -> None:
    changed = parameter_names(names, python_names)
    assert list(changed) == names
    assert len(set(changed.values())) == len(names)
    for name in changed.values():
        assert re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", name)
        assert name not in ("thinking", "inner_thoughts", "request_heartbeat")
        if python_names:
            assert is_script_safe(name)
            compile(f"{name} = 1\nf({name}={name})", "script", "exec")


@hostile
@given(tool_names, texts, parameter_schemas(), st.randoms(use_true_random=False))
def test_the_digest_does_not_depend_on_the_order_of_keys(
    name: str, description: str, schema: dict[str, Any], order: random.Random
) -> None:
    for form in FORMS.values():
        stub = make_stub(ToolSpec(name, description, schema), form)
        again = make_stub(ToolSpec(name, description, shuffled(schema, order)), form)
        assert again.digest == stub.digest
        second = rename_stub(stub, append_digest(stub.name, stub.digest))
        assert second.digest == stub.digest
        assert second.name != stub.name


@hostile
@given(parameter_schemas(), texts)
def test_no_schema_makes_letta_or_the_model_fail(schema: dict[str, Any], description: str) -> None:
    for form in FORMS:
        stub = make_stub(ToolSpec("tool", description, schema), FORMS[form])
        jsonschema.Draft202012Validator.check_schema(stub.json_schema["parameters"])
        json.dumps(stub.json_schema, allow_nan=False).encode()
        count_tokens(stub.json_schema, form)
        seen = seen_by_model(stub.json_schema, form)
        assert list(schema_findings("tool", seen["parameters"])) == []
        assert not seen.get("strict") or list(strict_findings("tool", seen["parameters"])) == []


@hostile
@given(parameter_schemas())
def test_the_model_sees_the_schema_that_letta_gets(schema: dict[str, Any]) -> None:
    for form in ("verbatim", "converting"):
        parameters = make_stub(ToolSpec("tool", "", schema), FORMS[form]).json_schema["parameters"]
        seen = seen_by_model(make_stub(ToolSpec("tool", "", schema), FORMS[form]).json_schema, form)
        if not seen.get("strict"):
            assert seen["parameters"] == parameters
        else:
            assert seen["parameters"]["properties"].keys() == parameters["properties"].keys()
            assert set(seen["parameters"]["required"]) == set(parameters["required"])


@hostile
@given(parameter_schemas())
def test_in_the_strict_forms_everything_has_one_type(schema: dict[str, Any]) -> None:
    for form in ("strict", "sandboxed"):
        stub = make_stub(ToolSpec("tool", "", schema), FORMS[form])
        for part in schemas_in(stub.json_schema["parameters"]):
            named = part["type"] if isinstance(part["type"], list) else [part["type"]]
            assert [kind for kind in named if kind != "null"][1:] == []
            assert form == "strict" or isinstance(part["type"], str)
            assert part.keys() <= {"type", "description", "enum", "properties", "required", "items"}
            assert part["type"] != "array" or "items" in part
            assert part["type"] != "object" or part["properties"]
            assert all(isinstance(value, str) for value in part.get("enum", []))


@hostile
@given(parameters_with_arguments(), st.booleans())
def test_the_client_gets_the_arguments_that_the_model_meant(
    case: tuple[dict[str, Any], dict[str, Any]], forced: bool
) -> None:
    schema, arguments = case
    jsonschema.validate(arguments, schema)
    for form in FORMS.values():
        stub = make_stub(ToolSpec("tool", "", schema), form)
        from_model = arguments_from_model(stub, arguments, forced and not form.as_sent)
        if not forced:
            own = {key: value for key, value in from_model.items() if key not in ("thinking", "request_heartbeat")}
            jsonschema.validate(own, stub.json_schema["parameters"])
        restored = json.loads(restore_arguments(stub, json.dumps(from_model)))
        assert json.dumps(restored, sort_keys=True) == json.dumps(arguments, sort_keys=True)


@hostile
@given(parameter_schemas(), st.one_of(st.text(), st.recursive(texts, st.lists, max_leaves=3).map(json.dumps)))
def test_no_arguments_make_the_bridge_fail(schema: dict[str, Any], arguments: str) -> None:
    for form in FORMS.values():
        stub = make_stub(ToolSpec("tool", "", schema), form)
        assert isinstance(restore_arguments(stub, arguments), str)
        odd = json.dumps({name: arguments for name in stub.json_schema["parameters"]["properties"]})
        assert len(json.loads(restore_arguments(stub, odd))) <= len(json.loads(odd))
