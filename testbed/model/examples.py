"""Makes arguments that fit a schema, for calls that a request demands but no script dictates. Pure."""

from collections.abc import Mapping
from typing import Any

DEEPEST = 12

BY_TYPE: dict[str, Any] = {"string": "text", "integer": 1, "number": 1.5, "boolean": True, "null": None}


def example(schema: Any, root: Mapping[str, Any] | None = None, depth: int = 0) -> Any:
    """Returns the simplest value that fits a JSON schema, always the same one. A schema without a type gets text."""
    if not isinstance(schema, Mapping) or depth > DEEPEST:
        return "text"
    root = schema if root is None else root
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    if schema.get("enum"):
        return schema["enum"][0]
    inner = _alternative(schema, root)
    if inner is not None:
        return example(inner, root, depth + 1)
    return _by_type(schema, root, depth)


def _alternative(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    """Returns the schema that replaces this one: the target of a reference, or the first alternative."""
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        found: Any = root
        for part in reference[2:].split("/"):
            found = found.get(part) if isinstance(found, Mapping) else None
        return found
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key):
            return schema[key][0]
    return None


def _by_type(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> Any:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "null")
    if kind == "object":
        properties, required = schema.get("properties") or {}, schema.get("required") or []
        return {name: example(properties.get(name), root, depth + 1) for name in required}
    if kind == "array":
        return [example(schema.get("items"), root, depth + 1)] * int(schema.get("minItems", 0))
    return BY_TYPE.get(str(kind), "text")
