"""Turns the arguments of a model's tool call into the arguments that the client's own schema asks for."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Self

from bridge.stubs.naming import LETTA_PARAMETERS
from bridge.stubs.normalise import normalise_schema
from bridge.stubs.references import Definitions
from bridge.stubs.subschemas import KINDS, kind_of_value
from bridge.stubs.unnamed import spread_unnamed_arguments
from bridge.stubs.value_schemas import SchemaFinder, TooMuchWork, ValueSchemas
from bridge.turn import ArgumentPath, Stub, ToolSpec

log = logging.getLogger(__name__)

# How many digits a number with an exponent may have as an integer.
_MAX_DIGITS = 300
_HALF_PAIR = re.compile("[\ud800-\udfff]")


class _Number(float):
    """A number of a JSON text that is written back exactly as it was read: `1.0`, `1e400`, integers of any length."""

    literal: str

    @classmethod
    def from_literal(cls, literal: str) -> Self:
        number = cls(literal)
        number.literal = literal
        return number


class _Integer(_Number):
    """A number of a JSON text without a fraction and without an exponent."""


def restore_arguments(stub: Stub, arguments: str) -> str:
    """Returns the JSON text of a call's arguments as the client's schema asks for them; `{}` for an empty text. A text
    that is not a JSON object is returned unchanged: the client has its own way to complain to the model.
    """

    def restore(given: dict[str, Any]) -> dict[str, Any]:
        named = {stub.renamed.get(key, key): value for key, value in _without_letta_parameters(given).items()}
        if stub.unnamed in named:
            named = spread_unnamed_arguments(named, stub.unnamed, _parse_json)
        return _restore_values(stub.spec, named, _ArgumentRestorer(_null_words(stub), _optional_names(stub)))

    return _change_object(arguments, restore) if arguments.strip() else "{}"


def member_text(arguments: str, name: str) -> str | None:
    """Returns the JSON text of one argument, with its numbers as they were written; "" if it is missing. None if the
    arguments are no JSON object, or it is nested too deep.
    """
    try:
        given = _parse_json(arguments)
        if not isinstance(given, dict):
            return None
        return _write_json(given[name]) if name in given else ""
    except (ValueError, RecursionError):
        return None


def text_without(arguments: str, name: str) -> str | None:
    """Returns the JSON text of the arguments without this one, with their numbers as they were written; None if they
    are no JSON object, or nested too deep.
    """
    try:
        given = _parse_json(arguments)
        if not isinstance(given, dict):
            return None
        return _write_json({key: value for key, value in given.items() if key != name})
    except (ValueError, RecursionError):
        return None


def remove_letta_arguments(arguments: str) -> str:
    """Returns the JSON text of a call's arguments without those that Letta itself asks the model for."""
    return _change_object(arguments, _without_letta_parameters)


def _without_letta_parameters(given: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in given.items() if key not in LETTA_PARAMETERS}


def remove_absent_arguments(spec: ToolSpec, arguments: str) -> str:
    """Returns the JSON text of arguments that a model gave for the client's schema itself, without the nulls that mean
    that an optional value is absent.
    """
    return _change_object(arguments, lambda given: _restore_values(spec, given, _ArgumentRestorer({})))


def _change_object(text: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> str:
    """Returns the JSON text of an object with a change; the text itself without a change, or if it is not an object."""
    try:
        given = _parse_json(text)
        if not isinstance(given, dict):
            return text
        written = _write_json(change(given))
        return text if written == _write_json(given) else written
    except (ValueError, RecursionError):
        return text


def _restore_values(spec: ToolSpec, arguments: dict[str, Any], restorer: _ArgumentRestorer) -> dict[str, Any]:
    """Returns the arguments with values as the client expects them; as they are if that takes too much work."""
    sent = spec.parameters or {}
    client = normalise_schema(sent).schema
    finder = SchemaFinder(Definitions(client, sent))
    try:
        result: dict[str, Any] = restorer.restore(arguments, finder.find([client]), ())
        return result
    except (TooMuchWork, RecursionError):
        fields = {"tool": spec.name, "schemas": finder.work}
        log.warning("a call's arguments are given as the agent wrote them: too much work", extra={"fields": fields})
        return arguments


def _null_words(stub: Stub) -> dict[ArgumentPath, bool]:
    """Maps the path of each value given as JSON text to whether the model can say null only by the word: the schema
    that it sees asks for a string there, and does not allow null.
    """
    names = {client: server for server, client in stub.renamed.items()}
    found = {}
    for path in stub.as_text - {(stub.unnamed,)}:
        shown = stub.json_schema["parameters"]["properties"][names.get(path[0], path[0])]
        for name in path[1:]:
            shown = shown["items"] if shown["type"] == "array" else shown["properties"][name]
        found[path] = shown["type"] == "string"
    return found


def _optional_names(stub: Stub) -> frozenset[str]:
    """Returns the client's names of the arguments that the model was told it may leave out."""
    offered = stub.json_schema["parameters"]
    return frozenset(stub.renamed.get(name, name) for name in offered["properties"].keys() - set(offered["required"]))


@dataclass(frozen=True, slots=True)
class _ArgumentRestorer:
    """Restores one call's arguments. `null_words` has the paths of values that the model gives as JSON text. `optional`
    are the arguments that the model may leave out, None if it read that in the client's own schema: of alternatives at
    the top, each may require another one.
    """

    null_words: Mapping[ArgumentPath, bool]
    optional: frozenset[str] | None = None

    def restore(self, value: Any, schemas: ValueSchemas, path: ArgumentPath, optional: bool = False) -> Any:
        """Returns the value as the client expects it. In `path`, "*" is any item of a list. `optional`: null would
        leave the value out.
        """
        if isinstance(value, str):
            return self._read_text(value, schemas, path, optional) if path in self.null_words else value
        if isinstance(value, list):
            return [self.restore(item, schemas.item(place), (*path, "*")) for place, item in enumerate(value)]
        return dict(self._restore_members(value, schemas, path)) if isinstance(value, dict) else value

    def _restore_members(
        self, value: Mapping[str, Any], schemas: ValueSchemas, path: ArgumentPath
    ) -> Iterator[tuple[str, Any]]:
        """Yields an object's members, except nulls in optional properties whose schemas do not allow null."""
        for name, inner in value.items():
            member, place = schemas.member(name), (*path, name)
            optional = (inner is None or place in self.null_words) and self._is_optional(name, schemas, path)
            restored = self.restore(inner, member, place, optional)
            if restored is not None or not optional or "null" in member.kinds:
                yield name, restored

    def _is_optional(self, name: str, schemas: ValueSchemas, path: ArgumentPath) -> bool:
        return schemas.is_optional(name) if path or self.optional is None else name in self.optional

    def _read_text(self, text: str, schemas: ValueSchemas, path: ArgumentPath, optional: bool) -> Any:
        """Returns the value in JSON text. Returns the text itself if the text is not JSON, or if the schemas do not
        allow the value's type, or list the text and not the value.
        """
        try:
            value = _parse_json(text)
        except (ValueError, RecursionError):
            return text
        kinds, only_null = schemas.kinds, self.null_words[path]
        if value is None:
            is_read = only_null or kinds == KINDS or not schemas.allows(text, "string")
            return None if is_read and (optional or "null" in kinds) else text
        if kinds <= {"string", "null"}:
            return value if only_null and _is_quoted_null(text, value) else text
        if "number" not in kinds and isinstance(value, _Number):
            value = _as_integer(value)
        kind = _kind_of_argument(value)
        if kind not in kinds or (schemas.allows(text, "string") and not schemas.allows(value, kind)):
            return text
        return value if isinstance(value, str) else self.restore(value, schemas, path)


def _is_quoted_null(text: str, value: Any) -> bool:
    """Whether a JSON text is the word null in quotes. With more quotes, it means the word with one pair less."""
    return isinstance(value, str) and value.strip(' \t\r\n"\\') == "null" and _write_string(value) == text


def _as_integer(number: _Number) -> _Number:
    """Returns a number such as 3.0 or 3e2 as an integer; unchanged if it is not whole, or has too many digits."""
    try:
        exact = Decimal(number.literal)
        whole = exact.adjusted() < _MAX_DIGITS and exact == exact.to_integral_value()
    except ArithmeticError:
        return number
    return _Integer.from_literal(str(int(exact))) if whole else number


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
