"""Schemas for the servers that force every schema into OpenAI's strict form: everything is typed, the rest is in words.

Maps, tuples, alternatives, values of any kind, definitions that contain themselves, and values that the strict form
does not allow to be left out are asked for as JSON text. Their own schema is then in the description, and arguments.py
reads the text.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from bridge.stubs.as_sent import MAX_STRICT_LEVELS, is_countable
from bridge.stubs.in_words import compact, constraints, described
from bridge.stubs.references import Definitions
from bridge.stubs.subschemas import ALTERNATIVES, KINDS, Schema
from bridge.turn import ArgumentPath

Place = Literal["required", "optional", "item"]

# How many characters of JSON Schema a description may quote.
MAX_QUOTED = 8000
_SCALARS = {"string": "text", "number": "a number", "integer": "a whole number", "boolean": "true or false"}
_OBJECT_KEYWORDS = frozenset({"type", "properties", "required", "additionalProperties", "nullable"})
_LIST_KEYWORDS = frozenset({"type", "items", "minItems", "maxItems", "uniqueItems", "nullable"})
_NOTES = frozenset(
    {"description", "title", "default", "examples", "example", "deprecated", "$schema", "$comment", "$id"}
)
_NULL = ({"type": "null"}, {"const": None}, {"enum": [None]})


@dataclass(slots=True)
class StrictFormBuilder:
    """Builds one strict schema. In the schema it is given, only definitions that contain themselves are references."""

    definitions: Definitions
    nullable_types: bool
    as_text: set[ArgumentPath] = field(default_factory=set)
    sentences: list[str] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)

    def build(self, top: Schema) -> Schema:
        if top.get("additionalProperties") not in (None, False):
            self.changes.append("Arguments beyond those that the client names can't be given.")
        phrases = constraints(top, frozenset({"default"}))
        if phrases:
            self.sentences.append(f"All arguments together: {'; '.join(phrases)}.")
            self.changes.append("What the schema says of all arguments together is said in the tool's description.")
        return {"type": "object", "properties": self._properties(top, ()), "required": top["required"]}

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
        absence = _absence(place, nullable)
        if place == "optional" and not nullable:
            self.changes.append("What is optional may be null, which leaves it out.")
        if kind in _SCALARS and ((self.nullable_types and place != "item") or not absence):
            return self._scalar(plain, kind, path, absence)
        if not absence and len(path) < MAX_STRICT_LEVELS:
            if kind == "array" and plain.keys() <= _LIST_KEYWORDS | _NOTES:
                phrases = self._in_words(plain, path)
                items = self._node(plain.get("items", {}), (*path, "*"), "item")
                return {"type": "array", **_description(plain, *phrases), "items": items}
            if kind == "object" and _has_fixed_properties(plain):
                properties = self._properties(plain, path)
                required = [name for name in plain.get("required", []) if name in properties]
                description = _description(plain, *self._in_words(plain, path))
                return {"type": "object", **description, "properties": properties, "required": required}
        return self._text(schema, kind, path, place, absence)

    def _scalar(self, plain: Schema, kind: str, path: ArgumentPath, absence: str) -> Schema:
        choices = [plain["const"]] if "const" in plain else plain.get("enum")
        listed = bool(choices) and kind == "string" and not absence and is_countable({"enum": choices})
        # Letta keeps the enum of the parameters themselves only; further in it is said in words, too.
        phrases = self._in_words(plain, path, frozenset({"enum", "const"} if listed and len(path) == 1 else ()))
        return {
            "type": [kind, "null"] if absence else kind,
            **_description(plain, *phrases, absence),
            **({"enum": choices} if listed else {}),
        }

    def _text(self, schema: Schema, kind: str, path: ArgumentPath, place: Place, absence: str) -> Schema:
        self.as_text.add(path)
        nullable = bool(absence) and self.nullable_types and place != "item"
        if kind != "string":
            self.changes.append(f"{_dotted(path)} is given as JSON text.")
        if kind in _SCALARS:
            plain = _without_null(_merged(schema))
            phrases = [f"{_SCALARS[kind]}, as text" if kind != "string" else "", *self._in_words(plain, path)]
            absence = absence.replace("null", "the bare word null")
        else:
            phrases = [self._json_text(schema)]
        return {"type": ["string", "null"] if nullable else "string", **_description(schema, *phrases, absence)}

    def _json_text(self, schema: Schema) -> str:
        """Says which JSON text is asked for."""
        bare = {key: value for key, value in schema.items() if key not in ("description", "title", "$schema")}
        kinds = self.definitions.kinds(schema)
        if kinds == KINDS and not bare.keys() - _NOTES:
            return "any value, as JSON text"
        whole = compact({**bare, **self.definitions.needed(bare)})
        text = f"fitting the JSON Schema {whole}" if len(whole) <= MAX_QUOTED else "of a form too long to be said here"
        return f"plain text, or JSON text {text}" if "string" in kinds else f"as JSON text {text}"

    def _in_words(self, schema: Schema, path: ArgumentPath, except_for: frozenset[str] = frozenset()) -> list[str]:
        phrases = constraints(schema, except_for)
        if phrases:
            self.changes.append(f"{_dotted(path)}: said in words: {'; '.join(phrases)}.")
        return phrases


def _absence(place: Place, nullable: bool) -> str:
    """Returns what the description says about null; "" if there must be a value."""
    if nullable:
        return "null if there is none"
    return "optional: null leaves it out" if place == "optional" else ""


def _single(kinds: frozenset[str]) -> str:
    """Returns the only kind beside null; "" if there are several."""
    kinds -= {"null"}
    if kinds == {"number", "integer"}:
        return "number"
    return next(iter(kinds)) if len(kinds) == 1 else ""


def _has_fixed_properties(schema: Schema) -> bool:
    return (
        bool(schema.get("properties"))
        and schema.keys() <= _OBJECT_KEYWORDS | _NOTES
        and schema.get("additionalProperties", False) in (False, True)
    )


def _description(schema: Schema, *phrases: str) -> Schema:
    text = described(schema, *phrases)
    return {"description": text} if text else {}


def _dotted(path: ArgumentPath) -> str:
    return repr(".".join(path).replace(".*", "[]"))


def _merged(schema: Schema) -> Schema:
    """Merges into one schema: all of `allOf`, a single alternative that is not null, and constants as an enum."""
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
    """Adds the part to the schema; what contradicts it stays in `allOf`."""
    result = dict(schema)
    rest: Schema = {}
    for key, value in part.items():
        if key == "properties":
            known = result.get("properties", {})
            different = {name: inner for name, inner in value.items() if known.get(name, inner) != inner}
            rest |= {"properties": different} if different else {}
            result["properties"] = {**known, **value, **known}  # in the order of the known, which win
        elif key == "required":
            result["required"] = list(dict.fromkeys([*result.get("required", []), *value]))
        elif key in _NOTES:
            result.setdefault(key, value)
        elif result.setdefault(key, value) != value:
            rest[key] = value
    return {**result, "allOf": [*result.get("allOf", []), rest]} if rest else result


def _without_null(schema: Schema) -> Schema:
    result = dict(schema)
    if isinstance(result.get("type"), list):
        named = [name for name in result["type"] if name != "null"]
        result["type"] = named[0] if len(named) == 1 else named
    if isinstance(result.get("enum"), list):
        result["enum"] = [value for value in result["enum"] if value is not None]
    return result
