"""Converts schemas for Letta servers that force every schema into OpenAI's strict mode.

Strict mode gives every value one type and has no other constraints: the description says those in words. Maps, tuples,
alternatives, values of any kind, definitions that contain themselves, and values that strict mode does not allow to be
left out are asked for as JSON text: the description quotes their schema, and arguments.py reads the text.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from bridge.stubs.as_sent import MAX_STRICT_LEVELS, is_token_countable
from bridge.stubs.in_words import describe_schema, keyword_phrases
from bridge.stubs.references import Definitions
from bridge.stubs.subschemas import ALTERNATIVES, KINDS, Schema
from bridge.turn import ArgumentPath

Place = Literal["required", "optional", "item"]

# How many characters of JSON Schema a description may quote.
MAX_QUOTED = 8000
# How many characters all descriptions of a tool may quote. One that is too long counts as one of that length.
MAX_QUOTED_TOGETHER = 100_000
_SCALARS = {"string": "text", "number": "a number", "integer": "a whole number", "boolean": "true or false"}
_OBJECT_KEYWORDS = frozenset({"type", "properties", "required", "additionalProperties"})
_LIST_KEYWORDS = frozenset({"type", "items", "minItems", "maxItems", "uniqueItems"})
_NOTES = frozenset({"description", "title", "default", "examples", "deprecated"})
_NULL = ({"type": "null"}, {"const": None}, {"enum": [None]})


@dataclass(slots=True)
class StrictFormBuilder:
    """Builds one tool's schema for strict mode. `nullable_types`: a type such as `["string", "null"]` reaches the
    model. `build` fills `as_text` (paths of values that the model gives as JSON text), `sentences` (for the tool's
    description) and `changes` (what differs from the client's schema).
    """

    definitions: Definitions
    nullable_types: bool
    as_text: set[ArgumentPath] = field(default_factory=set)
    sentences: list[str] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)
    _quoted: int = 0

    def build(self, top: Schema) -> Schema:
        """Returns the schema of all arguments. `top` refers only to definitions that contain themselves."""
        if top.get("additionalProperties") not in (None, False):
            self.changes.append("Arguments beyond those that the client names can't be given.")
        phrases = keyword_phrases(top, frozenset({"default"}))
        if phrases:
            self.sentences.append(f"All arguments together: {'; '.join(phrases)}.")
            self.changes.append("What the schema says of all arguments together is said in the tool's description.")
        return {"type": "object", "properties": self._property_schemas(top, ()), "required": top["required"]}

    def _property_schemas(self, schema: Schema, path: ArgumentPath) -> Schema:
        required = set(schema.get("required", []))
        found = {}
        for name, inner in schema["properties"].items():
            if name in required or self.definitions.possible_kinds(inner):
                found[name] = self._value_schema(inner, (*path, name), "required" if name in required else "optional")
            else:
                self.changes.append(f"{_dotted_path((*path, name))} can't be given: no value is allowed.")
        return found

    def _value_schema(self, schema: Schema, path: ArgumentPath, place: Place) -> Schema:
        """Returns the strict mode schema of the value at `path`: that of a string if the model must give JSON text."""
        plain = _remove_null(_merge_all_of(schema))
        nullable = "null" in self.definitions.possible_kinds(schema)
        kind = _only_kind(self.definitions.possible_kinds(plain))
        absence = _absence_phrase(place, nullable)
        if place == "optional" and not nullable:
            self.changes.append("What is optional may be null, which leaves it out.")
        if kind in _SCALARS and ((self.nullable_types and place != "item") or not absence):
            return self._scalar_schema(plain, kind, path, absence)
        if not absence and len(path) < MAX_STRICT_LEVELS:
            if kind == "array" and plain.keys() <= _LIST_KEYWORDS | _NOTES:
                phrases = self._note_phrases(plain, path)
                items = self._value_schema(plain.get("items", {}), (*path, "*"), "item")
                return {"type": "array", **_description_keyword(plain, *phrases), "items": items}
            if kind == "object" and self._has_fixed_properties(plain):
                if plain.get("additionalProperties") is True:
                    self.changes.append(f"{_dotted_path(path)}: members beyond those that are named can't be given.")
                properties = self._property_schemas(plain, path)
                required = [name for name in plain.get("required", []) if name in properties]
                description = _description_keyword(plain, *self._note_phrases(plain, path))
                return {"type": "object", **description, "properties": properties, "required": required}
        return self._text_schema(schema, kind, path, place, absence)

    def _has_fixed_properties(self, schema: Schema) -> bool:
        """Whether strict mode can express an object. Properties that are allowed but not listed can't be given then."""
        return (
            schema.keys() <= _OBJECT_KEYWORDS | _NOTES
            and schema.get("additionalProperties", False) in (False, True)
            and any(map(self.definitions.possible_kinds, schema.get("properties", {}).values()))
        )

    def _scalar_schema(self, plain: Schema, kind: str, path: ArgumentPath, absence: str) -> Schema:
        """Returns the schema of a scalar. `absence` tells the model what null means; "" if null is not allowed."""
        choices = [plain["const"]] if "const" in plain else plain.get("enum")
        listed = bool(choices) and kind == "string" and not absence and is_token_countable({"enum": choices})
        # Letta keeps `enum` only directly in a parameter; further inside, its values are said in words, too.
        phrases = self._note_phrases(plain, path, frozenset({"enum", "const"} if listed and len(path) == 1 else ()))
        return {
            "type": [kind, "null"] if absence else kind,
            **_description_keyword(plain, *phrases, absence),
            **({"enum": choices} if listed else {}),
        }

    def _text_schema(self, schema: Schema, kind: str, path: ArgumentPath, place: Place, absence: str) -> Schema:
        """Returns the schema of a string with a value as text. Where the type can't be null, null is text, too."""
        self.as_text.add(path)
        nullable = bool(absence) and self.nullable_types and place != "item"
        if kind != "string":
            self.changes.append(f"{_dotted_path(path)} is given as JSON text.")
        if kind in _SCALARS:
            plain = _remove_null(_merge_all_of(schema))
            phrases = [f"{_SCALARS[kind]}, as text" if kind != "string" else "", *self._note_phrases(plain, path)]
            absence = absence.replace("null", "the bare word null")
        else:
            phrases = [self._json_text_phrase(schema)]
        return {"type": ["string", "null"] if nullable else "string", **_description_keyword(schema, *phrases, absence)}

    def _json_text_phrase(self, schema: Schema) -> str:
        """Returns the phrase that quotes the JSON Schema which the text must fit, up to `MAX_QUOTED` characters."""
        bare = {key: value for key, value in schema.items() if key not in ("description", "title")}
        kinds = self.definitions.possible_kinds(schema)
        if kinds == KINDS and not bare.keys() - _NOTES:
            return "any value, as JSON text"
        whole = self.definitions.quote(bare, MAX_QUOTED) if self._quoted <= MAX_QUOTED_TOGETHER else ""
        self._quoted += len(whole) or MAX_QUOTED
        text = f"fitting the JSON Schema {whole}" if whole else "of a form too long to be said here"
        return f"plain text, or JSON text {text}" if "string" in kinds else f"as JSON text {text}"

    def _note_phrases(self, schema: Schema, path: ArgumentPath, except_for: frozenset[str] = frozenset()) -> list[str]:
        """Returns a phrase for each keyword except those in `except_for`, and adds the phrases to `changes`."""
        phrases = keyword_phrases(schema, except_for)
        if phrases:
            self.changes.append(f"{_dotted_path(path)}: said in words: {'; '.join(phrases)}.")
        return phrases


def _absence_phrase(place: Place, nullable: bool) -> str:
    """Returns what null means for a value; "" if null is not allowed."""
    if nullable:
        return "null if there is none"
    return "optional: null leaves it out" if place == "optional" else ""


def _only_kind(kinds: frozenset[str]) -> str:
    """Returns the only type beside null; "" if there is not exactly one. Number and integer together are "number"."""
    kinds -= {"null"}
    if kinds == {"number", "integer"}:
        return "number"
    return next(iter(kinds)) if len(kinds) == 1 else ""


def _description_keyword(schema: Schema, *phrases: str) -> Schema:
    """Returns `{"description": …}`; `{}` if there is no text."""
    text = describe_schema(schema, *phrases)
    return {"description": text} if text else {}


def _dotted_path(path: ArgumentPath) -> str:
    """Returns a path as sentences show it, such as `'files[].name'`."""
    return repr(".".join(path).replace(".*", "[]"))


def _merge_all_of(schema: Schema) -> Schema:
    """Returns a simpler schema that means the same for all values except null. Merges `allOf` and an alternative that
    is the only one beside null, and turns constants as alternatives into an `enum`; these two lose null.
    """
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
    return _merge_parts(result, [_merge_all_of(part) for part in parts]) if parts else result


def _merge_parts(schema: Schema, parts: list[Schema]) -> Schema:
    """Returns a schema whose values fit all. What can't be merged goes to `allOf`; notes of `schema` win."""
    result, left = dict(schema), []
    properties, required = dict(schema.get("properties", {})), dict.fromkeys(schema.get("required", []))
    for part in parts:
        if _bars_properties(part, properties, result) or _bars_properties(result, part.get("properties", {}), part):
            left.append(part)
            continue
        rest: Schema = {}
        for key, value in part.items():
            if key == "properties":
                different = {
                    name: inner for name, inner in value.items() if properties.setdefault(name, inner) != inner
                }
                rest |= {"properties": different} if different else {}
            elif key == "required":
                required |= dict.fromkeys(value)
            elif key == "allOf":
                left += value
            elif result.setdefault(key, value) != value and key not in _NOTES:
                rest[key] = value
        left += [rest] if rest else []
        result |= {"properties": properties} if properties else {}
    return {**result, **({"required": list(required)} if required else {}), **({"allOf": left} if left else {})}


def _bars_properties(schema: Schema, properties: Schema, other: Schema) -> bool:
    """Whether `additionalProperties` of a schema is about properties or patterns that only the other schema has."""
    if schema.get("additionalProperties", True) in (True, {}):
        return False
    own = schema.get("properties", {})
    patterns = other.get("patternProperties", {})
    return (
        len(properties) > len(own)
        or bool(properties.keys() - own.keys())
        or not (patterns.keys() <= schema.get("patternProperties", {}).keys())
    )


def _remove_null(schema: Schema) -> Schema:
    """Returns the schema without null in `type` and `enum`. A list of one type becomes the name of that type."""
    result = dict(schema)
    if isinstance(result.get("type"), list):
        named = [name for name in result["type"] if name != "null"]
        result["type"] = named[0] if len(named) == 1 else named
    if isinstance(result.get("enum"), list):
        result["enum"] = [value for value in result["enum"] if value is not None]
    return result
