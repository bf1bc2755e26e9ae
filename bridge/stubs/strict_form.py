"""Converts schemas for Letta servers that force every schema into OpenAI's strict mode.

Strict mode gives every value one type and has no other constraints: those are said in words in the description. Maps,
tuples, alternatives, values of any kind, definitions that contain themselves, and values that strict mode does not
allow to be left out are asked for as JSON text. Their own schema is then in the description, and arguments.py reads the
text.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from bridge.stubs.as_sent import MAX_STRICT_LEVELS, is_token_countable
from bridge.stubs.in_words import compact_json, describe_schema, keyword_phrases
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
    """Builds the schema of one tool for OpenAI's strict mode.

    `definitions` finds the targets of references. `nullable_types`: a type such as `["string", "null"]` reaches the
    model. `build` fills the other fields: `as_text` gets the paths of the values that the model gives as JSON text,
    `sentences` what must be added to the tool's description, and `changes` what differs from the client's schema.
    """

    definitions: Definitions
    nullable_types: bool
    as_text: set[ArgumentPath] = field(default_factory=set)
    sentences: list[str] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)

    def build(self, top: Schema) -> Schema:
        """Returns the schema of all arguments for strict mode, and fills `as_text`, `sentences` and `changes`.

        `top` is the schema from `make_top_level` after `Inlining.inline`: the only references in `top` are those to
        definitions that contain themselves.
        """
        if top.get("additionalProperties") not in (None, False):
            self.changes.append("Arguments beyond those that the client names can't be given.")
        phrases = keyword_phrases(top, frozenset({"default"}))
        if phrases:
            self.sentences.append(f"All arguments together: {'; '.join(phrases)}.")
            self.changes.append("What the schema says of all arguments together is said in the tool's description.")
        return {"type": "object", "properties": self._property_schemas(top, ()), "required": top["required"]}

    def _property_schemas(self, schema: Schema, path: ArgumentPath) -> Schema:
        """Returns the strict mode schema of each property of an object. `path` is the path of the object."""
        required = schema.get("required", [])
        return {
            name: self._value_schema(inner, (*path, name), "required" if name in required else "optional")
            for name, inner in schema["properties"].items()
        }

    def _value_schema(self, schema: Schema, path: ArgumentPath, place: Place) -> Schema:
        """Returns the strict mode schema for the value at `path`, from the client's schema for this value.

        Returns the schema of a scalar, of a list or of an object, if strict mode can express the value. Otherwise
        returns a schema by which the model gives the value as JSON text. `place`: the value is a required property, an
        optional property, or an item of a list.
        """
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
            if kind == "object" and _has_fixed_properties(plain):
                properties = self._property_schemas(plain, path)
                required = [name for name in plain.get("required", []) if name in properties]
                description = _description_keyword(plain, *self._note_phrases(plain, path))
                return {"type": "object", **description, "properties": properties, "required": required}
        return self._text_schema(schema, kind, path, place, absence)

    def _scalar_schema(self, plain: Schema, kind: str, path: ArgumentPath, absence: str) -> Schema:
        """Returns the strict mode schema for a string, a number or a boolean.

        `absence` tells the model what null means; "" if null is not allowed. The allowed values are given as `enum`
        only for strings that can't be null and whose tokens Letta can count. All others are said in the description.
        """
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
        """Returns the schema of a string in which the model gives the value at `path`. Adds `path` to `as_text`.

        Strings, numbers and booleans are described in words, all other values by their JSON Schema. `absence` tells the
        model what null means; "" if null is not allowed. Where the type can't be null, the model writes null as text.
        """
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
        """Returns the phrase that tells the model which JSON text to give for a value of this schema.

        The phrase quotes the schema with the definitions that it needs, up to `MAX_QUOTED` characters.
        """
        bare = {key: value for key, value in schema.items() if key not in ("description", "title", "$schema")}
        kinds = self.definitions.possible_kinds(schema)
        if kinds == KINDS and not bare.keys() - _NOTES:
            return "any value, as JSON text"
        whole = compact_json({**bare, **self.definitions.needed_definitions(bare)})
        text = f"fitting the JSON Schema {whole}" if len(whole) <= MAX_QUOTED else "of a form too long to be said here"
        return f"plain text, or JSON text {text}" if "string" in kinds else f"as JSON text {text}"

    def _note_phrases(self, schema: Schema, path: ArgumentPath, except_for: frozenset[str] = frozenset()) -> list[str]:
        """Returns a phrase for each keyword of a schema, except those in `except_for`.

        Adds a sentence with the phrases to `changes`. `path` names the value in that sentence.
        """
        phrases = keyword_phrases(schema, except_for)
        if phrases:
            self.changes.append(f"{_dotted_path(path)}: said in words: {'; '.join(phrases)}.")
        return phrases


def _absence_phrase(place: Place, nullable: bool) -> str:
    """Returns the phrase that tells the model what null means for a value; "" if null is not allowed."""
    if nullable:
        return "null if there is none"
    return "optional: null leaves it out" if place == "optional" else ""


def _only_kind(kinds: frozenset[str]) -> str:
    """Returns the only JSON Schema type in `kinds` beside null; "" if there are several or none.

    "number" and "integer" together count as "number".
    """
    kinds -= {"null"}
    if kinds == {"number", "integer"}:
        return "number"
    return next(iter(kinds)) if len(kinds) == 1 else ""


def _has_fixed_properties(schema: Schema) -> bool:
    """Whether strict mode can express the schema of an object: a list of properties, and no constraints.

    Properties that the schema does not list may be allowed (`additionalProperties: true`), but the model can't give
    such properties.
    """
    return (
        bool(schema.get("properties"))
        and schema.keys() <= _OBJECT_KEYWORDS | _NOTES
        and schema.get("additionalProperties", False) in (False, True)
    )


def _description_keyword(schema: Schema, *phrases: str) -> Schema:
    """Returns `{"description": …}` with the schema's own description and the phrases; `{}` if there is no text."""
    text = describe_schema(schema, *phrases)
    return {"description": text} if text else {}


def _dotted_path(path: ArgumentPath) -> str:
    """Returns a path as sentences show it, such as `'files[].name'`."""
    return repr(".".join(path).replace(".*", "[]"))


def _merge_all_of(schema: Schema) -> Schema:
    """Returns a schema that means the same for all values except null, with fewer schemas inside.

    Merges all schemas in `allOf` into the schema around them, also an alternative that is the only one beside null.
    Turns alternatives that are all constants into an `enum`. In the last two cases, the alternative null is dropped.
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
    for part in parts:
        result = _add_part(result, _merge_all_of(part))
    return result


def _add_part(schema: Schema, part: Schema) -> Schema:
    """Returns `schema` with the keywords of `part` added, so that a value must fit `schema` and `part`.

    If a keyword has different values in `schema` and `part`, the value in `part` goes to `allOf`. But descriptions and
    other notes of `part` are dropped if `schema` has them already.
    """
    result = dict(schema)
    rest: Schema = {}
    for key, value in part.items():
        if key == "properties":
            known = result.get("properties", {})
            different = {name: inner for name, inner in value.items() if known.get(name, inner) != inner}
            rest |= {"properties": different} if different else {}
            result["properties"] = {**known, **value, **known}  # in the order of the known ones, which are kept
        elif key == "required":
            result["required"] = list(dict.fromkeys([*result.get("required", []), *value]))
        elif key in _NOTES:
            result.setdefault(key, value)
        elif result.setdefault(key, value) != value:
            rest[key] = value
    return {**result, "allOf": [*result.get("allOf", []), rest]} if rest else result


def _remove_null(schema: Schema) -> Schema:
    """Returns the schema without null in `type` and `enum`. A list of one type becomes the name of that type."""
    result = dict(schema)
    if isinstance(result.get("type"), list):
        named = [name for name in result["type"] if name != "null"]
        result["type"] = named[0] if len(named) == 1 else named
    if isinstance(result.get("enum"), list):
        result["enum"] = [value for value in result["enum"] if value is not None]
    return result
