"""Finds the targets of references (`$ref`) in a client's schema, and replaces references by copies of their targets.

The targets are mostly definitions beside the properties. Letta and model providers often pass on the properties only.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any, Literal
from urllib.parse import unquote

from bridge.errors import InvalidRequest
from bridge.stubs.in_words import compact_json, describe_schema
from bridge.stubs.normalise import normalise_schema
from bridge.stubs.subschemas import (
    KINDS,
    Schema,
    count_values,
    find_at_path,
    is_schema,
    map_subschemas,
    possible_kinds,
)

# How often a definition may contain itself when it replaces a reference, and the limits for one whole schema.
MAX_REPEATS = 2
MAX_NODES = 1000
MAX_DEPTH = 24
# How many references are followed to find the kinds of their values.
MAX_REFERENCES = 100
# How many values are read in places that usually hold no schemas. More than most whole schemas have.
MAX_ELSEWHERE = 50_000
# How many schemas may be around a reference that is followed for that. Each takes up to two of Python's 1,000 calls.
MAX_LEVELS = 150

# What a name may not have in a reference.
_ESCAPES = str.maketrans({"~": "~0", "/": "~1", "%": "%25"})
_DEFINITIONS = ("#/$defs/", "#/definitions/")
_ANNOTATIONS = frozenset({"description", "title", "default", "examples", "deprecated"})
# Keywords whose meaning depends on the others of their group in the same schema.
_GROUPS = (
    frozenset({"properties", "patternProperties", "additionalProperties"}),
    frozenset({"prefixItems", "items"}),
    frozenset({"if", "then", "else"}),
    frozenset({"contains", "minContains", "maxContains"}),
)
_DEPENDENT_ON_ALL = frozenset({"unevaluatedProperties", "unevaluatedItems"})


@dataclass(slots=True)
class Definitions:
    """Finds the targets of the references in one client's schema. `root` is the whole schema, normalised; `sent` is as
    the client sent it, with all places to which references may lead. `read_elsewhere` counts the values that were read
    in places that usually hold no schemas.
    """

    root: Schema
    sent: Any
    read_elsewhere: int = 0
    _spellings: dict[str, str] = field(default_factory=dict)
    _found: dict[str, Any] = field(default_factory=dict)
    _elsewhere: set[str] = field(default_factory=set)
    _kinds: dict[str, frozenset[str]] = field(default_factory=dict)
    _recursive: frozenset[str] | None = None
    _sizes: dict[str, tuple[int, set[str]]] = field(default_factory=dict)

    def lookup(self, reference: str) -> Any:
        """Returns the target of a reference; True, the schema that allows any value, if there is no target."""
        found = self.find(reference)
        return True if found is None else found

    def find(self, reference: str) -> Any:
        """Returns the schema (also True or False) at a JSON Pointer into the client's schema, such as `#/$defs/File`.
        Returns None if the pointer leads nowhere, and for references to anchors and to other documents.
        """
        if not _is_pointer(reference):
            return None
        reference = self.spelling(reference)
        if reference not in self._found:
            path = [_unescape_pointer(part) for part in reference[1:].split("/")[1:]]
            found, expected = find_at_path(self.root, path)
            if not expected:
                found = self._schema_from_unexpected_place(reference, path)
            self._found[reference] = found if is_schema(found) else None
        return self._found[reference]

    def spelling(self, reference: str) -> str:
        """Returns a reference in the one spelling by which it is known here: each letter may also be a percent code."""
        if reference not in self._spellings:
            parts = map(_unescape_pointer, reference.split("/")) if _is_pointer(reference) else [reference]
            self._spellings[reference] = "/".join(part.translate(_ESCAPES) for part in parts)
        return self._spellings[reference]

    def read_all(self) -> None:
        """Finds the targets of all references in the schema, in their targets, and so on."""
        self._reachable_references(self.root)

    def _schema_from_unexpected_place(self, reference: str, path: list[str]) -> Any:
        """Returns a schema, normalised, from OpenAPI's `components`, say, or from a keyword of an older draft. None if
        malformed, or after `MAX_ELSEWHERE` values: places can be inside one another.
        """
        found, _ = find_at_path(self.sent, path)
        if not is_schema(found) or self.read_elsewhere > MAX_ELSEWHERE:
            return None
        self._elsewhere.add(reference)
        self.read_elsewhere += count_values(found)
        with suppress(InvalidRequest):
            return normalise_schema(found).schema
        return None

    def is_definition(self, reference: str) -> bool:
        """Whether a reference leads to one of the definitions that are sent with the normalised schema."""
        return reference.startswith(_DEFINITIONS) and self.spelling(reference) not in self._elsewhere

    def possible_kinds(self, schema: Any) -> frozenset[str]:
        """Returns the JSON Schema types of the values that can satisfy a schema, following its references."""
        return possible_kinds(schema, self._kinds_at)

    def _kinds_at(self, reference: str, level: int) -> frozenset[str]:
        """Returns the types at a reference; all types while the target is being read, so that circles end."""
        reference = self.spelling(reference)
        if reference not in self._kinds:
            self._kinds[reference] = KINDS
            if len(self._kinds) < MAX_REFERENCES and level < MAX_LEVELS:
                self._kinds[reference] = possible_kinds(self.lookup(reference), self._kinds_at, level)
        return self._kinds[reference]

    def is_recursive(self, reference: str) -> bool:
        """Whether the target contains the reference again, or the reference leads from one such circle to another."""
        if self._recursive is None:
            reachable = self._reachable_references(self.root)
            before_circles = _nodes_up_to_circles(reachable)
            backwards: dict[str, set[str]] = {found: set() for found in before_circles}
            for found in before_circles:
                for other in reachable[found] & before_circles:
                    backwards[other].add(found)
            self._recursive = frozenset(_nodes_up_to_circles(backwards))
        return self.spelling(reference) in self._recursive

    def quote(self, schema: Schema, most: int) -> str:
        """Returns a schema as JSON, with all definitions to which its references lead, under `$defs` or `definitions`
        as sent. Returns "" if that has more than `most` characters.
        """
        needed: dict[str, Any] = {}
        size, waiting, seen = len(compact_json(schema)), self._references_in(schema), set[str]()
        while waiting and size <= most:
            reference = waiting.pop()
            seen.add(reference)
            target_size, inner = self._size_and_references(reference)
            size += target_size
            waiting |= inner - seen
            if self.is_definition(reference):
                keyword, name = map(_unescape_pointer, reference[2:].split("/")[:2])
                if name in self.root.get(keyword, {}):
                    needed.setdefault(keyword, {})[name] = self.root[keyword][name]
        text = compact_json({**schema, **needed}) if size <= most else ""
        return text if len(text) <= most else ""

    def _size_and_references(self, reference: str) -> tuple[int, set[str]]:
        """Returns the number of characters of a reference's target as JSON, and the references in the target."""
        if reference not in self._sizes:
            found = self.find(reference)
            self._sizes[reference] = len(compact_json(found)), self._references_in(found)
        return self._sizes[reference]

    def _reachable_references(self, schema: Schema) -> dict[str, set[str]]:
        """Maps each reference in a schema, in their targets, and so on, to the references in its target."""
        result: dict[str, set[str]] = {}
        waiting = self._references_in(schema)
        while waiting:
            reference = waiting.pop()
            if reference not in result:
                result[reference] = self._references_in(self.find(reference))
                waiting |= result[reference]
        return result

    def _references_in(self, schema: Any) -> set[str]:
        return set(map(self.spelling, _references_in(schema)))


def _references_in(schema: Any) -> set[str]:
    """Returns the references in a schema and in the schemas inside it, but not those in their targets."""
    found: set[str] = set()

    def collect(inner: Any) -> Any:
        if isinstance(inner, dict):
            if isinstance(inner.get("$ref"), str):
                found.add(inner["$ref"])
            map_subschemas(inner, collect)
        return inner

    collect(schema)
    return found


def _nodes_up_to_circles(graph: dict[str, set[str]]) -> set[str]:
    """Returns the nodes of a graph that are in a circle, or from which a circle can be reached."""
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
    """Replaces the references in one schema by copies of their targets. `keep` says which references to definitions
    stay; if none stay, definitions that contain themselves ("recursive") are repeated to a limited depth. `nodes`
    counts the schemas processed, copies included, so that the result stays small.
    """

    definitions: Definitions
    keep: Literal["all", "recursive", "none"]
    changes: list[str] = field(default_factory=list)
    nodes: int = 0

    def inline(self, schema: Any, path: tuple[str, ...] = (), depth: int = 0) -> Any:
        """Returns the schema with copies for references. `path` holds the references whose copies are around it."""
        if not isinstance(schema, dict):
            return schema
        self.nodes += 1
        inner = map_subschemas(schema, lambda part: self.inline(part, path, depth + 1))
        reference = inner.pop("$ref", None)
        return self._inline_reference(inner, reference, path, depth) if isinstance(reference, str) else inner

    def _inline_reference(self, siblings: Schema, reference: str, path: tuple[str, ...], depth: int) -> Schema:
        """Returns what replaces a reference and the keywords beside it. At a limit for copies, any value is allowed."""
        found = self.definitions.find(reference)
        if found is None:
            self.changes.append(f"The reference {reference!r} leads nowhere in the client's schema: any value will do.")
            missing = f"a {_last_name(reference)}, which the client does not describe"
            return {**siblings, "description": describe_schema(siblings, missing)}
        if self._is_kept(reference):
            return {"$ref": reference, **siblings}
        spelling = self.definitions.spelling(reference)
        if path.count(spelling) >= MAX_REPEATS or self.nodes > MAX_NODES or depth > MAX_DEPTH:
            self.changes.append(f"{reference!r} is spelt out for a few levels only; below them any value will do.")
            return {"description": f"Again a value like the one around it ({_last_name(reference)})."}
        if isinstance(found, bool):
            found = normalise_schema(found).schema
        target = self.inline(found, (*path, spelling), depth + 1)
        return _join_siblings(target, siblings)

    def _is_kept(self, reference: str) -> bool:
        if self.keep == "none" or not self.definitions.is_definition(reference):
            return False
        return self.keep == "all" or self.definitions.is_recursive(reference)


def _join_siblings(target: Schema, siblings: Schema) -> Schema:
    """Joins a reference's target and the keywords beside the reference, whose descriptions and annotations win."""
    if siblings.keys() <= _ANNOTATIONS or _can_stand_together(target, siblings):
        return {**target, **siblings}
    return {**siblings, "allOf": [*siblings.get("allOf", ()), target]}


def _can_stand_together(target: Schema, siblings: Schema) -> bool:
    """Whether the keywords of two schemas mean the same in one schema."""
    return (
        not siblings.keys() & target.keys()
        and not target.keys() & _DEPENDENT_ON_ALL
        and not any(siblings.keys() & group and target.keys() & group for group in _GROUPS)
    )


def _is_pointer(reference: str) -> bool:
    return reference.startswith("#") and reference[1:2] in ("", "/")


def _last_name(reference: str) -> str:
    return _unescape_pointer(reference.rstrip("#/").rsplit("/", 1)[-1]) or "the whole"


def _unescape_pointer(part: str) -> str:
    return unquote(part).replace("~1", "/").replace("~0", "~")
