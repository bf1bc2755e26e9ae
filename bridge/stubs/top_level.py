"""Turns whatever a client sends as a tool's parameters into one object with properties, as OpenAI and Letta want it.

Both refuse alternatives at the top. Letta also fails at every message for a tool without `properties` or `required`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bridge.errors import InvalidRequest
from bridge.stubs.in_words import compact
from bridge.stubs.normalise import types
from bridge.stubs.references import Definitions
from bridge.stubs.subschemas import ALTERNATIVES, Schema

# OpenAI takes none of these beside the properties.
_NOT_AT_THE_TOP = ("not", "enum", "const")
# How many alternatives are searched for further alternatives.
MAX_SEARCHED = 200


@dataclass(slots=True)
class TopLevel:
    """The schema of all arguments, and sentences for the tool's description about what had to leave it."""

    schema: Schema
    sentences: list[str] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)


def top_level_object(parameters: Schema, definitions: Definitions, where: str) -> TopLevel:
    top = TopLevel({"type": "object", **_flattened(parameters, definitions)})
    if "object" not in types(top.schema):
        raise InvalidRequest(
            f"`{where}.type` is {compact(top.schema['type'])}; the parameters of a tool must be of type object.",
            param=f"{where}.type",
        )
    top.schema["type"] = "object"
    properties = top.schema.setdefault("properties", {})
    _take_alternatives(top, definitions)
    moved = {key: top.schema.pop(key) for key in _NOT_AT_THE_TOP if key in top.schema}
    if moved:
        top.sentences.append(f"The arguments must also fit the JSON Schema {compact(moved)}.")
        top.changes.append(f"{', '.join(moved)} at the top of the schema is said in the tool's description.")
    top.schema["required"] = list(dict.fromkeys(top.schema.get("required", [])))
    for name in top.schema["required"]:
        properties.setdefault(name, {})
    return top


def _flattened(schema: Any, definitions: Definitions) -> Schema:
    """Merges the schema with what it refers to and with all of its `allOf`.

    `anyOf` and `oneOf` of the result hold a list of all the lists of alternatives that were found.
    """
    result: Schema = {}
    waiting, followed = [schema], set[str]()
    while waiting:
        part = waiting.pop(0)
        if not isinstance(part, dict):
            continue
        reference = part.get("$ref")
        if reference is not None and reference not in followed:
            followed.add(reference)
            waiting.append(definitions.lookup(reference))
        waiting.extend(part.get("allOf", []))
        _merge(result, part)
    return result


def _merge(result: Schema, part: Schema) -> None:
    # Each part knows only its own properties; whether others may be added is for the outermost part to say.
    ignored = ("$ref", "allOf", "additionalProperties") if result else ("$ref", "allOf")
    for key, value in part.items():
        if key == "properties":
            _merge_properties(result.setdefault("properties", {}), value, "allOf")
        elif key == "required":
            result["required"] = [*result.get("required", []), *value]
        elif key in ALTERNATIVES:
            result[key] = [*result.get(key, []), value]
        elif key not in ignored:
            result.setdefault(key, value)


def _merge_properties(properties: dict[str, Any], more: dict[str, Any], keyword: str) -> None:
    """Adds properties; one that is described in two ways gets both descriptions under the keyword."""
    for name, schema in more.items():
        known = properties.get(name, schema)
        if known == schema:
            properties[name] = schema
        elif isinstance(known, dict) and list(known) == [keyword]:
            properties[name] = {keyword: [*known[keyword], schema]}
        else:
            properties[name] = {keyword: [known, schema]}


def _take_alternatives(top: TopLevel, definitions: Definitions) -> None:
    """Moves the alternatives into sentences; all their properties become properties of the object."""
    found = [(key, members) for key in ALTERNATIVES for members in top.schema.pop(key, ())]
    searched = {id(member) for _, members in found for member in members}
    for key, members in found:
        parts = [part for member in members for part in _without_alternatives(member, definitions, searched)]
        common = set.intersection(*(set(part.get("required", [])) for part in parts))
        required = [name for part in parts for name in part.get("required", []) if name in common]
        for part in parts:
            _merge_properties(top.schema["properties"], part.get("properties", {}), "anyOf")
        top.schema["required"] = [*top.schema.get("required", []), *required]
        shapes = "; ".join(dict.fromkeys(map(_shape, parts)))
        top.sentences.append(f"The arguments come in one of these forms ('?': may be left out): {shapes}.")
        top.changes.append(f"{key} at the top of the schema is said in the tool's description.")


def _without_alternatives(member: Any, definitions: Definitions, searched: set[int]) -> list[Schema]:
    """Returns the member itself, or it merged with each of its own alternatives.

    Alternatives in `searched` are not searched again, so that circles come to an end.
    """
    found: list[Schema] = []
    waiting: list[tuple[Schema, Any]] = [({}, member)]
    while waiting:
        around, schema = waiting.pop()
        own = _flattened(schema, definitions)
        lists = [members for key in ALTERNATIVES for members in own.pop(key, ())]
        inner = [one for members in lists for one in members if id(one) not in searched]
        inner = inner[: max(0, MAX_SEARCHED - len(searched))]
        searched.update(map(id, inner))
        merged: Schema = {}
        _merge(merged, around)
        _merge(merged, own)
        if inner:
            waiting.extend((merged, one) for one in reversed(inner))
        else:
            found.append(merged)
    return found


def _shape(part: Schema) -> str:
    """`{kind: "file", path, mode?}`"""
    properties = part.get("properties", {})
    required = part.get("required", [])
    names = sorted({*properties, *required}, key=lambda name: (name not in required, name))
    return "{" + ", ".join(_argument(name, properties.get(name), name in required) for name in names) + "}"


def _argument(name: str, schema: Any, required: bool) -> str:
    value = f": {compact(schema['const'])}" if isinstance(schema, dict) and "const" in schema else ""
    return name + ("" if required else "?") + value
