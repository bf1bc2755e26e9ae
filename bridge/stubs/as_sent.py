"""Schemas for the servers that can show them to the model as the client sent them, with as few changes as possible.

Letta marks schemas of MCP tools that do not fit OpenAI's strict mode, and does not change marked ones. From 0.13.0 to
0.16.2 it then converts every schema to the strict form, which makes each optional parameter a required one and drops
what the form lacks. A schema on which the conversion fails is sent unchanged, so one parameter is made to fail.
"""

from __future__ import annotations

import re
from typing import Any

from bridge.stubs.subschemas import Schema

# OpenAI takes ten levels in a strict schema.
MAX_STRICT_LEVELS = 8
NON_STRICT_MARK = {"mcp:SCHEMA_STATUS": "NON_STRICT_ONLY"}
_NOTES = ("description", "title")
_STRICT_KEYWORDS = {
    "object": frozenset({"type", "description", "title", "properties", "required", "additionalProperties"}),
    "array": frozenset({"type", "description", "title", "items"}),
}
_STRICT_SCALAR_KEYWORDS = frozenset({"type", "description", "title", "enum"})
_IGNORED_AT_THE_TOP = frozenset({"$schema", "$id", "$comment"})
_SPECIAL_TOKEN = re.compile(r"<\|(endoftext|fim_prefix|fim_middle|fim_suffix|endofprompt)\|>")


def keep_schema_as_sent(top: Schema, letta_converts: bool) -> tuple[Schema, list[str]]:
    """Returns the schema that reaches the model as `top`, and sentences about what differs."""
    properties = {name: inner if is_countable(inner) else _wrapped(inner) for name, inner in top["properties"].items()}
    changes = [
        f"{name!r} is wrapped in oneOf: Letta's token count fails on its enum, items or default."
        for name, inner in properties.items()
        if inner is not top["properties"][name]
    ]
    schema = {**top, "properties": properties}
    if letta_converts and properties and not is_strict(schema) and all(map(_is_convertible, properties.values())):
        chosen = max([name for name in properties if name not in top["required"]] or properties)
        properties[chosen] = _wrapped(properties[chosen])
        changes.append(f"{chosen!r} is wrapped in oneOf, so that Letta passes the schema on as it is.")
    return schema, changes


def is_strict(top: Schema) -> bool:
    """Whether the schema is already in OpenAI's strict form: nothing is optional, and all types are plain."""
    return _is_strict({key: value for key, value in top.items() if key not in _IGNORED_AT_THE_TOP})


def is_countable(schema: Schema) -> bool:
    """Whether Letta can count the schema's tokens: it takes only texts in `enum`, and no special tokens.

    It counts them for every message (0.6, 0.7), or when it streams from LM Studio. If it fails, the message fails.
    """
    items = schema.get("items")
    return (
        all(isinstance(value, str) and is_plain_text(value) for value in schema.get("enum", []))
        and not (isinstance(items, dict) and isinstance(items.get("type"), list))
        and is_plain_text(str(schema.get("default", "")))
    )


def is_plain_text(text: str) -> bool:
    return not _SPECIAL_TOKEN.search(text)


def plain_text(text: str) -> str:
    """Puts blanks into the special tokens that a tokenizer refuses."""
    return _SPECIAL_TOKEN.sub(r"<| \1 |>", text)


def _wrapped(schema: Schema) -> Schema:
    notes = {key: schema[key] for key in _NOTES if key in schema}
    return {**notes, "oneOf": [{key: value for key, value in schema.items() if key not in _NOTES}]}


def _is_convertible(schema: Any) -> bool:
    """Whether Letta's conversion to the strict form (0.13.0 to 0.16.2) succeeds."""
    if "type" not in schema:
        return "anyOf" in schema and (_is_flattened(schema["anyOf"]) or all(map(_is_convertible, schema["anyOf"])))
    if schema["type"] == "object":
        return "properties" in schema and all(map(_is_convertible, schema["properties"].values()))
    if schema["type"] == "array":
        return "items" in schema and _is_convertible(schema["items"])
    return True


def _is_flattened(alternatives: list[Schema]) -> bool:
    """Whether Letta's conversion turns the alternatives into one list of types, without looking further."""
    named = [inner["type"] for inner in alternatives if "type" in inner]
    return bool(named) and "object" not in named and "array" not in named


def _is_strict(schema: Schema, level: int = 0) -> bool:
    kind = schema.get("type")
    if not isinstance(kind, str) or not schema.keys() <= _STRICT_KEYWORDS.get(kind, _STRICT_SCALAR_KEYWORDS):
        return False
    if level > MAX_STRICT_LEVELS:
        return False
    if kind == "array":
        return _is_strict(schema["items"], level + 1)
    if kind == "object":
        properties = schema.get("properties", {})
        return (
            schema.get("additionalProperties", False) is False
            and bool(properties)
            and set(properties) == set(schema.get("required", []))
            and all(_is_strict(inner, level + 1) for inner in properties.values())
        )
    return True
