"""Turns the arguments of a model's tool call into the arguments that the client's own schema asks for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bridge.stubs.naming import LETTA_PARAMETERS
from bridge.stubs.normalise import normalise_schema
from bridge.stubs.references import Definitions
from bridge.stubs.subschemas import ALTERNATIVES, Schema, kind_of_value
from bridge.turn import ArgumentPath, Stub

_HALF_PAIR = re.compile("[\ud800-\udfff]")


class _Number(float):
    """A number of a JSON text that is written back exactly as it was read: `1.0`, `1e400`, integers of any length."""

    literal: str

    @classmethod
    def from_literal(cls, literal: str) -> _Number:
        number = cls(literal)
        number.literal = literal
        return number


class _Integer(_Number):
    """A number of a JSON text without a fraction and without an exponent."""


def restore_arguments(stub: Stub, arguments: str) -> str:
    """Returns the JSON text of a call's arguments as the client's schema asks for them; `{}` for an empty text. A text
    that is not a JSON object is returned unchanged: the client has its own way to complain to the model.
    """
    if not arguments.strip():
        return "{}"
    try:
        given = _parse_json(arguments)
        written = _write_json(_restore_object(stub, given) if isinstance(given, dict) else given)
        return arguments if written == _write_json(given) else written
    except (ValueError, RecursionError):
        return arguments


def _restore_object(stub: Stub, given: dict[str, Any]) -> dict[str, Any]:
    own = {key: value for key, value in given.items() if key not in LETTA_PARAMETERS}
    named = {stub.renamed.get(key, key): value for key, value in own.items()}
    client = normalise_schema(stub.spec.parameters or {})
    result: dict[str, Any] = _ArgumentRestorer(Definitions(client), stub.as_text).restore(named, [client], ())
    return result


@dataclass(frozen=True, slots=True)
class _ArgumentRestorer:
    """Restores one call's arguments. `as_text` are the paths of values that the model gives as JSON text."""

    definitions: Definitions
    as_text: frozenset[ArgumentPath]

    def restore(self, value: Any, schemas: list[Any], path: ArgumentPath) -> Any:
        """Returns the value as the client expects it. No schemas: any value. In `path`, "*" is any item of a list."""
        if isinstance(value, str):
            return self._read_json_text(value, schemas, path) if path in self.as_text else value
        if not isinstance(value, (dict, list)):
            return value
        possible = [part for schema in schemas for part in self._applicable_parts(schema)]
        if isinstance(value, list):
            return [
                self.restore(item, _item_schemas(possible, index), (*path, "*")) for index, item in enumerate(value)
            ]
        return dict(self._restore_members(value, possible, path))

    def _restore_members(
        self, value: Mapping[str, Any], possible: list[Schema], path: ArgumentPath
    ) -> Iterator[tuple[str, Any]]:
        """Yields an object's members, except nulls in optional properties whose schemas do not allow null."""
        for name, inner in value.items():
            schemas = list(_member_schemas(possible, name))
            declared = any(name in schema.get("properties", {}) for schema in possible)
            needed = not declared or any(name in schema.get("required", []) for schema in possible)
            restored = self.restore(inner, schemas, (*path, name))
            if restored is None and not needed and not self._takes_null(schemas):
                continue
            yield name, restored

    def _takes_null(self, schemas: list[Any]) -> bool:
        return any("null" in self.definitions.possible_kinds(schema) for schema in schemas)

    def _read_json_text(self, text: str, schemas: list[Any], path: ArgumentPath) -> Any:
        """Returns the value in JSON text. Returns the text itself if the text is not JSON, or if the schemas do not
        allow the value's type, or list the text and not the value. For strings, only `null` is read.
        """
        wanted = frozenset[str]().union(*map(self.definitions.possible_kinds, schemas or [True]))
        if wanted <= {"string", "null"}:
            return None if text.strip() == "null" else text
        try:
            value = _parse_json(text)
        except (ValueError, RecursionError):
            return text
        choices = [
            choice for schema in schemas for part in self._applicable_parts(schema) for choice in part.get("enum", ())
        ]
        if (value is not None and _kind_of_argument(value) not in wanted) or (text in choices and value not in choices):
            return text
        return value if isinstance(value, str) else self.restore(value, schemas, path)

    def _applicable_parts(self, schema: Any) -> Iterator[Schema]:
        """Yields all schemas for the same value: through `$ref`, `allOf`, `anyOf` and `oneOf`, at any depth."""
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


def _member_schemas(possible: list[Schema], name: str) -> Iterator[Any]:
    """Yields the schemas for a member: those in `properties`, or else in `additionalProperties`."""
    for schema in possible:
        if name in schema.get("properties", {}):
            yield schema["properties"][name]
        elif isinstance(schema.get("additionalProperties"), dict):
            yield schema["additionalProperties"]


def _item_schemas(possible: list[Schema], index: int) -> list[Any]:
    """Returns the schemas for an item: those in `prefixItems`, or else in `items`."""
    tuples = [schema["prefixItems"][index] for schema in possible if index < len(schema.get("prefixItems", ()))]
    return tuples or [schema["items"] for schema in possible if "items" in schema]


def _kind_of_argument(value: Any) -> str:
    if isinstance(value, _Integer):
        return "integer"
    return "number" if isinstance(value, _Number) else kind_of_value(value)


def _parse_json(text: str) -> Any:
    """Reads JSON text, and keeps the literal of each number. Refuses NaN and Infinity."""
    return json.loads(
        text, parse_int=_Integer.from_literal, parse_float=_Number.from_literal, parse_constant=_refuse_constant
    )


def _refuse_constant(constant: str) -> Any:
    raise ValueError(f"{constant} is not a JSON value")


def _write_json(value: Any) -> str:
    """Returns the JSON text of a value that `_parse_json` read, with each number as it was written there."""
    if isinstance(value, _Number):
        return value.literal
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_write_string(key)}: {_write_json(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_write_json(inner) for inner in value) + "]"
    return _write_string(value) if isinstance(value, str) else json.dumps(value)


def _write_string(text: str) -> str:
    """Escapes letters beyond ASCII only in a string with half a surrogate pair, which UTF-8 can't encode."""
    return json.dumps(text, ensure_ascii=bool(_HALF_PAIR.search(text)))
