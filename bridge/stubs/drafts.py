"""Translates keywords of OpenAPI 3.0 and of JSON Schema before draft 2020-12. All that follows knows 2020-12 only.

Malformed values stay as they are: the translated schema is checked next.
"""

from __future__ import annotations

from typing import Any

from bridge.stubs.subschemas import Schema

# Maps a keyword of the translated schema to the client's, under which errors are reported.
Origins = dict[str, str]


def translate_schema(schema: Schema) -> tuple[Schema, Origins]:
    """Returns one schema, without looking into the schemas inside it, with the keywords of 2020-12."""
    result, origins = dict(schema), Origins()
    for translate in _TRANSLATIONS:
        translate(result, origins)
    return result, origins


def _translate_tuple(schema: Schema, origins: Origins) -> None:
    """A list in `items` is `prefixItems` today, and `additionalItems` beside it is `items`."""
    if isinstance(schema.get("items"), list):
        schema["prefixItems"] = schema.pop("items")
        schema["items"] = schema.pop("additionalItems", {})
        origins |= {"prefixItems": "items", "items": "additionalItems"}


def _translate_exclusive_limits(schema: Schema, origins: Origins) -> None:
    """`true` excludes the limit beside it (draft 4, OpenAPI 3.0)."""
    for exclusive, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if schema.get(exclusive) is True and limit in schema:
            schema[exclusive] = schema.pop(limit)
            origins[exclusive] = limit
        elif schema.get(exclusive) is False:
            del schema[exclusive]


def _translate_dependencies(schema: Schema, origins: Origins) -> None:
    """`dependencies` held both what `dependentRequired` and what `dependentSchemas` hold today."""
    if not isinstance(schema.get("dependencies"), dict):
        return
    given = schema.pop("dependencies")
    lists = {name: needed for name, needed in given.items() if isinstance(needed, list)}
    others = {name: needed for name, needed in given.items() if name not in lists}
    for keyword, found in (("dependentRequired", lists), ("dependentSchemas", others)):
        if found and isinstance(schema.get(keyword, {}), dict):
            schema[keyword] = found | schema.get(keyword, {})
            origins[keyword] = "dependencies"


def _translate_required(schema: Schema, origins: Origins) -> None:
    """A property could say of itself that it is required (draft 3)."""
    properties, required = schema.get("properties"), schema.get("required", [])
    if not isinstance(properties, dict) or not isinstance(required, list):
        return
    said = {name: inner["required"] for name, inner in properties.items() if _says_required(inner)}
    if said:
        schema["properties"] = {
            name: {key: value for key, value in inner.items() if key != "required"} if name in said else inner
            for name, inner in properties.items()
        }
        schema["required"] = [*required, *(name for name, needed in said.items() if needed and name not in required)]


def _says_required(schema: Any) -> bool:
    return isinstance(schema, dict) and isinstance(schema.get("required"), bool)


def _translate_references(schema: Schema, origins: Origins) -> None:
    """In one document, references to dynamic anchors lead where other references lead."""
    for keyword in ("$dynamicRef", "$recursiveRef"):
        if isinstance(schema.get(keyword), str):
            reference = schema.pop(keyword)
            if schema.setdefault("$ref", reference) != reference and isinstance(schema.get("allOf", []), list):
                schema["allOf"] = [*schema.get("allOf", []), {"$ref": reference}]


def _translate_example(schema: Schema, origins: Origins) -> None:
    """OpenAPI has one `example`."""
    if "example" in schema:
        schema.setdefault("examples", [schema.pop("example")])
        schema.pop("example", None)


_TRANSLATIONS = (
    _translate_tuple,
    _translate_exclusive_limits,
    _translate_dependencies,
    _translate_required,
    _translate_references,
    _translate_example,
)
