"""`$ref`: followed, unrolled, or replaced where it leads nowhere.

The definitions a schema refers to stand beside its properties, and most of what lies between the bridge and a model
keeps the properties alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import unquote

from bridge.stubs.subschemas import Schema, mapped
from bridge.stubs.words import described

# How often a definition may contain itself when it is unrolled, and how much unrolling may yield in all.
UNROLLED = 2
MAX_NODES = 1000
MAX_DEPTH = 24

_DEFINITIONS = ("#/$defs/", "#/definitions/")
_ANNOTATIONS = frozenset({"description", "title", "default", "examples", "example", "deprecated", "$comment"})


@dataclass(frozen=True, slots=True)
class Definitions:
    """What the references of one client's schema can lead to."""

    root: Schema

    def lookup(self, reference: str) -> Any:
        """The schema referred to; True (anything goes) for one that is not there."""
        found = self.find(reference)
        return True if found is None else found

    def find(self, reference: str) -> Any:
        """By JSON Pointer from the root; addresses of other documents lead nowhere."""
        if not reference.startswith("#") or reference[1:2] not in ("", "/"):
            return None
        here: Any = self.root
        for part in reference[1:].split("/")[1:]:
            name = _unescaped(part)
            if isinstance(here, dict) and name in here:
                here = here[name]
            elif isinstance(here, list) and name.isdigit() and int(name) < len(here):
                here = here[int(name)]
            else:
                return None
        return here if isinstance(here, (dict, bool)) else None

    def is_recursive(self, reference: str) -> bool:
        """Whether following it can lead to it again."""
        reached: set[str] = set()
        waiting = self._mentioned(self.find(reference))
        while waiting:
            found = waiting.pop()
            if found == reference:
                return True
            if found not in reached:
                reached.add(found)
                waiting |= self._mentioned(self.find(found))
        return False

    def needed(self, schema: Schema) -> dict[str, Any]:
        """The definitions that the schema's references need, under the keywords they stand under."""
        result: dict[str, Any] = {}
        waiting, seen = self._mentioned(schema), set[str]()
        while waiting:
            reference = waiting.pop()
            if reference in seen or not is_definition(reference):
                continue
            seen.add(reference)
            keyword, name = map(_unescaped, reference[2:].split("/")[:2])
            if name in self.root.get(keyword, {}):
                result.setdefault(keyword, {})[name] = self.root[keyword][name]
                waiting |= self._mentioned(self.root[keyword][name])
        return {key: dict(sorted(result[key].items())) for key in sorted(result)}

    def _mentioned(self, schema: Any) -> set[str]:
        found: set[str] = set()

        def collect(inner: Any) -> Any:
            if isinstance(inner, dict):
                if isinstance(inner.get("$ref"), str):
                    found.add(inner["$ref"])
                mapped(inner, collect)
            return inner

        collect(schema)
        return found


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
