"""Merges the schemas that one object must fit: a schema, those to which its references lead, and those in `allOf`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from bridge.stubs.joining import NOTES, SchemaJoiner
from bridge.stubs.normalise import declared_types
from bridge.stubs.references import Definitions
from bridge.stubs.subschemas import ALTERNATIVES, Schema
from bridge.stubs.work import Work

_NO_SUBSTANCE = NOTES | {"type", "$ref", "allOf"}
# Keywords that are merged in other ways than by keeping the first.
_MERGED_BY_NAME = frozenset(
    {"$ref", "allOf", "properties", "required", "patternProperties", "additionalProperties", "then", "else"}
)
_ASSERTIONS = frozenset({"not", "enum", "const", "if", "propertyNames", "dependentRequired", "dependentSchemas"})
_LIMITS: dict[str, Callable[[Any, Any], Any]] = {"minProperties": max, "maxProperties": min}
_CONDITION = ("if", "then", "else")
# All keywords that say something about an object beside the names of its members.
SAID_IN_WORDS = _ASSERTIONS | _LIMITS.keys() | {"then", "else", "patternProperties", "additionalProperties"}
_ABOUT_NAMES = ("patternProperties", "additionalProperties")
_ANYTHING: Schema = {"additionalProperties": True}
_NOTHING: Schema = {"not": {}}


@dataclass(slots=True)
class Merged:
    """One schema of an object instead of `parts` that it must all fit. `names` has the schemas that the value of each
    property must fit, `alternatives` the lists of `anyOf` and `oneOf` with their keywords, `rest` the other keywords.
    `quoted` are schemas that the object must fit, too, and that could not be merged.
    """

    parts: list[Schema]
    names: dict[str, list[Any]] = field(default_factory=dict)
    required: list[str] = field(default_factory=list)
    alternatives: list[tuple[str, list[Any]]] = field(default_factory=list)
    rest: Schema = field(default_factory=dict)
    quoted: list[Schema] = field(default_factory=list)

    @property
    def is_impossible(self) -> bool:
        """Whether no object can fit the schema."""
        return self.rest.get("not") == {} or "object" not in (declared_types(self.rest) or ["object"])


@dataclass(slots=True)
class PartReader:
    """Finds and merges the parts of the schemas of one tool. `missing` are the references that lead nowhere."""

    definitions: Definitions
    work: Work
    where: str
    missing: dict[str, None] = field(default_factory=dict)
    joiner: SchemaJoiner = field(init=False)
    _known: dict[int, tuple[Any, list[Schema]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.joiner = SchemaJoiner(self.work, self.where)

    def parts_of(self, schema: Any) -> list[Schema]:
        """Returns a schema and all schemas that its values must fit, too, without those that say nothing."""
        start = self._follow(schema)
        if id(start) not in self._known:
            self._known[id(start)] = start, list(self._find_parts(start))  # kept, so that no other gets its id
        return self._known[id(start)][1]

    def _follow(self, schema: Any) -> Any:
        """Returns the target of a schema that is only a reference, so that its parts are found only once."""
        followed = set[str]()
        while isinstance(schema, dict) and schema.keys() == {"$ref"} and schema["$ref"] not in followed:
            followed.add(schema["$ref"])
            schema = self._target(schema["$ref"])
        return schema

    def _target(self, reference: str) -> Any:
        found = self.definitions.find(reference)
        if found is None:
            self.missing[reference] = None
            return _ANYTHING
        return _NOTHING if found is False else found

    def _find_parts(self, schema: Any) -> Iterable[Schema]:
        waiting, followed = deque([schema]), set[str]()
        while waiting:
            part = waiting.popleft()
            self.work.spend(1, self.where)
            if not isinstance(part, dict):
                continue
            if part.keys() - {"$ref", "allOf"}:
                yield part
            reference = part.get("$ref")
            if reference is not None and reference not in followed:
                followed.add(reference)
                waiting.append(self._target(reference))
            waiting.extend(part.get("allOf", ()))

    def merge(self, parts: list[Schema]) -> Merged:
        """Merges everything but what depends on all names: `apply_rules_for_other_names` does that at the end."""
        merged = Merged(parts)
        is_outermost = True
        for part in parts:
            self.work.spend(1 + len(part.get("properties", ())) + len(part.get("required", ())), self.where)
            for name, schema in part.get("properties", {}).items():
                merged.names.setdefault(name, []).append(schema)
            merged.required += part.get("required", [])
            for key, value in part.items():
                if key in ALTERNATIVES:
                    merged.alternatives.append((key, value))
                elif key == "unevaluatedProperties" and not is_outermost:
                    merged.quoted.append({name: inner for name, inner in part.items() if name not in NOTES})
                elif key not in _MERGED_BY_NAME:
                    self._merge_keyword(merged, key, part)
            is_outermost = is_outermost and part.keys() <= _NO_SUBSTANCE and "allOf" not in part
        merged.required = list(dict.fromkeys(merged.required))
        return merged

    def apply_rules_for_other_names(self, merged: Merged) -> None:
        """Merges `patternProperties` and `additionalProperties`. The latter is about the names that its own part does
        not have, so it is also about properties of other parts. A part that does not allow a property of another
        part is quoted, and so is one whose patterns would have to be compared with names.
        """
        patterns: dict[str, list[Any]] = {}
        for part in merged.parts:
            for pattern, schema in part.get("patternProperties", {}).items():
                patterns.setdefault(pattern, []).append(schema)
        if patterns:
            merged.rest["patternProperties"] = {pattern: self.joiner.join(found) for pattern, found in patterns.items()}
        rules: list[Any] = []
        for part in merged.parts:
            if "additionalProperties" in part:
                rules.append(part["additionalProperties"])
                self._apply_rule(merged, part, len(patterns))
        if rules:
            limits = [rule for rule in rules if rule is not True]
            merged.rest["additionalProperties"] = False not in limits and (self.joiner.join(limits) or True)

    def _apply_rule(self, merged: Merged, part: Schema, patterns: int) -> None:
        rule, own = part["additionalProperties"], part.get("properties", {})
        if rule is True or rule == {}:
            return
        self.work.spend(len(merged.names), self.where)
        others = [name for name in merged.names if name not in own]
        own_patterns = part.get("patternProperties", {})
        if len(own_patterns) < patterns or (others and (own_patterns or rule is False)):
            merged.quoted.append(_about_names(part))
        else:
            for name in others:
                merged.names[name].append(rule)

    def _merge_keyword(self, merged: Merged, key: str, part: Schema) -> None:
        """Merges a keyword of a part; of notes, the first wins."""
        value, known = part[key], merged.rest.get(key)
        if key == "if":
            if not part.keys() & {"then", "else"} and not any("unevaluatedProperties" in one for one in merged.parts):
                return
            value = {name: part[name] for name in _CONDITION if name in part}
            known = {name: merged.rest[name] for name in _CONDITION if name in merged.rest}
        if not known and key not in merged.rest:
            merged.rest |= value if key == "if" else {key: value}
        elif key in _LIMITS:
            merged.rest[key] = _LIMITS[key](known, value)
        elif key == "type":
            if "object" not in declared_types(part):
                merged.rest["not"] = {}
        elif key in _ASSERTIONS and not self._is_same(key, value, known):
            merged.quoted.append(value if key == "if" else {key: value})

    def _is_same(self, key: str, value: Any, known: Any) -> bool:
        if key != "if":
            return self.joiner.is_same(value, known)
        return value.keys() == known.keys() and all(self.joiner.is_same(value[name], known[name]) for name in value)


def _about_names(part: Schema) -> Schema:
    """Returns what a part says about the names of members."""
    shown: Schema = {key: part[key] for key in _ABOUT_NAMES if key in part}
    return {**({"properties": {name: {} for name in part["properties"]}} if part.get("properties") else {}), **shown}
