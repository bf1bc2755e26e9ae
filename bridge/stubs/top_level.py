"""Turns the schema of all arguments of a client's tool into a schema of one object with properties.

OpenAI and Letta refuse alternatives at the top level of this schema. Letta also fails at every message to an agent with
a tool that lacks `properties` or `required`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bridge.errors import InvalidRequest
from bridge.stubs.in_words import compact_json
from bridge.stubs.normalise import declared_types
from bridge.stubs.references import Definitions
from bridge.stubs.subschemas import ALTERNATIVES, Schema

# OpenAI refuses these keywords beside the properties.
_NOT_AT_THE_TOP = ("not", "enum", "const")
# How many alternatives are searched for further alternatives.
MAX_SEARCHED = 200


@dataclass(slots=True)
class TopLevel:
    """The schema of all arguments, and `sentences` for the tool's description about what the schema can't express."""

    schema: Schema
    sentences: list[str] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)


def make_top_level(parameters: Schema, definitions: Definitions, where: str) -> TopLevel:
    """Returns the schema as one object, into which references, `allOf` and alternatives at the top are merged."""
    top = TopLevel({"type": "object", **_flatten_schema(parameters, definitions)})
    if "object" not in declared_types(top.schema):
        raise InvalidRequest(
            f"`{where}.type` is {compact_json(top.schema['type'])}; the parameters of a tool must be of type object.",
            param=f"{where}.type",
        )
    top.schema["type"] = "object"
    properties = top.schema.setdefault("properties", {})
    _describe_alternatives(top, definitions)
    moved = {key: top.schema.pop(key) for key in _NOT_AT_THE_TOP if key in top.schema}
    if moved:
        top.sentences.append(f"The arguments must also fit the JSON Schema {compact_json(moved)}.")
        top.changes.append(f"{', '.join(moved)} at the top of the schema is said in the tool's description.")
    top.schema["required"] = list(dict.fromkeys(top.schema.get("required", [])))
    for name in top.schema["required"]:
        properties.setdefault(name, {})
    return top


def _flatten_schema(schema: Any, definitions: Definitions) -> Schema:
    """Merges a schema with its references and `allOf`. `anyOf` and `oneOf` then hold lists of lists of alternatives."""
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
        _merge_part(result, part)
    return result


def _merge_part(result: Schema, part: Schema) -> None:
    """Adds `part` to `result`, in place. Joins properties, required names and alternatives; else `result` wins."""
    # Each part knows only its own properties. Only the outermost part can say whether there may be others.
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
    """Adds properties in place. `keyword` joins different schemas: "allOf" (a value must fit both) or "anyOf" (one)."""
    for name, schema in more.items():
        known = properties.get(name, schema)
        if known == schema:
            properties[name] = schema
        elif isinstance(known, dict) and list(known) == [keyword]:
            properties[name] = {keyword: [*known[keyword], schema]}
        else:
            properties[name] = {keyword: [known, schema]}


def _describe_alternatives(top: TopLevel, definitions: Definitions) -> None:
    """Replaces alternatives by sentences. All their properties stay; required are those that every one requires."""
    found = [(key, members) for key in ALTERNATIVES for members in top.schema.pop(key, ())]
    searched = {id(member) for _, members in found for member in members}
    for key, members in found:
        parts = [part for member in members for part in _expand_alternatives(member, definitions, searched)]
        common = set.intersection(*(set(part.get("required", [])) for part in parts))
        required = [name for part in parts for name in part.get("required", []) if name in common]
        for part in parts:
            _merge_properties(top.schema["properties"], part.get("properties", {}), "anyOf")
        top.schema["required"] = [*top.schema.get("required", []), *required]
        shapes = "; ".join(dict.fromkeys(map(_form_text, parts)))
        top.sentences.append(f"The arguments come in one of these forms ('?': may be left out): {shapes}.")
        top.changes.append(f"{key} at the top of the schema is said in the tool's description.")


def _expand_alternatives(member: Any, definitions: Definitions, searched: set[int]) -> list[Schema]:
    """Returns schemas without alternatives that together mean `member`. `searched` holds ids, so that circles end."""
    found: list[Schema] = []
    waiting: list[tuple[Schema, Any]] = [({}, member)]
    while waiting:
        around, schema = waiting.pop()
        own = _flatten_schema(schema, definitions)
        lists = [members for key in ALTERNATIVES for members in own.pop(key, ())]
        inner = [one for members in lists for one in members if id(one) not in searched]
        inner = inner[: max(0, MAX_SEARCHED - len(searched))]
        searched.update(map(id, inner))
        merged: Schema = {}
        _merge_part(merged, around)
        _merge_part(merged, own)
        if inner:
            waiting.extend((merged, one) for one in reversed(inner))
        else:
            found.append(merged)
    return found


def _form_text(part: Schema) -> str:
    """Returns an alternative as the model reads it, such as `{kind: "file", path, mode?}`. Required names are first."""
    properties = part.get("properties", {})
    required = part.get("required", [])
    names = sorted({*properties, *required}, key=lambda name: (name not in required, name))
    return "{" + ", ".join(_argument_text(name, properties.get(name), name in required) for name in names) + "}"


def _argument_text(name: str, schema: Any, required: bool) -> str:
    value = f": {compact_json(schema['const'])}" if isinstance(schema, dict) and "const" in schema else ""
    return name + ("" if required else "?") + value
