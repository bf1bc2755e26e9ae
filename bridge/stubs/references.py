"""Handles the references (`$ref`) in a client's schema: finds their targets, and replaces references by their targets.

The targets are mostly definitions beside the properties of a schema. Letta and model providers often pass on only the
properties.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any, Literal
from urllib.parse import unquote

from bridge.stubs.checks import is_well_formed
from bridge.stubs.in_words import describe_schema
from bridge.stubs.normalise import normalise_schema
from bridge.stubs.subschemas import KINDS, Schema, find_at_path, is_schema, map_subschemas, possible_kinds

# How often a definition may contain itself when it replaces a reference, and the limits for one whole schema.
MAX_REPEATS = 2
MAX_NODES = 1000
MAX_DEPTH = 24
# How many references are followed to find the kinds of their values, and how many to places that usually hold no
# schemas.
MAX_REFERENCES = 100

_DEFINITIONS = ("#/$defs/", "#/definitions/")
_ANNOTATIONS = frozenset({"description", "title", "default", "examples", "example", "deprecated", "$comment"})


@dataclass(slots=True)
class Definitions:
    """Finds the targets of the references in one client's schema. `root` is the whole schema, normalised."""

    root: Schema
    _found: dict[str, Any] = field(default_factory=dict)
    _unexpected: int = 0
    _kinds: dict[str, frozenset[str]] = field(default_factory=dict)
    _recursive: frozenset[str] | None = None

    def lookup(self, reference: str) -> Any:
        """Returns the schema to which a reference leads.

        If the reference leads nowhere, returns True: the JSON Schema that allows any value.
        """
        found = self.find(reference)
        return True if found is None else found

    def find(self, reference: str) -> Any:
        """Returns the schema to which a reference leads; None if the reference leads nowhere.

        Follows only JSON Pointers into the client's own schema, such as `#/$defs/File`. For a reference to an anchor or
        to another document, returns None. The schema may be True or False.
        """
        if not reference.startswith("#") or reference[1:2] not in ("", "/"):
            return None
        if reference not in self._found:
            found, expected = find_at_path(self.root, map(_unescape_pointer, reference[1:].split("/")[1:]))
            if not expected and isinstance(found, dict):
                found = self._schema_from_unexpected_place(found)
            self._found[reference] = found if is_schema(found) else None
        return self._found[reference]

    def _schema_from_unexpected_place(self, found: Schema) -> Any:
        """Returns the normalised schema for an object where no schema is expected, as in OpenAPI's `components`.

        Returns None if the object is not well formed, or after `MAX_REFERENCES` such objects.
        """
        self._unexpected += 1
        return normalise_schema(found) if self._unexpected <= MAX_REFERENCES and is_well_formed(found) else None

    def possible_kinds(self, schema: Any) -> frozenset[str]:
        """Returns the JSON Schema types of the values that can satisfy a schema. Follows the schema's references."""
        return possible_kinds(schema, self._kinds_at)

    def _kinds_at(self, reference: str) -> frozenset[str]:
        """Returns the JSON Schema types of the values that can satisfy the schema at a reference.

        A reference counts as every type while its target is being read, so that circles end. From the reference number
        `MAX_REFERENCES` on, new references count as every type, too.
        """
        if reference not in self._kinds:
            self._kinds[reference] = KINDS
            if len(self._kinds) < MAX_REFERENCES:
                self._kinds[reference] = possible_kinds(self.lookup(reference), self._kinds_at)
        return self._kinds[reference]

    def is_recursive(self, reference: str) -> bool:
        """Whether the target of a reference contains the same reference again, directly or through other references.

        A reference on a way from one such circle to another counts as well.
        """
        if self._recursive is None:
            reachable = self._reachable_references(self.root)
            before_circles = _nodes_up_to_circles(reachable)
            backwards: dict[str, set[str]] = {found: set() for found in before_circles}
            for found in before_circles:
                for other in reachable[found] & before_circles:
                    backwards[other].add(found)
            self._recursive = frozenset(_nodes_up_to_circles(backwards))
        return reference in self._recursive

    def needed_definitions(self, schema: Schema) -> dict[str, Any]:
        """Returns the definitions that a schema needs: the targets of its references, and of the references in them.

        The definitions are under `$defs` or `definitions`, as in the client's schema.
        """
        result: dict[str, Any] = {}
        for reference in filter(is_definition, self._reachable_references(schema)):
            keyword, name = map(_unescape_pointer, reference[2:].split("/")[:2])
            if name in self.root.get(keyword, {}):
                result.setdefault(keyword, {})[name] = self.root[keyword][name]
        return result

    def _reachable_references(self, schema: Schema) -> dict[str, set[str]]:
        """Returns all references in a schema, in the targets of these references, and so on.

        Maps each reference to the references in its target.
        """
        result: dict[str, set[str]] = {}
        waiting = _references_in(schema)
        while waiting:
            reference = waiting.pop()
            if reference not in result:
                result[reference] = _references_in(self.find(reference))
                waiting |= result[reference]
        return result


def _references_in(schema: Any) -> set[str]:
    """Returns the references in a schema and in the schemas inside it. Does not look into their targets."""
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
    """Replaces the references (`$ref`) in one schema by copies of the schemas to which they lead.

    `keep` says which references to definitions stay: all, those whose definitions contain themselves ("recursive"), or
    none. If none stay, definitions that contain themselves are repeated to a limited depth. `changes` gets a sentence
    for each reference that loses some of its meaning. `nodes` counts the schemas that were processed, copies included,
    so that the result stays small (`MAX_NODES`).
    """

    definitions: Definitions
    keep: Literal["all", "recursive", "none"]
    changes: list[str] = field(default_factory=list)
    nodes: int = 0

    def inline(self, schema: Any, path: tuple[str, ...] = (), depth: int = 0) -> Any:
        """Returns the schema with each reference replaced by a copy of its target, unless `keep` says that it stays.

        Also replaces the references inside the copies. `path` holds the references whose copies are around this schema;
        `depth` is the number of schemas and references around it. `path` and `depth` limit the copies of a definition
        that contains itself (`MAX_REPEATS`, `MAX_DEPTH`). A schema that is True or False is returned unchanged.
        """
        if not isinstance(schema, dict):
            return schema
        self.nodes += 1
        inner = map_subschemas(schema, lambda part: self.inline(part, path, depth + 1))
        reference = inner.pop("$ref", None)
        return self._inline_reference(inner, reference, path, depth) if isinstance(reference, str) else inner

    def _inline_reference(self, siblings: Schema, reference: str, path: tuple[str, ...], depth: int) -> Schema:
        """Returns the schema that takes the place of a reference and of `siblings`, the other keywords beside it.

        `path` and `depth` are as in `inline`. If the reference leads nowhere, the result asks only for what `siblings`
        ask for. If a limit for copies is reached, the result allows any value, and `siblings` are dropped.
        """
        found = self.definitions.find(reference)
        if found is None or found is False:
            self.changes.append(f"The reference {reference!r} leads nowhere in the client's schema: any value will do.")
            missing = f"a {_last_name(reference)}, which the client does not describe"
            return {**siblings, "description": describe_schema(siblings, missing)}
        if self._is_kept(reference):
            return {"$ref": reference, **siblings}
        if path.count(reference) >= MAX_REPEATS or self.nodes > MAX_NODES or depth > MAX_DEPTH:
            self.changes.append(f"{reference!r} is spelt out for a few levels only; below them any value will do.")
            return {"description": f"Again a value like the one around it ({_last_name(reference)})."}
        target = self.inline(found if isinstance(found, dict) else {}, (*path, reference), depth + 1)
        return _join_siblings(target, siblings)

    def _is_kept(self, reference: str) -> bool:
        """Whether a reference stays in the schema, as `keep` says. Only references to definitions can stay."""
        if self.keep == "none" or not is_definition(reference):
            return False
        return self.keep == "all" or self.definitions.is_recursive(reference)


def is_definition(reference: str) -> bool:
    """Whether a reference leads to a place in `$defs` or `definitions`."""
    return reference.startswith(_DEFINITIONS)


def _join_siblings(target: Schema, siblings: Schema) -> Schema:
    """Returns one schema for the target of a reference and the keywords beside the reference.

    A value must fit both. Descriptions and other annotations beside the reference replace those of the target.
    """
    if siblings.keys() <= _ANNOTATIONS or not siblings.keys() & target.keys():
        return {**target, **siblings}
    return {**siblings, "allOf": [*siblings.get("allOf", ()), target]}


def _last_name(reference: str) -> str:
    return _unescape_pointer(reference.rstrip("#/").rsplit("/", 1)[-1]) or "the whole"


def _unescape_pointer(part: str) -> str:
    return unquote(part).replace("~1", "/").replace("~0", "~")
