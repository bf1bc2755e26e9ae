"""Prepares schemas for Letta servers that can show a schema to the model almost as the client sent it.

Letta marks schemas of MCP tools that do not fit OpenAI's strict mode, and does not change schemas with this mark. Letta
0.13.0 to 0.16.2 nevertheless converts every schema: each optional parameter becomes a required one, and keywords that
strict mode lacks are dropped. If this conversion fails, the schema is passed on unchanged, so the bridge makes one
parameter fail.
"""

from __future__ import annotations

import re
from typing import Any

from bridge.stubs.subschemas import Schema

# OpenAI takes ten levels of nesting in a schema in strict mode.
MAX_STRICT_LEVELS = 8
NON_STRICT_MARK = {"mcp:SCHEMA_STATUS": "NON_STRICT_ONLY"}
_NOTES = ("description", "title")
_STRICT_KEYWORDS = {
    "object": frozenset({"type", "description", "title", "properties", "required", "additionalProperties"}),
    "array": frozenset({"type", "description", "title", "items"}),
}
_STRICT_SCALAR_KEYWORDS = frozenset({"type", "description", "title", "enum"})
_SPECIAL_TOKEN = re.compile(r"<\|(endoftext|fim_prefix|fim_middle|fim_suffix|endofprompt)\|>")


def keep_schema_as_sent(top: Schema, letta_converts: bool) -> tuple[Schema, list[str]]:
    """Returns the schema for Letta, with some parameters wrapped in `oneOf`, and a sentence about each of these."""
    properties = {
        name: inner if is_token_countable(inner) else _wrap_in_one_of(inner)
        for name, inner in top["properties"].items()
    }
    changes = [
        f"{name!r} is wrapped in oneOf: Letta's token count fails on its enum, items or default."
        for name, inner in properties.items()
        if inner is not top["properties"][name]
    ]
    schema = {**top, "properties": properties}
    if (
        letta_converts
        and properties
        and not is_strict_schema(schema)
        and all(map(_letta_can_convert, properties.values()))
    ):
        chosen = max([name for name in properties if name not in top["required"]] or properties)
        properties[chosen] = _wrap_in_one_of(properties[chosen])
        changes.append(f"{chosen!r} is wrapped in oneOf, so that Letta passes the schema on as it is.")
    return schema, changes


def is_token_countable(schema: Schema) -> bool:
    """Whether Letta can count the tokens of a parameter's schema; if not, the message to the agent fails. Letta 0.6 and
    0.7 count for every message; Letta also counts when it streams from LM Studio.
    """
    items = schema.get("items")
    return (
        all(isinstance(value, str) and not _has_special_token(value) for value in schema.get("enum", []))
        and not (isinstance(items, dict) and isinstance(items.get("type"), list))
        and not _has_special_token(str(schema.get("default", "")))
    )


def _has_special_token(text: str) -> bool:
    return bool(_SPECIAL_TOKEN.search(text))


def break_special_tokens(text: str) -> str:
    """Returns the text with blanks in special tokens such as `<|endoftext|>`, which a tokenizer refuses."""
    return _SPECIAL_TOKEN.sub(r"<| \1 |>", text)


def _wrap_in_one_of(schema: Schema) -> Schema:
    """Returns a schema of the same meaning, for which Letta's conversion fails and Letta's token count does not."""
    notes = {key: schema[key] for key in _NOTES if key in schema}
    return {**notes, "oneOf": [{key: value for key, value in schema.items() if key not in _NOTES}]}


def _letta_can_convert(schema: Any) -> bool:
    """Whether the conversion to strict mode in Letta 0.13.0 to 0.16.2 succeeds for the schema of a value."""
    if "type" not in schema:
        return "anyOf" in schema and (_letta_flattens(schema["anyOf"]) or all(map(_letta_can_convert, schema["anyOf"])))
    if schema["type"] == "object":
        return "properties" in schema and all(map(_letta_can_convert, schema["properties"].values()))
    if schema["type"] == "array":
        return "items" in schema and _letta_can_convert(schema["items"])
    return True


def _letta_flattens(alternatives: list[Schema]) -> bool:
    """Whether Letta's conversion turns the alternatives into one list of types, without looking into them."""
    named = [inner["type"] for inner in alternatives if "type" in inner]
    return bool(named) and "object" not in named and "array" not in named


def is_strict_schema(schema: Schema, level: int = 0) -> bool:
    """Whether a schema fits strict mode already: every property required, one type each, and no other keywords.
    `level` is the number of schemas around it.
    """
    kind = schema.get("type")
    if not isinstance(kind, str) or not schema.keys() <= _STRICT_KEYWORDS.get(kind, _STRICT_SCALAR_KEYWORDS):
        return False
    if level > MAX_STRICT_LEVELS:
        return False
    if kind == "array":
        return is_strict_schema(schema["items"], level + 1)
    if kind == "object":
        properties = schema.get("properties", {})
        return (
            schema.get("additionalProperties", False) is False
            and bool(properties)
            and set(properties) == set(schema.get("required", []))
            and all(is_strict_schema(inner, level + 1) for inner in properties.values())
        )
    return True
