"""Small parts of an OpenAPI description: schemas, contents, parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Schema = dict[str, Any]
# (fields, treatment, explanation), as the dialects list them.
FieldRows = Sequence[tuple[str, str, str]]

TEXT: Schema = {"type": "string"}
TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
NUMBER_OR_NULL: Schema = {"type": ["number", "null"]}
WHOLE_NUMBER: Schema = {"type": "integer"}
WHOLE_NUMBER_OR_NULL: Schema = {"type": ["integer", "null"]}
FLAG: Schema = {"type": "boolean"}
ANY_OBJECT: Schema = {"type": "object"}
OBJECT_OR_NULL: Schema = {"type": ["object", "null"]}
NULL: Schema = {"type": "null"}


def object_of(*required: str, **properties: Schema) -> Schema:
    return {"type": "object", "required": list(required), "properties": properties}


def all_of_object(**properties: Schema) -> Schema:
    """Returns the schema of an object that always has all of these properties."""
    return object_of(*properties, **properties)


def array_of(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def reference(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def described(schema: Schema, words: str) -> Schema:
    return {**schema, "description": words}


def json_content(schema: Schema, **examples: Any) -> Schema:
    content: Schema = {"schema": schema}
    if examples:
        content["examples"] = {name: {"value": value} for name, value in examples.items()}
    return {"application/json": content}


def stream_content(event: str, example: str) -> Schema:
    """Returns the content of a stream whose events have the schema `event`. OpenAPI 3.1 has no field for that."""
    schema = {**TEXT, "description": f"Server-sent events; the data of each is a {event}."}
    return {"text/event-stream": {"schema": schema, "x-event-schema": reference(event), "example": example}}


def path_parameter(name: str, words: str) -> Schema:
    return {"name": name, "in": "path", "required": True, "description": words, "schema": TEXT}


def header(name: str, words: str, schema: Schema = TEXT) -> Schema:
    return {"name": name, "in": "header", "description": words, "schema": schema}


def with_treatments(schema: Schema, rows: FieldRows) -> Schema:
    """Returns the schema of a request in which each field says what becomes of it, and the whole which fields are
    refused. A row may have several fields.
    """
    words = {
        field.strip().partition(".")[0]: f"{treatment.capitalize()}: {explanation}."
        for fields, treatment, explanation in rows
        for field in fields.split(",")
    }
    properties = {
        name: described(one, " ".join(filter(None, (one.get("description"), words.get(name)))))
        if name in words or "description" in one
        else one
        for name, one in schema["properties"].items()
    }
    refused = [f"`{fields}` ({explanation})" for fields, treatment, explanation in rows if treatment == "refused"]
    return {**schema, "description": f"Refused with 400: {'; '.join(refused)}.", "properties": properties}
