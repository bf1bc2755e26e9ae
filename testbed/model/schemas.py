"""OpenAI's rules for the parameters of functions: those for all, and those for `strict: true`. Pure.

A finding has OpenAI's wording. Strict schemas need more than the documentation of most clients says: every object,
also a nested one, needs `properties`, all of them in `required`, and `additionalProperties: false`.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Path = tuple[str, ...]

TYPES = {"string", "number", "integer", "boolean", "object", "array", "null"}
NOT_AT_THE_TOP = ("oneOf", "anyOf", "allOf", "enum", "not")
NOT_STRICT = ("oneOf", "allOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas")
# Keys that may replace a type in a strict schema.
TYPE_STAND_INS = ("$ref", "anyOf", "enum", "const")

DEEPEST = 100


def schema_findings(name: str, parameters: Any) -> Iterator[str]:
    """Yields what OpenAI refuses in the parameters of any function."""
    if not isinstance(parameters, Mapping):
        yield f"Invalid schema for function '{name}': {parameters!r} is not of type 'object', 'boolean'."
        return
    if parameters.get("type") != "object":
        kind = parameters.get("type")
        yield (
            f"Invalid schema for function '{name}': schema must be a JSON Schema of 'type: \"object\"', "
            f"got 'type: \"{kind}\"'."
        )
        return
    if any(key in parameters for key in NOT_AT_THE_TOP):
        yield (
            f"Invalid schema for function '{name}': schema must have type 'object' and not have "
            "'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level."
        )
    if not isinstance(parameters.get("properties"), Mapping):
        yield _finding(name, (), "object schema missing properties")
    yield from _walk(name, parameters, _loose)


def strict_findings(name: str, parameters: Any) -> Iterator[str]:
    """Yields what OpenAI also refuses if the function is `strict`."""
    if isinstance(parameters, Mapping):
        yield from _walk(name, parameters, _strict)


def _finding(name: str, path: Path, text: str) -> str:
    return f"Invalid schema for function '{name}': In context={path!r}, {text}."


def _walk(
    name: str, schema: Any, check: Callable[[Mapping[str, Any], Path], Iterator[tuple[Path, str]]]
) -> Iterator[str]:
    pending: deque[tuple[Any, Path]] = deque([(schema, ())])
    while pending:
        one, path = pending.popleft()
        if not isinstance(one, Mapping) or len(path) > DEEPEST:
            continue
        for where, text in check(one, path):
            yield _finding(name, where, text)
        pending.extend(_children(one, path))


def _children(schema: Mapping[str, Any], path: Path) -> Iterator[tuple[Any, Path]]:
    for key in ("properties", "$defs", "definitions", "patternProperties"):
        inner = schema.get(key)
        if isinstance(inner, Mapping):
            yield from ((one, (*path, key, str(name))) for name, one in inner.items())
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        inner = schema.get(key)
        if isinstance(inner, list):
            yield from ((one, (*path, key, str(number))) for number, one in enumerate(inner))
    for key in ("items", "additionalProperties", "not"):
        if isinstance(schema.get(key), Mapping):
            yield schema[key], (*path, key)


def _loose(schema: Mapping[str, Any], path: Path) -> Iterator[tuple[Path, str]]:
    kinds = schema.get("type")
    listed = kinds if isinstance(kinds, list) else [kinds]
    if "type" in schema and not all(isinstance(kind, str) and kind in TYPES for kind in listed):
        yield path, f"{kinds!r} is not valid under any of the given schemas"
        return
    if "array" in listed and "items" not in schema:
        where = (*path, "type", str(listed.index("array"))) if isinstance(kinds, list) else path
        yield where, "array schema missing items"
    required = schema.get("required", [])
    if not isinstance(required, list) or not all(isinstance(one, str) for one in required):
        yield path, f"{required!r} is not of type 'array'"
    if not isinstance(schema.get("properties", {}), Mapping):
        yield path, f"{schema['properties']!r} is not of type 'object'"
    if not isinstance(schema.get("enum", []), list):
        yield path, f"{schema['enum']!r} is not of type 'array'"


def _strict(schema: Mapping[str, Any], path: Path) -> Iterator[tuple[Path, str]]:
    for key in NOT_STRICT:
        if key in schema:
            yield path, f"'{key}' is not permitted"
    kinds = schema.get("type")
    if kinds is None and not any(key in schema for key in (*TYPE_STAND_INS, *NOT_STRICT)):
        yield path, "schema must have a 'type' key"
    if kinds == "object" or (isinstance(kinds, list) and "object" in kinds):
        yield from _strict_object(schema, path)


def _strict_object(schema: Mapping[str, Any], path: Path) -> Iterator[tuple[Path, str]]:
    if schema.get("additionalProperties") is not False:
        yield path, "'additionalProperties' is required to be supplied and to be false"
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, Mapping):
        if path:
            yield path, "object schema missing properties"
        return
    names = required if isinstance(required, list) else []
    rule = "'required' is required to be supplied and to be an array including every key in properties"
    for name in properties:
        if name not in names:
            yield path, f"{rule}. Missing '{name}'"
    for name in names:
        if name not in properties:
            yield path, f"{rule}. Extra required key '{name}' supplied"
