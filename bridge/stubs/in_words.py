"""Says in words what a JSON Schema asks for. For Letta servers that do not pass all keywords on to the model."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from bridge.stubs.subschemas import Schema

# Keywords without a phrase: the schema shows them in another place, or they are of no use to a model.
_SILENT = frozenset(
    {"type", "description", "title", "properties", "required", "items", "additionalProperties"}
    | {"unevaluatedProperties", "$defs", "definitions", "readOnly", "writeOnly", "examples", "deprecated"}
)
# The phrase for each keyword, in the order in which the phrases are said.
_PHRASES: dict[str, str] = {
    "const": "always {}",
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "{} or more characters",
    "maxLength": "{} or fewer characters",
    "pattern": "matching the regular expression {}",
    "format": "in the format {}",
    "contentEncoding": "encoded as {}",
    "contentMediaType": "of the media type {}",
    "minItems": "{} or more items",
    "maxItems": "{} or fewer items",
    "default": "default: {}",
}
_ORDER = {keyword: place for place, keyword in enumerate(_PHRASES)}


def compact_json(value: Any) -> str:
    """Returns JSON text without blanks, with sorted keys: a tool must not look new if only their order changes."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def keyword_phrases(schema: Schema, except_for: frozenset[str] = frozenset()) -> list[str]:
    """Returns a phrase for each keyword that a model needs. The last one quotes all without a phrase as JSON Schema."""
    phrases: list[str] = []
    rest = {}
    for key in sorted(schema, key=lambda keyword: (_ORDER.get(keyword, -1), keyword)):
        value = schema[key]
        if key in _SILENT or key in except_for or (key == "default" and value is None):
            continue
        if key in _PHRASES:
            phrases.append(_PHRASES[key].format(compact_json(value)))
        elif key in _SPECIAL:
            phrases.extend(_SPECIAL[key](value))
        else:
            rest[key] = value
    if schema.get("examples"):
        phrases.append("for example " + _join_values(schema["examples"]))
    return [*phrases, f"fitting the JSON Schema {compact_json(rest)}"] if rest else phrases


def describe_schema(schema: Schema, *phrases: str) -> str:
    """Returns the schema's description, or else its title, with the phrases in brackets; "" if there is no text."""
    text: str = schema.get("description") or schema.get("title") or ""
    addition = "; ".join(phrase for phrase in phrases if phrase)
    if not addition:
        return text
    return f"{text.rstrip()} ({addition})" if text.strip() else addition[0].upper() + addition[1:]


def _join_values(values: list[Any]) -> str:
    return ", ".join(compact_json(value) for value in values)


_SPECIAL: dict[str, Callable[[Any], list[str]]] = {
    "enum": lambda values: [f"one of {_join_values(values)}"],
    "uniqueItems": lambda value: ["no item twice"] if value is True else [],
}
