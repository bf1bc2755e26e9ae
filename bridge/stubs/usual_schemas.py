"""Recognises schemas that are surely valid, as most are, many times faster than `check_schema` reads them.

A client may offer thousands of tools, of which the agent gets a few.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from bridge.stubs.checks import SchemaLimits
from bridge.stubs.subschemas import KINDS

# What is longer, or has more brackets, is read by `check_schema`: its limits are higher than these.
_LONGEST = 20_000
_MOST_BRACKETS = 60
# How JSON text has NUL and halves of surrogate pairs, which can't be stored; `\ud` also begins a whole pair.
_ODD_LETTERS = ("\\u0000", "\\ud")
_encode = json.JSONEncoder(allow_nan=False).encode


def is_usual(parameters: Any, limits: SchemaLimits) -> bool:
    """Returns whether `check_schema` would accept a tool's parameters. False if that is not sure."""
    if limits.size < _LONGEST or limits.depth < _MOST_BRACKETS:
        return False
    try:
        text = _encode(parameters)
    except (ValueError, TypeError, RecursionError):
        return False
    if len(text) > _LONGEST or text.count("{") + text.count("[") > _MOST_BRACKETS:
        return False
    return not any(odd in text for odd in _ODD_LETTERS) and (parameters is None or _is_usual_schema(parameters))


def _is_usual_schema(schema: Any) -> bool:
    return schema.__class__ is dict and all(key in _USUAL and _USUAL[key](value) for key, value in schema.items())


def _is_text(value: Any) -> bool:
    return value.__class__ is str


def _is_kind(value: Any) -> bool:
    return value.__class__ is str and value in KINDS


def _is_flag(value: Any) -> bool:
    return value is True or value is False


def _is_flag_or_schema(value: Any) -> bool:
    return _is_flag(value) or _is_usual_schema(value)


def _is_number(value: Any) -> bool:
    return value.__class__ in (int, float) and abs(value) < 1e15


def _is_count(value: Any) -> bool:
    return value.__class__ is int and 0 <= value < 1_000_000_000


def _is_list_of_names(value: Any) -> bool:
    return value.__class__ is list and all(map(_is_text, value)) and len(set(value)) == len(value)


def _is_list_of_choices(value: Any) -> bool:
    return bool(value) and _is_list_of_names(value)


def _are_properties(value: Any) -> bool:
    return value.__class__ is dict and "" not in value and all(map(_is_usual_schema, value.values()))


def _is_anything(value: Any) -> bool:
    return True


_USUAL: Mapping[str, Callable[[Any], bool]] = {
    "type": _is_kind,
    "title": _is_text,
    "description": _is_text,
    "default": _is_anything,
    "enum": _is_list_of_choices,
    "format": _is_text,
    "properties": _are_properties,
    "required": _is_list_of_names,
    "additionalProperties": _is_flag_or_schema,
    "items": _is_usual_schema,
    "minimum": _is_number,
    "maximum": _is_number,
    "minItems": _is_count,
    "maxItems": _is_count,
    "minLength": _is_count,
    "maxLength": _is_count,
    "$schema": _is_anything,
}
