"""Follows each `$ref`: keeps it, spells it out, or replaces it where it leads nowhere.

Definitions are beside the properties of a schema, and most of what is between the bridge and a model keeps only the
properties.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any, Literal
from urllib.parse import unquote

from bridge.stubs.checks import is_well_formed
from bridge.stubs.in_words import described
from bridge.stubs.normalise import normalised
from bridge.stubs.subschemas import KINDS, Schema, found_at, is_schema, kinds, mapped

# How often a definition may contain itself when it is spelt out, and how much may be spelt out in all.
MAX_REPEATS = 2
MAX_NODES = 1000
MAX_DEPTH = 24
# How many references are followed to find the kinds of their values, and how many to places that hold no schemas.
MAX_REFERENCES = 100

_DEFINITIONS = ("#/$defs/", "#/definitions/")
_ANNOTATIONS = frozenset({"description", "title", "default", "examples", "example", "deprecated", "$comment"})


@dataclass(slots=True)
class Definitions:
    """Finds what the references of one client's schema lead to."""

    root: Schema
    _found: dict[str, Any] = field(default_factory=dict)
    _unexpected: int = 0
    _kinds: dict[str, frozenset[str]] = field(default_factory=dict)
    _recursive: frozenset[str] | None = None

    def lookup(self, reference: str) -> Any:
        """Returns the schema at the reference; True, which allows any value, if there is none."""
        found = self.find(reference)
        return True if found is None else found

    def find(self, reference: str) -> Any:
        """Returns the schema at a JSON Pointer from the root, or None. Other documents are not read."""
        if not reference.startswith("#") or reference[1:2] not in ("", "/"):
            return None
        if reference not in self._found:
            found, expected = found_at(self.root, map(_unescaped, reference[1:].split("/")[1:]))
            if not expected and isinstance(found, dict):
                found = self._schema_in_unexpected_place(found)
            self._found[reference] = found if is_schema(found) else None
        return self._found[reference]

    def _schema_in_unexpected_place(self, found: Schema) -> Any:
        """Checks and normalises what was not recognised as a schema before, such as OpenAPI's `components`."""
        self._unexpected += 1
        return normalised(found) if self._unexpected <= MAX_REFERENCES and is_well_formed(found) else None

    def kinds(self, schema: Any) -> frozenset[str]:
        return kinds(schema, self._kinds_of)

    def _kinds_of(self, reference: str) -> frozenset[str]:
        """While a reference is followed, it counts as any kind, so that circles and long chains come to an end."""
        if reference not in self._kinds:
            self._kinds[reference] = KINDS
            if len(self._kinds) < MAX_REFERENCES:
                self._kinds[reference] = kinds(self.lookup(reference), self._kinds_of)
        return self._kinds[reference]

    def is_recursive(self, reference: str) -> bool:
        """Whether following the reference leads to it again (or whether it is between two that do)."""
        if self._recursive is None:
            reachable = self._reachable(self.root)
            before_circles = _unsortable(reachable)
            backwards: dict[str, set[str]] = {found: set() for found in before_circles}
            for found in before_circles:
                for other in reachable[found] & before_circles:
                    backwards[other].add(found)
            self._recursive = frozenset(_unsortable(backwards))
        return reference in self._recursive

    def needed(self, schema: Schema) -> dict[str, Any]:
        """Returns the definitions that the schema's references need, under the root's keywords for them."""
        result: dict[str, Any] = {}
        for reference in filter(is_definition, self._reachable(schema)):
            keyword, name = map(_unescaped, reference[2:].split("/")[:2])
            if name in self.root.get(keyword, {}):
                result.setdefault(keyword, {})[name] = self.root[keyword][name]
        return result

    def _reachable(self, schema: Schema) -> dict[str, set[str]]:
        """Returns every reference in the schema and in what they lead to, each with the references at its end."""
        result: dict[str, set[str]] = {}
        waiting = _references_in(schema)
        while waiting:
            reference = waiting.pop()
            if reference not in result:
                result[reference] = _references_in(self.find(reference))
                waiting |= result[reference]
        return result


def _references_in(schema: Any) -> set[str]:
    found: set[str] = set()

    def collect(inner: Any) -> Any:
        if isinstance(inner, dict):
            if isinstance(inner.get("$ref"), str):
                found.add(inner["$ref"])
            mapped(inner, collect)
        return inner

    collect(schema)
    return found


def _unsortable(graph: dict[str, set[str]]) -> set[str]:
    """Returns the nodes that no order can put after all that they lead to: those in a circle or before one."""
    sorter = TopologicalSorter(graph)
    with suppress(CycleError):
        sorter.prepare()
    left = set(graph)
    while ready := sorter.get_ready():
        sorter.done(*ready)
        left.difference_update(ready)
    return left


@dataclass(slots=True)
class Inlining:
    """Replaces references in one schema by what they refer to.

    `keep` says which references to definitions stay: all, those whose definitions contain themselves, or none. If
    none stay, such definitions are spelt out to a limited depth.
    """

    definitions: Definitions
    keep: Literal["all", "recursive", "none"]
    changes: list[str] = field(default_factory=list)
    nodes: int = 0

    def of(self, schema: Any, path: tuple[str, ...] = (), depth: int = 0) -> Any:
        if not isinstance(schema, dict):
            return schema
        self.nodes += 1
        inner = mapped(schema, lambda part: self.of(part, path, depth + 1))
        reference = inner.pop("$ref", None)
        return self._followed(inner, reference, path, depth) if isinstance(reference, str) else inner

    def _followed(self, siblings: Schema, reference: str, path: tuple[str, ...], depth: int) -> Schema:
        found = self.definitions.find(reference)
        if found is None or found is False:
            self.changes.append(f"The reference {reference!r} leads nowhere in the client's schema: any value will do.")
            missing = f"a {_last(reference)}, which the client does not describe"
            return {**siblings, "description": described(siblings, missing)}
        if self._stays(reference):
            return {"$ref": reference, **siblings}
        if path.count(reference) >= MAX_REPEATS or self.nodes > MAX_NODES or depth > MAX_DEPTH:
            self.changes.append(f"{reference!r} is spelt out for a few levels only; below them any value will do.")
            return {"description": f"Again a value like the one around it ({_last(reference)})."}
        target = self.of(found if isinstance(found, dict) else {}, (*path, reference), depth + 1)
        return _joined(target, siblings)

    def _stays(self, reference: str) -> bool:
        if self.keep == "none" or not is_definition(reference):
            return False
        return self.keep == "all" or self.definitions.is_recursive(reference)


def is_definition(reference: str) -> bool:
    return reference.startswith(_DEFINITIONS)


def _joined(target: Schema, siblings: Schema) -> Schema:
    """Keywords beside a reference count as well as what it refers to; their annotations replace the target's own."""
    if siblings.keys() <= _ANNOTATIONS or not siblings.keys() & target.keys():
        return {**target, **siblings}
    return {**siblings, "allOf": [*siblings.get("allOf", ()), target]}


def _last(reference: str) -> str:
    return _unescaped(reference.rstrip("#/").rsplit("/", 1)[-1]) or "the whole"


def _unescaped(part: str) -> str:
    return unquote(part).replace("~1", "/").replace("~0", "~")
