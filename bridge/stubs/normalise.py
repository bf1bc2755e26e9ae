"""A checked schema in the one form that everything behind expects."""

from __future__ import annotations

from typing import Any

from bridge.stubs.subschemas import Schema, mapped

_MAY_BE_NULL = ("const", "default")
_MAY_BE_FLAGS = ("additionalProperties", "unevaluatedProperties", "unevaluatedItems", "additionalItems")


def tidied(schema: Any) -> Schema:
    """The same meaning without what nobody expects in a schema: nulls, plain true and false, lists without items."""
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
    flags = {key: clean[key] for key in _MAY_BE_FLAGS if isinstance(clean.get(key), bool)}
    clean = mapped(clean, tidied) | flags
    if "array" in types(clean):
        clean.setdefault("items", {})
    return clean


def types(schema: Schema) -> list[str]:
    named = schema.get("type", [])
    return [named] if isinstance(named, str) else named
