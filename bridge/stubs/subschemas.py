"""Finds the schemas inside a JSON Schema, and the kinds of JSON value that can satisfy a schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

Schema = dict[str, Any]

ALTERNATIVES = ("anyOf", "oneOf")
KINDS = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
_KIND_OF_TYPE = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}
# A place in a list, as a JSON Pointer has it. Python refuses to read numbers with thousands of digits.
_INDEX = re.compile("0|[1-9][0-9]{0,8}")
_BY_NAME = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"})
_SINGLE = frozenset(
    {"items", "additionalProperties", "unevaluatedItems", "unevaluatedProperties", "contains"}
    | {"propertyNames", "contentSchema", "not", "if", "then", "else"}
)
_LISTED = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})


def map_subschemas(schema: Schema, change: Callable[[Any], Any]) -> Schema:
    """Returns the schema with `change` applied to each schema directly inside it. True and false are schemas, too."""
    result = dict(schema)
    for key, value in schema.items():
        if key in _BY_NAME and isinstance(value, dict):
            result[key] = {name: change(inner) for name, inner in value.items()}
        elif key in _LISTED and isinstance(value, list):
            result[key] = [change(inner) for inner in value]
        elif key in _SINGLE and isinstance(value, (dict, bool)):
            result[key] = change(value)
    return result


def subschema_places(schema: Schema) -> Iterator[tuple[str, Any, Any]]:
    """Yields where the schemas directly inside a schema are: a keyword, the container, and the key in the container."""
    for keyword, value in schema.items():
        if keyword in _BY_NAME:
            yield from ((keyword, value, name) for name in value)
        elif keyword in _LISTED:
            yield from ((keyword, value, place) for place in range(len(value)))
        elif keyword in _SINGLE:
            yield keyword, schema, keyword


def find_at_path(schema: Any, path: Iterable[str]) -> tuple[Any, bool]:
    """Returns the value at a path, and whether a schema is expected there; None and False if the path leads nowhere."""
    here, expected, holds_schemas = schema, True, False
    for name in path:
        if isinstance(here, dict) and name in here:
            inner = here[name]
        elif isinstance(here, list) and _INDEX.fullmatch(name) and int(name) < len(here):
            inner = here[int(name)]
        else:
            return None, False
        listed = name in _BY_NAME or (name in _LISTED and isinstance(inner, list))
        expected, holds_schemas = (
            holds_schemas or (expected and not listed and name in _SINGLE),
            expected and listed,
        )
        here = inner
    return here, expected


def count_subschemas(schema: Any) -> int:
    """Returns how many schemas there are, the schema itself and those inside it."""
    found = 0
    waiting = [schema]

    def note(inner: Any) -> Any:
        waiting.append(inner)
        return inner

    while waiting:
        found += 1
        one = waiting.pop()
        if isinstance(one, dict):
            map_subschemas(one, note)
    return found


def count_values(value: Any) -> int:
    """Returns how many values a JSON value has, itself included."""
    found, waiting = 0, [value]
    while waiting:
        found += 1
        one = waiting.pop()
        if isinstance(one, (dict, list)):
            waiting.extend(one.values() if isinstance(one, dict) else one)
    return found


def is_impossible(schema: Any) -> bool:
    """Whether a schema says itself that no value can fit it."""
    return schema is False or (isinstance(schema, dict) and schema.get("not") == {})


def is_schema(value: Any) -> bool:
    return isinstance(value, (dict, bool))


def kind_of_value(value: Any) -> str:
    """Returns the JSON Schema type of a JSON value."""
    return _KIND_OF_TYPE[type(value)]


def possible_kinds(schema: Any, of_reference: Callable[[str, int], frozenset[str]], level: int = 0) -> frozenset[str]:
    """Returns the JSON Schema types that can satisfy a schema. `of_reference` returns those of a reference's target.
    `level` counts the schemas around this one, also those around the references that led to it.
    """
    if is_impossible(schema):
        return frozenset()
    if not isinstance(schema, dict):
        return KINDS
    result = _declared_kinds(schema)
    if isinstance(schema.get("$ref"), str):
        result &= of_reference(schema["$ref"], level + 1)
    for key in ALTERNATIVES:
        if isinstance(schema.get(key), list):
            result &= frozenset().union(*(possible_kinds(inner, of_reference, level + 1) for inner in schema[key]))
    for inner in schema.get("allOf", ()):
        result &= possible_kinds(inner, of_reference, level + 1)
    return result


def _declared_kinds(schema: Schema) -> frozenset[str]:
    """Returns the JSON Schema types that `type`, `enum` and `const` allow."""
    result = KINDS
    named = schema.get("type")
    if named is not None:
        result = _add_integer([named] if isinstance(named, str) else named)
    if isinstance(schema.get("enum"), list):
        result &= _add_integer(kind_of_value(value) for value in schema["enum"])
    if "const" in schema:
        result &= _add_integer([kind_of_value(schema["const"])])
    return result


def _add_integer(names: Iterable[str]) -> frozenset[str]:
    """Adds "integer" if "number" is there: every integer is a number."""
    found = frozenset(names)
    return found | {"integer"} if "number" in found else found
