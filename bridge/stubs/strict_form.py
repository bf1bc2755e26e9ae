"""A schema for the servers that squeeze every schema into OpenAI's strict form: typed throughout, the rest in words.

What has no typed form there (maps, tuples, alternatives, values of any kind, definitions that contain themselves) and
what could not be left out is asked for as JSON text, with its own schema in the description; arguments.py reads it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from bridge.stubs.as_sent import MAX_STRICT_LEVELS, is_countable
from bridge.stubs.in_words import compact, constraints, described
from bridge.stubs.references import Definitions
from bridge.stubs.subschemas import ALTERNATIVES, KINDS, Schema
from bridge.turn import ArgumentPath

Place = Literal["required", "optional", "item"]

# How long a JSON Schema may be, in characters, to stand in a description.
MAX_QUOTED = 8000
_SCALARS = {"string": "text", "number": "a number", "integer": "a whole number", "boolean": "true or false"}
_RECORD = frozenset({"type", "properties", "required", "additionalProperties", "nullable"})
_LIST = frozenset({"type", "items", "minItems", "maxItems", "uniqueItems", "nullable"})
_NOTES = frozenset(
    {"description", "title", "default", "examples", "example", "deprecated", "$schema", "$comment", "$id"}
)
_NULL = ({"type": "null"}, {"const": None}, {"enum": [None]})


@dataclass(slots=True)
class Simplification:
    """One pass over the properties of a schema in which only definitions that contain themselves are references."""

    definitions: Definitions
    nullable_types: bool
    as_text: set[ArgumentPath] = field(default_factory=set)
    words: list[str] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)

    def of(self, root: Schema) -> Schema:
        if root.get("additionalProperties") not in (None, False):
            self.changes.append("Arguments beyond those that the client names can't be given.")
        phrases = constraints(root, frozenset({"default"}))
        if phrases:
            self.words.append(f"All arguments together: {'; '.join(phrases)}.")
            self.changes.append("What the schema says of all arguments together is said in the tool's description.")
        return {"type": "object", "properties": self._properties(root, ()), "required": root["required"]}

    def _properties(self, schema: Schema, path: ArgumentPath) -> Schema:
        required = schema.get("required", [])
        return {
            name: self._node(inner, (*path, name), "required" if name in required else "optional")
            for name, inner in schema["properties"].items()
        }

    def _node(self, schema: Schema, path: ArgumentPath, place: Place) -> Schema:
        plain = _without_null(_merged(schema))
        nullable = "null" in self.definitions.kinds(schema)
        kind = _single(self.definitions.kinds(plain))
        absent = _absence(place, nullable)
        if place == "optional" and not nullable:
            self.changes.append("What is optional may be null, which leaves it out.")
        if kind in _SCALARS and ((self.nullable_types and place != "item") or not absent):
            return self._scalar(plain, kind, path, absent)
        if not absent and len(path) < MAX_STRICT_LEVELS:
            if kind == "array" and plain.keys() <= _LIST | _NOTES:
                phrases = self._said(plain, path)
                items = self._node(plain.get("items", {}), (*path, "*"), "item")
                return {"type": "array", **_description(plain, *phrases), "items": items}
            if kind == "object" and plain.get("properties") and plain.keys() <= _RECORD | _NOTES and _is_closed(plain):
                inner = self._properties(plain, path)
                required = [name for name in plain.get("required", []) if name in inner]
                phrases = self._said(plain, path)
                return {"type": "object", **_description(plain, *phrases), "properties": inner, "required": required}
        return self._text(schema, kind, path, place, absent)

    def _scalar(self, plain: Schema, kind: str, path: ArgumentPath, absent: str) -> Schema:
        choices = [plain["const"]] if "const" in plain else plain.get("enum")
        listed = bool(choices) and kind == "string" and not absent and is_countable({"enum": choices})
        # Only the parameters themselves keep their enum on the way; further in it is said in words too.
        phrases = self._said(plain, path, frozenset({"enum", "const"} if listed and len(path) == 1 else ()))
        return {
            "type": [kind, "null"] if absent else kind,
            **_description(plain, *phrases, absent),
            **({"enum": choices} if listed else {}),
        }

    def _text(self, schema: Schema, kind: str, path: ArgumentPath, place: Place, absent: str) -> Schema:
        self.as_text.add(path)
        nullable = bool(absent) and self.nullable_types and place != "item"
        if kind != "string":
            self.changes.append(f"{_dotted(path)} is given as JSON text.")
        if kind in _SCALARS:
            plain = _without_null(_merged(schema))
            phrases = [f"{_SCALARS[kind]}, as text" if kind != "string" else "", *self._said(plain, path)]
            absent = absent.replace("null", "the bare word null")
        else:
            phrases = [self._asked_for(schema)]
        return {"type": ["string", "null"] if nullable else "string", **_description(schema, *phrases, absent)}

    def _asked_for(self, schema: Schema) -> str:
        bare = {key: value for key, value in schema.items() if key not in ("description", "title", "$schema")}
        found = self.definitions.kinds(schema)
        if found == KINDS and not bare.keys() - _NOTES:
            return "any value, as JSON text"
        whole = compact({**bare, **self.definitions.needed(bare)})
        text = f"fitting the JSON Schema {whole}" if len(whole) <= MAX_QUOTED else "of a form too long to be said here"
        return f"plain text, or JSON text {text}" if "string" in found else f"as JSON text {text}"

    def _said(self, schema: Schema, path: ArgumentPath, listed: frozenset[str] = frozenset()) -> list[str]:
        phrases = constraints(schema, listed)
        if phrases:
            self.changes.append(f"{_dotted(path)}: said in words: {'; '.join(phrases)}.")
        return phrases


def _absence(place: Place, nullable: bool) -> str:
    """What the description says about null; "" when there must be a value."""
    if nullable:
        return "null if there is none"
    return "optional: null leaves it out" if place == "optional" else ""


def _single(found: frozenset[str]) -> str:
    found -= {"null"}
    if found == {"number", "integer"}:
        return "number"
    return next(iter(found)) if len(found) == 1 else ""


def _is_closed(schema: Schema) -> bool:
    return schema.get("additionalProperties", False) in (False, True)


def _description(schema: Schema, *phrases: str) -> Schema:
    text = described(schema, *phrases)
    return {"description": text} if text else {}


def _dotted(path: ArgumentPath) -> str:
    return repr(".".join(path).replace(".*", "[]"))


def _merged(schema: Schema) -> Schema:
    """With all of `allOf`, with the only alternative that is not null, and with constants as an enum, in one schema."""
    result = dict(schema)
    parts = result.pop("allOf", [])
    for key in ALTERNATIVES:
        values = [inner for inner in result.get(key, []) if inner not in _NULL]
        if len(values) == 1:
            del result[key]
            parts = [*parts, values[0]]
        elif values and all("const" in inner and inner.keys() <= {"const", "type"} for inner in values):
            del result[key]
            parts = [*parts, {"enum": [inner["const"] for inner in values]}]
    for part in parts:
        result = _joined(result, _merged(part))
    return result


def _joined(schema: Schema, part: Schema) -> Schema:
    result = dict(schema)
    rest: Schema = {}
    for key, value in part.items():
        if key == "properties":
            known = result.get("properties", {})
            rest |= _clash(known, value)
            result["properties"] = {**known, **{name: inner for name, inner in value.items() if name not in known}}
        elif key == "required":
            result["required"] = list(dict.fromkeys([*result.get("required", []), *value]))
        elif key in _NOTES:
            result.setdefault(key, value)
        elif result.setdefault(key, value) != value:
            rest[key] = value
    return {**result, "allOf": [*result.get("allOf", []), rest]} if rest else result


def _clash(known: dict[str, Any], more: dict[str, Any]) -> Schema:
    different = {name: inner for name, inner in more.items() if known.get(name, inner) != inner}
    return {"properties": different} if different else {}


def _without_null(schema: Schema) -> Schema:
    result = dict(schema)
    if isinstance(result.get("type"), list):
        named = [name for name in result["type"] if name != "null"]
        result["type"] = named[0] if len(named) == 1 else named
    if isinstance(result.get("enum"), list):
        result["enum"] = [value for value in result["enum"] if value is not None]
    return result
