from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from bridge.web.api_page import Field, Operation, operation_groups, schema_tables
from tests.described import DESCRIPTION

BASE = "http://bridge.test:8080"


def operations(base: str = BASE, *, needs_key: bool = False) -> dict[str, Operation]:
    groups = operation_groups(DESCRIPTION, base, needs_key=needs_key)
    return {one.id: one for group in groups.values() for one in group}


def rows(schema: Any) -> dict[str, Field]:
    (table,) = schema_tables({"components": {"schemas": {"Thing": schema}}})["Thing"]
    return {field.name: field for field in table.fields}


# --- commands ---------------------------------------------------------------------------------------------


def test_a_shell_reads_the_example_from_its_command() -> None:
    command = operations()["createChatCompletion"].requests[0].text
    words = shlex.split(command)
    assert words[:2] == ["curl", f"{BASE}/v1/chat/completions"]
    assert words[words.index("-H") + 1] == "Content-Type: application/json"
    assert json.loads(words[words.index("-d") + 1])["model"] == "my-agent"


def test_nothing_in_an_address_or_a_body_ends_a_quote_of_the_shell() -> None:
    described = {"examples": {"it's": {"value": {"text": "it's $(id) `id` \\"}}}}
    item = {"tags": ["x"], "operationId": "x", "summary": "x", "responses": {}}
    body = {"requestBody": {"content": {"application/json": {"schema": {}, **described}}}}
    made = operation_groups({"paths": {"/x;id": {"post": {**item, **body}}}}, "http://a'b", needs_key=False)
    words = shlex.split(made["x"][0].requests[0].text)
    assert words[1] == "http://a'b/x;id"
    assert json.loads(words[-1]) == {"text": "it's $(id) `id` \\"}


def test_a_key_is_sent_where_one_is_needed() -> None:
    made = operations(needs_key=True)
    assert "Authorization: Bearer YOUR_KEY" in made["listModels"].requests[0].text
    assert "Authorization" not in made["showReadiness"].requests[0].text
    assert "Authorization" not in operations()["listModels"].requests[0].text


@pytest.mark.parametrize(
    ("operation", "command"),
    [
        ("listModels", f"curl {BASE}/v1/models"),
        ("deleteResponse", f"curl -X DELETE '{BASE}/v1/responses/{{response_id}}'"),
        (
            "addBaseTools",
            f"curl -X POST {BASE}/letta/v1/tools/add-base-tools \\\n  -H 'Content-Type: application/json'",
        ),
    ],
)
def test_a_request_without_a_body_has_its_verb(operation: str, command: str) -> None:
    assert operations()[operation].requests[0].text == command


@pytest.mark.parametrize("body", [DESCRIPTION, {"a": []}, [["x" * 90, {}], None], "x" * 90, 3])
def test_long_json_has_several_lines_and_is_the_same(body: Any) -> None:
    content = {"schema": {}, "examples": {"one": {"value": body}}}
    reply = {"200": {"description": "", "content": {"application/json": content}}}
    item = {"tags": ["x"], "operationId": "x", "summary": "x", "responses": reply}
    made = operation_groups({"paths": {"/x": {"get": item}}}, BASE, needs_key=False)
    assert json.loads(made["x"][0].replies[0].examples[0].text) == body


# --- tables -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "string"}, "string"),
        ({"type": ["string", "null"]}, "string | null"),
        ({"const": "model"}, '"model"'),
        ({"enum": ["a", None]}, '"a" | null'),
        ({"type": "array", "items": {"type": "integer"}}, "array of integer"),
        ({"type": "array", "items": {"type": ["string", "null"]}}, "array of (string | null)"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string | null"),
        ({"$ref": "#/components/schemas/Model"}, "Model"),
        ({}, "any"),
    ],
)
def test_a_type_is_said_in_words(schema: Any, words: str) -> None:
    assert rows({"type": "object", "properties": {"field": schema}})["field"].type == words


def test_fields_of_inner_objects_are_rows_below_their_object() -> None:
    inner = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "description": "Who."}}}
    made = rows(
        {
            "type": "object",
            "properties": {
                "one": inner,
                "many": {"type": "array", "items": inner},
                "maybe": {"anyOf": [inner, {"type": "null"}]},
            },
        }
    )
    assert list(made) == ["one", "one.name", "many", "many[].name", "maybe", "maybe.name"]
    assert made["many[].name"] == Field("many[].name", "string", "Who.", True, [])
    assert not made["one"].required


def test_a_reference_leads_to_its_table() -> None:
    reference = {"$ref": "#/components/schemas/Model"}
    made = rows({"type": "object", "properties": {"data": {"type": "array", "items": reference}}})
    assert made["data"].schemas == ["Model"]


def test_each_alternative_has_a_table_with_its_types() -> None:
    tables = schema_tables(DESCRIPTION)["ResponseItem"]
    assert [table.title for table in tables] == ["message", "reasoning", "function_call", "custom_tool_call"]
    assert [field.name for field in tables[2].fields] == [
        *("type", "id", "status", "call_id", "name", "namespace", "arguments")
    ]


def test_every_field_of_the_description_is_in_a_table() -> None:
    def names(schema: Any) -> set[str]:
        if isinstance(schema, list):
            return set[str]().union(*map(names, schema))
        if not isinstance(schema, dict):
            return set()
        own = set(schema["properties"]) if isinstance(schema.get("properties"), dict) else set[str]()
        return own.union(*map(names, schema.values()))

    shown = {
        part.removesuffix("[]")
        for tables in schema_tables(DESCRIPTION).values()
        for table in tables
        for field in table.fields
        for part in field.name.split(".")
    }
    assert names(DESCRIPTION["components"]["schemas"]) - shown == set()
