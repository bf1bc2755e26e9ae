"""Checks a client's JSON Schema and normalises it, so that later steps have fewer cases."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from bridge.errors import InvalidRequest
from bridge.stubs.drafts import Origins, translate_schema
from bridge.stubs.in_words import compact_json, describe_schema, keyword_phrases
from bridge.stubs.keywords import FORMS, SILENT, Malformed, read_keyword
from bridge.stubs.patterns import is_common_pattern
from bridge.stubs.subschemas import Schema, subschema_places

_MAY_BE_NULL = ("const", "default")
_MAY_BE_BOOLEAN = ("additionalProperties", "unevaluatedProperties", "unevaluatedItems")
_COMBINING = ("$ref", "allOf", "anyOf", "oneOf")
# Keywords by which a schema may say something about items beside `items` and `prefixItems`.
_ABOUT_ITEMS = frozenset(
    {"$ref", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "contains"}
)
_NOTES = ("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly")
_NULL = {"type": "null"}
# The schema of a property that must not be there.
_LEFT_OUT: Schema = {"not": {}, "description": "no value is allowed: leave it out"}

UNKNOWN = "Left out, because JSON Schema has no such keyword"
NULLABLE = "`nullable` beside a reference or alternatives, read as: or null"
PATTERN = "Said in words, because not every model provider knows the regular expression"
UNEVALUATED = "Said in words, because every list needs `items`, beside which it would say nothing"
# How many characters of a property's name an error shows, and how many places a sentence names.
_SHOWN = 64
_NAMED = 5

# The place of a schema: that of the schema around it, and the step from there, such as `.properties.path`. The place of
# the whole schema is None. Texts of all places would take too long to write if a schema is very deep.
Place = tuple[Any, str] | None


@dataclass(frozen=True, slots=True)
class Normalised:
    """A schema in which all keywords are well-formed, and sentences that say what was left out or mended."""

    schema: Schema
    changes: tuple[str, ...]


def normalise_schema(schema: Any, where: str = "the schema") -> Normalised:
    """Returns a schema of the same meaning with the keywords of draft 2020-12 only, none of them null, and without
    schemas that are true or false. Only `const` and `default` may be null, only `additionalProperties` and the like
    booleans. A schema of a list always has `items`. Raises `InvalidRequest` for a malformed keyword.
    """
    walk = _Walk(where)
    result: list[Any] = [schema]
    walk.waiting.append((result, 0, None))
    while walk.waiting:
        holder, key, place = walk.waiting.popleft()
        holder[key] = walk.read_schema(holder[key], place)
    return Normalised(result[0], tuple(map(_sentence, walk.found, walk.found.values())))


def declared_types(schema: Schema) -> list[str]:
    """Returns what the keyword `type` of a schema names; an empty list without the keyword."""
    named = schema.get("type", [])
    return [named] if isinstance(named, str) else named


@dataclass(slots=True)
class _Walk:
    """Reads a schema and the schemas inside it, each once, without recursion. `waiting` holds where they are: a
    container, a key in it, and the place for errors. `found` maps what was left out or mended to where that was.
    """

    where: str
    waiting: deque[tuple[Any, Any, Place]] = field(default_factory=deque)
    found: dict[str, dict[str, None]] = field(default_factory=dict)

    def read_schema(self, schema: Any, place: Place) -> Schema:
        """Returns one schema normalised, and adds the schemas inside it, which are still as sent, to `waiting`."""
        if isinstance(schema, bool):
            return {} if schema else {"not": {}}
        if not isinstance(schema, dict):
            self._refuse(place, "must be a schema (an object)")
        clean = {key: value for key, value in schema.items() if value is not None or key in _MAY_BE_NULL}
        translated, origins = translate_schema(clean)
        result: Schema = {}
        for key, value in translated.items():
            read = self._read_keyword(key, value, (place, f".{origins.get(key, key)}"))
            if read is not None or key in _MAY_BE_NULL:
                result[key] = read
        self._say_odd_patterns(result, place)
        self._settle_unevaluated_items(result, place, origins)
        _simplify(result)
        for keyword, holder, key in subschema_places(result):
            inner = place, f".{origins.get(keyword, keyword)}{_step_to(holder, key, result)}"
            if keyword == "properties" and not key:
                self._refuse(inner, "has an empty name")
            if keyword not in _MAY_BE_BOOLEAN or not isinstance(holder[key], bool):
                self.waiting.append((holder, key, inner))
        return self._allow_null(result, place)

    def _read_keyword(self, key: str, value: Any, place: Place) -> Any:
        """Returns a keyword's value in a container of its own; None if the keyword is not sent."""
        if key not in FORMS:
            if key not in SILENT:
                self._note(UNKNOWN, key[:_SHOWN])
            return None
        try:
            read, mended = read_keyword(key, value)
        except Malformed as fault:
            self._refuse(place, f"must be {fault.wanted}")
        if mended:
            self._note(mended, _path(place)[1:])
        return read.copy() if isinstance(read, (dict, list)) else read

    def _say_odd_patterns(self, schema: Schema, place: Place) -> None:
        """Moves regular expressions that some provider may not know into the description, in place."""
        phrases = []
        if not is_common_pattern(schema.get("pattern", "")):
            phrases += keyword_phrases({"pattern": schema.pop("pattern")})
            self._note(PATTERN, _path((place, ".pattern"))[1:])
        odd = [name for name in schema.get("patternProperties", ()) if not is_common_pattern(name)]
        for name in odd:
            del schema["patternProperties"][name]
            phrases.append(f"other properties may have names matching the regular expression {compact_json(name)}")
            self._note(PATTERN, _path((place, ".patternProperties"))[1:])
        if odd and not schema.get("additionalProperties"):
            schema["additionalProperties"] = True
        if phrases:
            schema["description"] = describe_schema(schema, *phrases)

    def _settle_unevaluated_items(self, schema: Schema, place: Place, origins: Origins) -> None:
        """Says what `unevaluatedItems` means, in place. `items`, which every list gets, would leave it no meaning."""
        is_list, is_combined = "array" in declared_types(schema), bool(schema.keys() & set(_COMBINING))
        if "unevaluatedItems" not in schema or not (is_list or is_combined):
            return
        rest = schema.pop("unevaluatedItems")
        if "items" in schema:
            return
        if not schema.keys() & _ABOUT_ITEMS:
            schema["items"] = rest
            origins["items"] = "unevaluatedItems"
        elif rest is not True:
            schema["description"] = describe_schema(schema, *keyword_phrases({"unevaluatedItems": rest}))
            self._note(UNEVALUATED, _path((place, ".unevaluatedItems"))[1:])

    def _allow_null(self, schema: Schema, place: Place) -> Schema:
        """Says in JSON Schema what OpenAPI's `nullable` means. All arguments together are never null."""
        if not schema.pop("nullable", False) or not place:
            return schema
        if "type" in schema:
            schema["type"] = list(dict.fromkeys([*declared_types(schema), "null"]))
            return schema
        combining = [key for key in _COMBINING if key in schema]
        if not combining:
            return schema
        self._note(NULLABLE, _path(place)[1:])
        if combining == ["anyOf"]:
            schema["anyOf"].append(dict(_NULL))
            return schema
        notes = {key: schema.pop(key) for key in _NOTES if key in schema}
        # The schema itself stays the container of the schemas inside it, which are not read yet.
        return {**notes, "anyOf": [schema, dict(_NULL)]}

    def _note(self, what: str, where: str) -> None:
        self.found.setdefault(what, {})[where] = None

    def _refuse(self, place: Place, fault: str) -> Any:
        where = self.where + _path(place)
        raise InvalidRequest(f"`{where}` {fault}.", param=where)


def _simplify(schema: Schema) -> None:
    """Says what a property that is false means, and makes `items` a schema, in place."""
    for name, inner in schema.get("properties", {}).items():
        if inner is False:
            schema["properties"][name] = _LEFT_OUT
    if schema.get("items") is False:
        length = len(schema.get("prefixItems", ()))
        schema |= {"items": {}, "maxItems": min(length, schema.get("maxItems", length))}
    if "array" in declared_types(schema):
        schema.setdefault("items", {})


def _step_to(holder: Any, key: Any, schema: Schema) -> str:
    """Returns the step from a keyword to a schema in its value."""
    if holder is schema:
        return ""
    return f"[{key}]" if isinstance(holder, list) else f".{key[:_SHOWN]}"


def _path(place: Place) -> str:
    """Returns a place as errors show it, such as `.properties.path.items`."""
    steps = []
    while place is not None:
        place, step = place
        steps.append(step)
    return "".join(reversed(steps))


def _sentence(what: str, places: dict[str, None]) -> str:
    named = list(places)[:_NAMED]
    more = f" and {len(places) - len(named)} more" if len(places) > len(named) else ""
    return f"{what}: {', '.join(named)}{more}."
