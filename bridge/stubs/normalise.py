"""Brings a checked schema into the one form that the later steps expect."""

from __future__ import annotations

from typing import Any

from bridge.stubs.subschemas import Schema, mapped

_MAY_BE_NULL = ("const", "default")
_MAY_BE_BOOLEAN = ("additionalProperties", "unevaluatedProperties", "unevaluatedItems", "additionalItems")


def normalised(schema: Any) -> Schema:
    """Returns a schema of the same meaning without nulls, without true and false as schemas, and with `items`.

    An older draft's list in `items` becomes `prefixItems`.
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
    clean = mapped(clean, normalised) | booleans
    if "array" in types(clean):
        clean.setdefault("items", {})
    return clean


def types(schema: Schema) -> list[str]:
    named = schema.get("type", [])
    return [named] if isinstance(named, str) else named
