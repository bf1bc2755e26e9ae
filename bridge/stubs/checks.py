"""Checks that a tool's parameters are a usable JSON Schema: Letta takes a malformed one, and fails at every message."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bridge.errors import InvalidRequest, TooDeep
from bridge.stubs.subschemas import KINDS, is_schema, map_subschemas

# How many characters of a property's name an error shows.
_SHOWN = 64
# Letta's databases can't keep NUL and halves of surrogate pairs.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class SchemaLimits:
    """Limits for nested arrays and objects, and for characters of the client's schema and of the one that Letta gets.
    The latter may repeat a definition at each reference.
    """

    depth: int = 64
    size: int = 256 * 1024
    converted_size: int = 1024 * 1024


def schema_limits(depth: int, size: int) -> SchemaLimits:
    """Returns the limits that the operator allows. Letta's schema may be four times as large as the client's."""
    return SchemaLimits(depth, size, 4 * size)


def check_schema(parameters: Any, where: str, limits: SchemaLimits) -> None:
    """Refuses a schema that is unusable or beyond the limits. None and `{}` are valid: a tool without parameters."""
    _check_json(parameters, where, limits)
    size = len(json.dumps(parameters, ensure_ascii=False))
    if size > limits.size:
        _refuse_size(where, f"has {size} characters of JSON; {limits.size} are allowed")
    if parameters is not None and not isinstance(parameters, dict):
        _refuse_schema(where, "must be an object (a JSON Schema)")
    if parameters:
        _check_keywords(parameters, where)


def is_well_formed(schema: dict[str, Any]) -> bool:
    """Whether all keywords have values of the right type. For a place that `check_schema` did not look into."""
    try:
        _check_keywords(schema, "")
    except InvalidRequest:
        return False
    return True


def check_converted_size(schema: dict[str, Any], where: str, limits: SchemaLimits) -> None:
    """Refuses a schema that is too large in the form that Letta would get."""
    size = len(json.dumps(schema, ensure_ascii=False))
    if size > limits.converted_size:
        _refuse_size(
            where,
            f"comes to {size} characters of JSON with its references spelt out; {limits.converted_size} are allowed",
        )


def remove_unstorable(text: str) -> str:
    """Returns the text without NUL, and with U+FFFD for each half of a surrogate pair."""
    return _UNSTORABLE.sub(lambda found: "" if found[0] == "\x00" else "\ufffd", text)


def _check_json(value: Any, where: str, limits: SchemaLimits) -> None:
    """Refuses what is nested too deep or can't be stored. Does not recurse, because the depth is not known yet."""
    waiting = [(value, 0)]
    while waiting:
        item, depth = waiting.pop()
        if depth > limits.depth:
            raise TooDeep(f"`{where}` is nested more than {limits.depth} levels deep.", param=where)
        if isinstance(item, dict):
            waiting.extend((inner, depth + 1) for inner in item.values())
            waiting.extend((key, depth) for key in item)
        elif isinstance(item, list):
            waiting.extend((inner, depth + 1) for inner in item)
        else:
            _check_scalar(item, where)


def _check_scalar(value: Any, where: str) -> None:
    if isinstance(value, str) and _UNSTORABLE.search(value):
        _refuse_schema(where, f"holds text with NUL or half a surrogate pair, which can't be stored: {value!r:.80}")
    if isinstance(value, float) and not math.isfinite(value):
        _refuse_schema(where, "holds a number that JSON does not have (NaN or Infinity)")
    if not isinstance(value, (str, int, float, bool, type(None))):
        _refuse_schema(where, f"holds a {type(value).__name__}, which is no JSON value")


def _check_keywords(schema: dict[str, Any], where: str) -> None:
    """Checks the types of all keywords of a schema and of the schemas inside it."""
    for key, (fits, wanted) in _KEYWORDS.items():
        if schema.get(key) is not None and not fits(schema[key]):
            _refuse_schema(f"{where}.{key}", f"must be {wanted}")

    def check(inner: Any) -> Any:
        if isinstance(inner, dict):
            _check_keywords(inner, where)
        elif inner is not None and not isinstance(inner, bool):
            _refuse_schema(where, f"holds {json.dumps(inner)[:60]} where a schema (an object) is expected")
        return inner

    for name, inner in (schema.get("properties") or {}).items():
        _check_property(name, inner, f"{where}.properties.{name[:_SHOWN]}")
    map_subschemas({key: inner for key, inner in schema.items() if key != "properties"}, check)


def _check_property(name: str, schema: Any, where: str) -> None:
    if not name:
        _refuse_schema(where, "has an empty name")
    if not is_schema(schema):
        _refuse_schema(where, "must be a schema (an object)")
    if isinstance(schema, dict):
        _check_keywords(schema, where)


def _is_instance_of(*types: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, types)


def _is_type(value: Any) -> bool:
    names = value if isinstance(value, list) else [value]
    return bool(names) and all(isinstance(name, str) and name in KINDS for name in names)


def _is_non_empty_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


def _is_list_of_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _refuse_schema(where: str, fault: str, code: str | None = None) -> None:
    raise InvalidRequest(f"`{where}` {fault}.", param=where, code=code)


def _refuse_size(where: str, fault: str) -> None:
    _refuse_schema(where, fault, "tool_too_large")


_KEYWORDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "type": (_is_type, "one of " + ", ".join(sorted(KINDS)) + ", or a list of them"),
    **dict.fromkeys(("description", "title", "$ref"), (_is_instance_of(str), "a string")),
    **dict.fromkeys(("properties", "$defs", "definitions", "patternProperties"), (_is_instance_of(dict), "an object")),
    "required": (_is_list_of_names, "a list of property names"),
    "enum": (_is_instance_of(list), "a list of values"),
    "items": (_is_instance_of(dict, bool, list), "a schema"),
    "prefixItems": (_is_instance_of(list), "a list of schemas"),
    "additionalProperties": (is_schema, "a schema, true or false"),
    **dict.fromkeys(("allOf", "anyOf", "oneOf"), (_is_non_empty_list, "a list of one or more schemas")),
}
