"""What a schema says, in words: for the servers that would lose it on the way to the model."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from bridge.stubs.subschemas import Schema

# UserMessage otherwise, or of no use to a model.
_SILENT = frozenset(
    {"type", "description", "title", "properties", "required", "items", "additionalProperties", "nullable"}
    | {"unevaluatedProperties", "$schema", "$id", "$anchor", "$comment", "$defs", "definitions"}
    | {"readOnly", "writeOnly", "examples", "example", "deprecated"}
)
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


def compact(value: Any) -> str:
    """The same text however the client orders its keys: a tool must not look new when only their order is."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def constraints(schema: Schema, said: frozenset[str] = frozenset()) -> list[str]:
    """One phrase for each keyword but those in `said`; what has no phrase of its own stays JSON Schema."""
    phrases: list[str] = []
    rest = {}
    for key in sorted(schema, key=_place):
        value = schema[key]
        if key in _SILENT or key in said or key.startswith("x-") or (key == "default" and value is None):
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
    """The schema's own description (or its title), with the phrases behind it in brackets."""
    text: str = schema.get("description") or schema.get("title") or ""
    said = "; ".join(phrase for phrase in phrases if phrase)
    if not said:
        return text
    return f"{text.rstrip()} ({said})" if text.strip() else said[0].upper() + said[1:]


def _listed(values: list[Any]) -> str:
    return ", ".join(compact(value) for value in values)


def _unique(value: Any) -> list[str]:
    return ["no item twice"] if value is True else []


def _one_of(values: list[Any]) -> list[str]:
    return [f"one of {_listed(values)}"]


_SPECIAL: dict[str, Callable[[Any], list[str]]] = {"enum": _one_of, "uniqueItems": _unique}


def _place(keyword: str) -> tuple[int, str]:
    return (_PLACES.get(keyword, -1), keyword)


_PLACES = {keyword: place for place, keyword in enumerate(_PHRASES)}
