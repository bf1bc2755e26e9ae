"""Turns the arguments that the model gave into those that the client's own schema asks for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bridge.stubs.naming import LETTA_PARAMETERS
from bridge.stubs.normalise import normalised
from bridge.stubs.references import Definitions
from bridge.stubs.subschemas import ALTERNATIVES, Schema, kind_of
from bridge.turn import ArgumentPath, Stub

_HALF_PAIR = re.compile("[\ud800-\udfff]")


class _Number(float):
    """A number that is written as it was read: `1.0`, `1e400`, integers of any length."""

    literal: str

    @classmethod
    def read(cls, literal: str) -> _Number:
        number = cls(literal)
        number.literal = literal
        return number


class _Integer(_Number):
    pass


def restore_arguments(stub: Stub, arguments: str) -> str:
    """Removes Letta's own arguments and nulls that mean "left out"; restores the client's names and values.

    Anything but a JSON object is returned unchanged: the client has its own way to complain to the model.
    """
    if not arguments.strip():
        return "{}"
    try:
        given = _parsed(arguments)
        written = _written(_restored(stub, given) if isinstance(given, dict) else given)
        return arguments if written == _written(given) else written
    except (ValueError, RecursionError):
        return arguments


def _restored(stub: Stub, given: dict[str, Any]) -> dict[str, Any]:
    own = {key: value for key, value in given.items() if key not in LETTA_PARAMETERS}
    named = {stub.renamed.get(key, key): value for key, value in own.items()}
    client = normalised(stub.spec.parameters or {})
    result: dict[str, Any] = _Restoration(Definitions(client), stub.as_text).of(named, [client], ())
    return result


@dataclass(frozen=True, slots=True)
class _Restoration:
    definitions: Definitions
    as_text: frozenset[ArgumentPath]

    def of(self, value: Any, schemas: list[Any], path: ArgumentPath) -> Any:
        """Returns the restored value; `schemas` are those of the client that may apply to it."""
        if isinstance(value, str):
            return self._read(value, schemas, path) if path in self.as_text else value
        if not isinstance(value, (dict, list)):
            return value
        possible = [part for schema in schemas for part in self._parts(schema)]
        if isinstance(value, list):
            return [self.of(item, _items(possible, index), (*path, "*")) for index, item in enumerate(value)]
        return dict(self._members(value, possible, path))

    def _members(
        self, value: Mapping[str, Any], possible: list[Schema], path: ArgumentPath
    ) -> Iterator[tuple[str, Any]]:
        for name, inner in value.items():
            schemas = list(_member(possible, name))
            declared = any(name in schema.get("properties", {}) for schema in possible)
            needed = not declared or any(name in schema.get("required", []) for schema in possible)
            restored = self.of(inner, schemas, (*path, name))
            if restored is None and not needed and not self._takes_null(schemas):
                continue
            yield name, restored

    def _takes_null(self, schemas: list[Any]) -> bool:
        return any("null" in self.definitions.kinds(schema) for schema in schemas)

    def _read(self, text: str, schemas: list[Any], path: ArgumentPath) -> Any:
        """Reads a value that was asked for as JSON text. Text that can't be meant as JSON is the value itself."""
        wanted = frozenset[str]().union(*map(self.definitions.kinds, schemas or [True]))
        if wanted <= {"string", "null"}:
            return None if text.strip() == "null" else text
        try:
            value = _parsed(text)
        except (ValueError, RecursionError):
            return text
        choices = [choice for schema in schemas for part in self._parts(schema) for choice in part.get("enum", ())]
        if (value is not None and _kind(value) not in wanted) or (text in choices and value not in choices):
            return text
        return value if isinstance(value, str) else self.of(value, schemas, path)

    def _parts(self, schema: Any) -> Iterator[Schema]:
        """Yields the schema and all of its parts: what it refers to, all of `allOf`, every alternative."""
        waiting, followed = [schema], set[str]()
        while waiting:
            part = waiting.pop()
            if not isinstance(part, dict):
                continue
            yield part
            reference = part.get("$ref")
            if isinstance(reference, str) and reference not in followed:
                followed.add(reference)
                waiting.append(self.definitions.lookup(reference))
            for key in ("allOf", *ALTERNATIVES):
                waiting.extend(part.get(key, ()))


def _member(possible: list[Schema], name: str) -> Iterator[Any]:
    for schema in possible:
        if name in schema.get("properties", {}):
            yield schema["properties"][name]
        elif isinstance(schema.get("additionalProperties"), dict):
            yield schema["additionalProperties"]


def _items(possible: list[Schema], index: int) -> list[Any]:
    tuples = [schema["prefixItems"][index] for schema in possible if index < len(schema.get("prefixItems", ()))]
    return tuples or [schema["items"] for schema in possible if "items" in schema]


def _kind(value: Any) -> str:
    if isinstance(value, _Integer):
        return "integer"
    return "number" if isinstance(value, _Number) else kind_of(value)


def _parsed(text: str) -> Any:
    return json.loads(text, parse_int=_Integer.read, parse_float=_Number.read, parse_constant=_refuse)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not a JSON value")


def _written(value: Any) -> str:
    if isinstance(value, _Number):
        return value.literal
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_text(key)}: {_written(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_written(inner) for inner in value) + "]"
    return _text(value) if isinstance(value, str) else json.dumps(value)


def _text(text: str) -> str:
    """Escapes only text with half a surrogate pair, which could not be sent otherwise."""
    return json.dumps(text, ensure_ascii=bool(_HALF_PAIR.search(text)))
