"""A schema for the servers that can show it to the model as it stands, and what little must be changed for them.

Letta marks schemas of MCP tools that are not fit for OpenAI's strict mode, and leaves marked ones alone. From 0.13.0
to 0.16.2 a conversion to the strict form comes after that: it makes every optional parameter a required one and drops
whatever the form lacks. A schema that it fails on goes out as it is, so one parameter is put in a form it fails on.
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
_UNSEEN_AT_THE_TOP = frozenset({"$schema", "$id", "$comment"})
_SPECIAL_TOKEN = re.compile(r"<\|(endoftext|fim_prefix|fim_middle|fim_suffix|endofprompt)\|>")


def kept_verbatim(root: Schema, converts: bool) -> tuple[Schema, list[str]]:
    properties = {name: inner if is_countable(inner) else _wrapped(inner) for name, inner in root["properties"].items()}
    changes = [
        f"{name!r} is wrapped in oneOf: Letta's token count fails on its enum, items or default."
        for name, inner in properties.items()
        if inner is not root["properties"][name]
    ]
    schema = {**root, "properties": properties}
    if converts and properties and not is_strict(schema) and all(map(_is_convertible, properties.values())):
        optional = [name for name in properties if name not in root["required"]]
        chosen = max(optional or properties)
        properties[chosen] = _wrapped(properties[chosen])
        changes.append(f"{chosen!r} is wrapped in oneOf, so that Letta passes the schema on as it is.")
    return schema, changes


def is_strict(root: Schema) -> bool:
    """Whether OpenAI's strict form of the schema is the schema itself: nothing optional, nothing but plain types."""
    return _is_strict({key: value for key, value in root.items() if key not in _UNSEEN_AT_THE_TOP})


def is_countable(schema: Schema) -> bool:
    """Whether Letta's count of tokens gets through it: it takes texts only in `enum`, and no tokens of its own.

    It counts on every message (0.6, 0.7), or while streaming from LM Studio; where it fails the message fails.
    """
    choices = schema.get("enum", [])
    items = schema.get("items")
    return (
        all(isinstance(value, str) and is_plain_text(value) for value in choices)
        and not (isinstance(items, dict) and isinstance(items.get("type"), list))
        and is_plain_text(str(schema.get("default", "")))
    )


def is_plain_text(text: str) -> bool:
    return not _SPECIAL_TOKEN.search(text)


def plain_text(text: str) -> str:
    """With blanks in what a tokenizer takes for a token of its own and refuses."""
    return _SPECIAL_TOKEN.sub(r"<| \1 |>", text)


def _wrapped(schema: Schema) -> Schema:
    notes = {key: schema[key] for key in _NOTES if key in schema}
    return {**notes, "oneOf": [{key: value for key, value in schema.items() if key not in _NOTES}]}


def _is_convertible(schema: Any) -> bool:
    """Whether Letta's conversion (0.13.0 to 0.16.2) gets through."""
    if "type" not in schema:
        return "anyOf" in schema and (_is_flattened(schema["anyOf"]) or all(map(_is_convertible, schema["anyOf"])))
    if schema["type"] == "object":
        return "properties" in schema and all(map(_is_convertible, schema["properties"].values()))
    if schema["type"] == "array":
        return "items" in schema and _is_convertible(schema["items"])
    return True


def _is_flattened(alternatives: list[Schema]) -> bool:
    """Whether it makes one list of types of them, without looking any further."""
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
