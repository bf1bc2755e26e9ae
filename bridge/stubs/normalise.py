"""Normalises a JSON Schema that was checked, so that later steps have fewer cases."""

from __future__ import annotations

from typing import Any

from bridge.stubs.subschemas import Schema, map_subschemas

_MAY_BE_NULL = ("const", "default")
_MAY_BE_BOOLEAN = ("additionalProperties", "unevaluatedProperties", "unevaluatedItems", "additionalItems")


def normalise_schema(schema: Any) -> Schema:
    """Returns a schema of the same meaning, without keywords that are null and schemas that are true or false. Only
    `const` and `default` may be null, only `additionalProperties` and the like booleans. A schema of a list always has
    `items`; a list in `items`, from an older draft of JSON Schema, becomes `prefixItems`.
    """
    if not isinstance(schema, dict):
        return {"not": {}} if schema is False else {}
    clean = {key: value for key, value in schema.items() if value is not None or key in _MAY_BE_NULL}
    if "properties" in clean:
        clean["properties"] = {name: inner for name, inner in clean["properties"].items() if inner is not False}
    if "required" in clean:
        clean["required"] = list(dict.fromkeys(clean["required"]))
    if isinstance(clean.get("items"), list):
        clean["prefixItems"] = clean.pop("items")
        clean["items"] = clean.pop("additionalItems", {})
    if clean.get("items") is False:
        clean |= {"items": {}, "maxItems": len(clean.get("prefixItems", []))}
    booleans = {key: clean[key] for key in _MAY_BE_BOOLEAN if isinstance(clean.get(key), bool)}
    clean = map_subschemas(clean, normalise_schema) | booleans
    if "array" in declared_types(clean):
        clean.setdefault("items", {})
    return clean


def declared_types(schema: Schema) -> list[str]:
    """Returns what the keyword `type` of a schema names; an empty list without the keyword."""
    named = schema.get("type", [])
    return [named] if isinstance(named, str) else named
