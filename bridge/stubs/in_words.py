"""Says in words what a schema asks for, for the servers that would lose it on the way to the model."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from bridge.stubs.subschemas import Schema

# Keywords that are said elsewhere, or that are of no use to a model.
_SILENT = frozenset(
    {"type", "description", "title", "properties", "required", "items", "additionalProperties", "nullable"}
    | {"unevaluatedProperties", "$schema", "$id", "$anchor", "$comment", "$defs", "definitions"}
    | {"readOnly", "writeOnly", "examples", "example", "deprecated"}
)
# In the order in which they are said.
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


def compact(value: Any) -> str:
    """Returns the same JSON text for every order of keys: a tool must not look new because only their order is."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def constraints(schema: Schema, except_for: frozenset[str] = frozenset()) -> list[str]:
    """Returns a phrase for each keyword that is not in `except_for`; keywords without a phrase stay JSON Schema."""
    phrases: list[str] = []
    rest = {}
    for key in sorted(schema, key=lambda keyword: (_ORDER.get(keyword, -1), keyword)):
        value = schema[key]
        if key in _SILENT or key in except_for or key.startswith("x-") or (key == "default" and value is None):
            continue
        if key in _PHRASES:
            phrases.append(_PHRASES[key].format(compact(value)))
        elif key in _SPECIAL:
            phrases.extend(_SPECIAL[key](value))
        else:
            rest[key] = value
    if isinstance(schema.get("examples"), list) and schema["examples"]:
        phrases.append("for example " + _listed(schema["examples"]))
    return [*phrases, f"fitting the JSON Schema {compact(rest)}"] if rest else phrases


def described(schema: Schema, *phrases: str) -> str:
    """Returns the schema's own description (or its title), followed by the phrases in brackets."""
    text: str = schema.get("description") or schema.get("title") or ""
    addition = "; ".join(phrase for phrase in phrases if phrase)
    if not addition:
        return text
    return f"{text.rstrip()} ({addition})" if text.strip() else addition[0].upper() + addition[1:]


def _listed(values: list[Any]) -> str:
    return ", ".join(compact(value) for value in values)


_SPECIAL: dict[str, Callable[[Any], list[str]]] = {
    "enum": lambda values: [f"one of {_listed(values)}"],
    "uniqueItems": lambda value: ["no item twice"] if value is True else [],
}
