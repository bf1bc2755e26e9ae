"""Finds the schemas that apply to each value of a call's arguments, in a schema that may contain itself.

A schema counts once for a value, however many ways lead to it, and values with the same schemas share an object. So the
work does not grow with the depth of the arguments, and it is limited.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from bridge.stubs.normalise import declared_types
from bridge.stubs.references import Definitions
from bridge.stubs.subschemas import ALTERNATIVES, KINDS, Schema

# How many schemas are looked at for one call: about a quarter of a second.
MAX_WORK = 200_000
# How many listed values, or keys, are compared in the time in which one schema is looked at.
_CHOICES = 50
_CONDITION = ("if", "then", "else")


class TooMuchWork(Exception):
    """Comparing a call's arguments with the client's schema takes more than `MAX_WORK`."""


@dataclass(slots=True)
class Group:
    """Schemas of one value that belong together: it must fit all of them or none, and then those `around` them, too.
    `is_conditional`: only values that meet a condition must fit them.
    """

    around: Group | None = None
    is_conditional: bool = False
    parts: list[Schema] = field(default_factory=list)


@dataclass(slots=True)
class SchemaFinder:
    """Finds the schemas for one call's values. `work` counts how often it has looked at a schema."""

    definitions: Definitions
    work: int = 0
    _known: dict[frozenset[int], ValueSchemas] = field(default_factory=dict)
    _together: dict[tuple[int, ...], Schema] = field(default_factory=dict)

    def find(self, schemas: Iterable[Any]) -> ValueSchemas:
        """Returns the schemas of a value that may fit any of the given ones, which are normalised. None: any value."""
        given = {id(schema): schema for schema in schemas}
        self.spend(len(given))
        key = frozenset(given)
        if key not in self._known:
            self._known[key] = ValueSchemas(self, list(given.values()))
        return self._known[key]

    def spend(self, work: int) -> None:
        self.work += work
        if self.work > MAX_WORK:
            raise TooMuchWork

    def groups_of(self, schemas: Iterable[Any]) -> list[Group]:
        """Returns all schemas for the same value, each once, through `$ref` and all that combines schemas. Each
        alternative, and each schema under a condition, begins a group, which comes after the one around it.
        """
        beginnings = [(schema, Group()) for schema in schemas]
        groups, found = list[Group](), set[int]()
        while beginnings:
            first, group = beginnings.pop()
            groups.append(group)
            waiting = [first]
            while waiting:
                part = waiting.pop()
                self.spend(1)
                if not isinstance(part, dict) or id(part) in found:
                    continue
                found.add(id(part))
                group.parts.append(part)
                if isinstance(part.get("$ref"), str):
                    waiting.append(self.definitions.lookup(part["$ref"]))
                waiting.extend(part.get("allOf", ()))
                beginnings.extend((inner, Group(group, group.is_conditional)) for inner in _alternatives(part))
                beginnings.extend((inner, Group(group, True)) for inner in _conditional_schemas(part))
        return groups

    def together(self, schemas: list[Any]) -> Any:
        """Returns one schema for a value that must fit all of these: the same one for the same schemas."""
        if len(schemas) == 1:
            return schemas[0]
        self.spend(len(schemas))
        key = tuple(map(id, schemas))
        if key not in self._together:
            self._together[key] = {"allOf": schemas}
        return self._together[key]

    def allows(self, schema: Any, value: Any, kind: str, known: dict[int, bool]) -> bool:
        """Whether a schema allows a value of the type `kind`, by its keywords for types, lists of values, and
        combinations. `known` holds the answers for this value, by the ids of schemas.
        """
        if not isinstance(schema, dict):
            return schema is not False
        if id(schema) not in known:
            self.spend(1 + len(schema.get("enum", ())) // _CHOICES)
            known[id(schema)] = True  # so that circles end
            known[id(schema)] = _lists(schema, value, kind) and all(
                any(self.allows(part, value, kind, known) for part in parts) for parts in self._conditions(schema)
            )
        return known[id(schema)]

    def _conditions(self, schema: Schema) -> list[list[Any]]:
        """Returns lists of schemas. A value must fit at least one in each list."""
        reference = schema.get("$ref")
        targets = [[self.definitions.lookup(reference)]] if isinstance(reference, str) else []
        alternatives = [schema[key] for key in ALTERNATIVES if key in schema]
        return [*targets, *([part] for part in schema.get("allOf", ())), *alternatives]


@dataclass(slots=True)
class ValueSchemas:
    """The schemas of one value: it may fit any of them. Without schemas, it may be anything."""

    finder: SchemaFinder
    schemas: list[Any]
    _groups: list[Group] | None = None
    _parts: list[Schema] = field(default_factory=list)
    _kinds: frozenset[str] | None = None
    _conditional_names: set[str] = field(default_factory=set)
    _described_items: int = 0
    _members: dict[str | None, ValueSchemas] = field(default_factory=dict)
    _items: dict[int, ValueSchemas] = field(default_factory=dict)

    @property
    def kinds(self) -> frozenset[str]:
        """The JSON Schema types that the value may have; all of them if no value fits."""
        if self._kinds is None:
            self.finder.spend(len(self._all_parts()))
            possible = self.finder.definitions.possible_kinds
            self._kinds = frozenset[str]().union(*map(possible, self.schemas)) or KINDS
        return self._kinds

    def allows(self, value: Any, kind: str) -> bool:
        """Whether the value may be this one, which has the type `kind`. Looks at lists of values, not into objects."""
        known: dict[int, bool] = {}
        return not self.schemas or any(self.finder.allows(schema, value, kind, known) for schema in self.schemas)

    def is_declared(self, name: str) -> bool:
        """Whether a member of an object has a schema by its name."""
        parts = self._all_parts()
        self.finder.spend(len(parts) // _CHOICES)
        return any(name in part.get("properties", ()) for part in parts)

    def is_optional(self, name: str) -> bool:
        """Whether a member of an object is declared, and required by none of the schemas."""
        if not self.is_declared(name):
            return False
        listed = [part["required"] for part in self._all_parts() if "required" in part]
        self.finder.spend(sum(1 + len(names) // _CHOICES for names in listed))
        return not any(name in names for names in listed)

    def member(self, name: str) -> ValueSchemas:
        """Returns the schemas of an object's member. Members that are not declared have the same ones, except for those
        that only a condition names.
        """
        is_declared = self.is_declared(name)
        key = name if is_declared or name in self._conditional_names else None
        if key not in self._members:
            under_conditions = key is not None and not is_declared
            self._members[key] = self._find_inner(lambda part: _member_schemas(part, key), under_conditions)
        return self._members[key]

    def item(self, place: int) -> ValueSchemas:
        """Returns the schemas of a list's item. Items behind those that `prefixItems` describes have the same ones."""
        self._all_parts()
        key = min(place, self._described_items)
        if key not in self._items:
            self._items[key] = self._find_inner(lambda part: (_item_schemas(part, key), []))
        return self._items[key]

    def _find_inner(
        self, schemas_in: Callable[[Schema], tuple[list[Any], list[Any]]], under_conditions: bool = False
    ) -> ValueSchemas:
        """Returns the schemas of a value inside this one. `schemas_in` returns those that one schema has for it: those
        that it must fit, and those that may be about it. The latter count only where there is none of the former.
        """
        self.finder.spend(len(self._all_parts()))
        found, possible, needed = list[Any](), list[Any](), dict[int, list[Any]]()
        for group in self._groups or ():
            own = list[Any]()
            for must, may in map(schemas_in, group.parts):
                own += must
                possible += may
            needed[id(group)] = [*own, *(needed[id(group.around)] if group.around else ())]
            if own and (under_conditions or not group.is_conditional):
                found.append(self.finder.together(needed[id(group)]))
        return self.finder.find(found or possible)

    def _all_parts(self) -> list[Schema]:
        """Returns the schemas that do not depend on a condition."""
        if self._groups is None:
            self._groups = self.finder.groups_of(self.schemas)
            self._parts = [part for group in self._groups if not group.is_conditional for part in group.parts]
            self._described_items = max((len(part.get("prefixItems", ())) for part in self._parts), default=0)
            conditional = [part for group in self._groups if group.is_conditional for part in group.parts]
            self._conditional_names = {name for part in conditional for name in part.get("properties", ())}
            self._conditional_names.difference_update(*(part.get("required", ()) for part in self._parts))
        return self._parts


def _member_schemas(part: Schema, name: str | None) -> tuple[list[Any], list[Any]]:
    """Returns a schema's own ones for a member: that in `properties`, or else those for members that are not declared,
    which is what None asks for. Patterns of names are not tried, because a client's pattern may take any time: so their
    schemas, and those of other names beside them, are only possible ones.
    """
    if name in part.get("properties", ()):
        return [part["properties"][name]], []
    others = part.get("additionalProperties")
    patterns = part.get("patternProperties")
    if patterns:
        return [], [*patterns.values(), *([] if others is False else [others if isinstance(others, dict) else {}])]
    return ([others], []) if isinstance(others, dict) else ([], [])


def _alternatives(part: Schema) -> list[Any]:
    return [inner for key in ALTERNATIVES for inner in part.get(key, ())]


def _conditional_schemas(part: Schema) -> list[Any]:
    return [*(part[key] for key in _CONDITION if key in part), *part.get("dependentSchemas", {}).values()]


def _item_schemas(part: Schema, place: int) -> list[Any]:
    """Returns a schema's own ones for an item: that in `prefixItems`, or else that in `items`."""
    described = part.get("prefixItems", ())
    if place < len(described):
        return [described[place]]
    return [part["items"]] if "items" in part else []


def _lists(schema: Schema, value: Any, kind: str) -> bool:
    """Whether `type`, `enum` and `const` of a schema allow a value other than null."""
    types = declared_types(schema)
    return (
        (not types or kind in types or (kind == "integer" and "number" in types))
        and ("enum" not in schema or value in schema["enum"])
        and ("const" not in schema or value == schema["const"])
    )
