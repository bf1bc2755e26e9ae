"""Whatever a client sends as a tool's parameters -> one object with properties, as OpenAI and Letta want it.

Both refuse alternatives at the top; Letta also fails at every message for a tool without `properties` or `required`.
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
# How many alternatives are looked into for further ones.
MOST_LOOKED_INTO = 200


@dataclass(slots=True)
class Root:
    """The schema of all arguments, and what had to be moved from it into the tool's description."""

    schema: Schema
    words: list[str] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)


def object_root(parameters: Schema, definitions: Definitions, where: str) -> Root:
    root = Root({"type": "object", **_flattened(parameters, definitions)})
    if "object" not in types(root.schema):
        raise InvalidRequest(
            f"`{where}.type` is {compact(root.schema['type'])}; the parameters of a tool must be of type object.",
            param=f"{where}.type",
        )
    root.schema["type"] = "object"
    properties = root.schema.setdefault("properties", {})
    _take_alternatives(root, definitions)
    moved = {key: root.schema.pop(key) for key in _NOT_AT_THE_TOP if key in root.schema}
    if moved:
        root.words.append(f"The arguments must also fit the JSON Schema {compact(moved)}.")
        root.changes.append(f"{', '.join(moved)} at the top of the schema is said in the tool's description.")
    required = list(dict.fromkeys(root.schema.get("required", [])))
    for name in required:
        properties.setdefault(name, {})
    root.schema["required"] = required
    return root


def _flattened(schema: Any, definitions: Definitions) -> Schema:
    """With what it refers to, and all of `allOf`, in one schema; of alternatives a list of all that were found."""
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
        _absorb(result, part)
    return result


def _absorb(result: Schema, part: Schema) -> None:
    # Each part knows its own properties only; whether others may be added is said by the outermost.
    unsaid = ("$ref", "allOf", "additionalProperties") if result else ("$ref", "allOf")
    for key, value in part.items():
        if key == "properties":
            _absorb_properties(result.setdefault("properties", {}), value, "allOf")
        elif key == "required":
            result["required"] = [*result.get("required", []), *value]
        elif key in ALTERNATIVES:
            result[key] = [*result.get(key, []), value]
        elif key not in unsaid:
            result.setdefault(key, value)


def _absorb_properties(properties: dict[str, Any], more: dict[str, Any], both: str) -> None:
    for name, schema in more.items():
        known = properties.get(name, schema)
        if known == schema:
            properties[name] = schema
        elif isinstance(known, dict) and list(known) == [both]:
            properties[name] = {both: [*known[both], schema]}
        else:
            properties[name] = {both: [known, schema]}


def _take_alternatives(root: Root, definitions: Definitions) -> None:
    found = [(key, members) for key in ALTERNATIVES for members in root.schema.pop(key, ())]
    met = {id(member) for _, members in found for member in members}
    for key, members in found:
        parts = [form for member in members for form in _forms(member, definitions, met)]
        common = set.intersection(*(set(part.get("required", [])) for part in parts))
        for part in parts:
            _absorb_properties(root.schema["properties"], part.get("properties", {}), "anyOf")
        root.schema["required"] = [*root.schema.get("required", []), *(n for n in _required(parts) if n in common)]
        forms = "; ".join(dict.fromkeys(_form(part) for part in parts))
        root.words.append(f"The arguments come in one of these forms ('?': may be left out): {forms}.")
        root.changes.append(f"{key} at the top of the schema is said in the tool's description.")


def _forms(member: Any, definitions: Definitions, met: set[int]) -> list[Schema]:
    """The member, or what stands in it with each of its own alternatives; what was `met` before is not looked into."""
    forms: list[Schema] = []
    waiting: list[tuple[Schema, Any]] = [({}, member)]
    while waiting:
        around, schema = waiting.pop()
        own = _flattened(schema, definitions)
        inner = [one for key in ALTERNATIVES for members in own.pop(key, ()) for one in members if id(one) not in met]
        inner = inner[: max(0, MOST_LOOKED_INTO - len(met))]
        met.update(map(id, inner))
        form: Schema = {}
        _absorb(form, around)
        _absorb(form, own)
        if inner:
            waiting.extend((form, one) for one in reversed(inner))
        else:
            forms.append(form)
    return forms


def _required(parts: list[Schema]) -> list[str]:
    return [name for part in parts for name in part.get("required", [])]


def _form(part: Schema) -> str:
    """`{kind: "file", path, mode?}`"""
    properties = part.get("properties", {})
    required = part.get("required", [])
    names = sorted({*properties, *required}, key=lambda name: (name not in required, name))
    return "{" + ", ".join(_argument(name, properties.get(name), name in required) for name in names) + "}"


def _argument(name: str, schema: Any, required: bool) -> str:
    value = f": {compact(schema['const'])}" if isinstance(schema, dict) and "const" in schema else ""
    return name + ("" if required else "?") + value
