"""`$ref`: followed, unrolled, or replaced where it leads nowhere.

The definitions a schema refers to stand beside its properties, and most of what lies between the bridge and a model
keeps the properties alone.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any, Literal
from urllib.parse import unquote

from bridge.stubs.checks import is_well_formed
from bridge.stubs.in_words import described
from bridge.stubs.normalise import tidied
from bridge.stubs.subschemas import KINDS, Schema, found_at, is_schema, kinds, mapped

# How often a definition may contain itself when it is unrolled, and how much unrolling may yield in all.
UNROLLED = 2
MAX_NODES = 1000
MAX_DEPTH = 24
# How many references are followed to find out what kind of value they stand for, and to places that hold no schemas.
MAX_REFERENCES = 100

_DEFINITIONS = ("#/$defs/", "#/definitions/")
_ANNOTATIONS = frozenset({"description", "title", "default", "examples", "example", "deprecated", "$comment"})


@dataclass(slots=True)
class Definitions:
    """What the references of one client's schema can lead to."""

    root: Schema
    _found: dict[str, Any] = field(default_factory=dict)
    _strays: int = 0
    _kinds: dict[str, frozenset[str]] = field(default_factory=dict)
    _recursive: frozenset[str] | None = None

    def lookup(self, reference: str) -> Any:
        """The schema referred to; True (anything goes) for one that is not there."""
        found = self.find(reference)
        return True if found is None else found

    def find(self, reference: str) -> Any:
        """By JSON Pointer from the root; addresses of other documents lead nowhere."""
        if not reference.startswith("#") or reference[1:2] not in ("", "/"):
            return None
        if reference not in self._found:
            found, expected = found_at(self.root, map(_unescaped, reference[1:].split("/")[1:]))
            if not expected and isinstance(found, dict):
                found = self._stray(found)
            self._found[reference] = found if is_schema(found) else None
        return self._found[reference]

    def _stray(self, found: Schema) -> Any:
        """A schema where nobody looked for one, as in OpenAPI's `components`: neither checked nor tidied so far."""
        self._strays += 1
        return tidied(found) if self._strays <= MAX_REFERENCES and is_well_formed(found) else None

    def kinds(self, schema: Any) -> frozenset[str]:
        return kinds(schema, self._kinds_of)

    def _kinds_of(self, reference: str) -> frozenset[str]:
        """Found out once; on the way any kind will do, so that circles and long ways come to an end."""
        if reference not in self._kinds:
            self._kinds[reference] = KINDS
            if len(self._kinds) < MAX_REFERENCES:
                self._kinds[reference] = kinds(self.lookup(reference), self._kinds_of)
        return self._kinds[reference]

    def is_recursive(self, reference: str) -> bool:
        """Whether following it leads to it again (or lies between two that do)."""
        if self._recursive is None:
            mentioned = self._reachable(self.root)
            circular = _unsortable(mentioned)
            backwards: dict[str, set[str]] = {found: set() for found in circular}
            for found in circular:
                for other in mentioned[found] & circular:
                    backwards[other].add(found)
            self._recursive = frozenset(_unsortable(backwards))
        return reference in self._recursive

    def needed(self, schema: Schema) -> dict[str, Any]:
        """The definitions that the schema's references need, under the keywords they stand under."""
        result: dict[str, Any] = {}
        for reference in filter(is_definition, self._reachable(schema)):
            keyword, name = map(_unescaped, reference[2:].split("/")[:2])
            if name in self.root.get(keyword, {}):
                result.setdefault(keyword, {})[name] = self.root[keyword][name]
        return result

    def _reachable(self, schema: Schema) -> dict[str, set[str]]:
        """Every reference in the schema and in what they lead to, each with those in what it leads to."""
        result: dict[str, set[str]] = {}
        waiting = _mentioned(schema)
        while waiting:
            reference = waiting.pop()
            if reference not in result:
                result[reference] = _mentioned(self.find(reference))
                waiting |= result[reference]
        return result


def _mentioned(schema: Any) -> set[str]:
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
    """What no order can bring behind all that it mentions: what is part of a circle or leads into one."""
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
    """One pass over a schema in which references are replaced by what they refer to.

    `keep` says which references to definitions may stay: all, those that contain themselves, or none (what contains
    itself is then unrolled to a depth).
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
            return {**siblings, "description": _dangling(siblings, reference)}
        if self._stays(reference):
            return {"$ref": reference, **siblings}
        if path.count(reference) >= UNROLLED or self.nodes > MAX_NODES or depth > MAX_DEPTH:
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
    """A reference's neighbours count beside what it refers to; notes among them (a description) win over its own."""
    if siblings.keys() <= _ANNOTATIONS or not siblings.keys() & target.keys():
        return {**target, **siblings}
    return {**siblings, "allOf": [*siblings.get("allOf", ()), target]}


def _last(reference: str) -> str:
    return _unescaped(reference.rstrip("#/").rsplit("/", 1)[-1]) or "the whole"


def _unescaped(part: str) -> str:
    return unquote(part).replace("~1", "/").replace("~0", "~")


def _dangling(siblings: Schema, reference: str) -> str:
    return described(siblings, f"a {_last(reference)}, which the client does not describe")
