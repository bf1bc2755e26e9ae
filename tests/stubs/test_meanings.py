"""Schemas with arguments that fit and that do not, in cases/meanings.json: what the model can give, and is told.

As for OpenAI's own tools, an object without `additionalProperties` is taken to have the named properties only.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from bridge.stubs.arguments import restore_arguments
from bridge.stubs.converter import make_stub
from bridge.turn import Stub, ToolSpec
from testbed.model.schemas import schema_findings, strict_findings
from tests.letta_schemas import FORMS, count_tokens, seen_by_model
from tests.model_side import arguments_from_model

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "cases" / "meanings.json").read_text())
each_form = pytest.mark.parametrize("form", FORMS)
WORDS_OF_THE_CLIENT = "Does it."
# Changes that leave the meaning as it was.
HARMLESS = ("What is optional may be null", "is wrapped in oneOf", "is called", "are given as the members of")


def stub_of(case: dict[str, Any], form: str) -> Stub:
    return make_stub(ToolSpec("tool", WORDS_OF_THE_CLIENT, case["schema"]), FORMS[form])


def offered_to_model(stub: Stub, form: str) -> Any:
    """Returns a validator of the arguments. Where everything must be given, null for what is left out is left out."""
    if FORMS[form].as_sent:
        schema = seen_by_model(stub.json_schema, form)["parameters"]
    else:
        schema = closed(stub.json_schema["parameters"])
    return jsonschema.Draft202012Validator(schema)


def closed(schema: dict[str, Any]) -> dict[str, Any]:
    inner = {"items": closed(schema["items"])} if "items" in schema else {}
    if "properties" in schema:
        inner["properties"] = {name: closed(one) for name, one in schema["properties"].items()}
        inner["additionalProperties"] = False
    return {**schema, **inner}


def as_given(stub: Stub, arguments: dict[str, Any]) -> dict[str, Any]:
    given = arguments_from_model(stub, arguments, forced=False)
    return {name: value for name, value in given.items() if name not in ("thinking", "request_heartbeat")}


def restored(stub: Stub, given: dict[str, Any]) -> Any:
    return json.loads(restore_arguments(stub, json.dumps(given)))


def words_of(stub: Stub) -> str:
    """Returns the description of the tool and those of its parameters, at any depth."""

    def descriptions(schema: Any) -> list[str]:
        if isinstance(schema, list):
            return [text for one in schema for text in descriptions(one)]
        if not isinstance(schema, dict):
            return []
        own = [schema["description"]] if isinstance(schema.get("description"), str) else []
        return own + [text for one in schema.values() for text in descriptions(one)]

    return " ".join(descriptions(stub.json_schema))


def changes_of_meaning(stub: Stub) -> list[str]:
    return [change for change in stub.changes if not any(phrase in change for phrase in HARMLESS)]


def test_the_cases_are_many_and_true() -> None:
    assert len(CASES) >= 150
    for case in CASES:
        original = jsonschema.Draft202012Validator(case["schema"])
        assert all(original.is_valid(arguments) for arguments in case["valid"]), case["name"]
        assert not any(original.is_valid(arguments) for arguments in case["invalid"]), case["name"]


@each_form
def test_all_that_the_client_allows_can_be_given_and_reaches_it_unchanged(form: str) -> None:
    for case in CASES:
        stub = stub_of(case, form)
        for arguments in case["valid"]:
            given = as_given(stub, arguments)
            errors = [error.message for error in offered_to_model(stub, form).iter_errors(given)]
            assert errors == [], (case["name"], arguments)
            assert restored(stub, given) == arguments, case["name"]


@each_form
def test_what_the_client_does_not_allow_is_not_offered_or_is_spoken_of(form: str) -> None:
    for case in CASES:
        stub = stub_of(case, form)
        for arguments in case["invalid"]:
            given = as_given(stub, arguments)
            if offered_to_model(stub, form).is_valid(given) and restored(stub, given) == arguments:
                assert changes_of_meaning(stub), (case["name"], arguments)
                assert words_of(stub) != WORDS_OF_THE_CLIENT, (case["name"], arguments)


@each_form
def test_letta_and_the_model_accept_the_schema(form: str) -> None:
    for case in CASES:
        stub = stub_of(case, form)
        count_tokens(stub.json_schema, form)
        seen = seen_by_model(stub.json_schema, form)
        assert list(schema_findings(stub.name, seen["parameters"])) == [], case["name"]
        assert not seen.get("strict") or list(strict_findings(stub.name, seen["parameters"])) == [], case["name"]


@each_form
def test_a_tool_without_arguments_stays_one(form: str) -> None:
    for schema in ({"type": "object"}, {"type": "object", "properties": {}}, {}, None):
        stub = make_stub(ToolSpec("tool", "Does it.", schema), FORMS[form])
        assert stub.json_schema["parameters"]["properties"] == {}
        assert (stub.unnamed, stub.changes, stub.description) == ("", (), "Does it.")
