"""Checks that a tool's parameters are a usable JSON Schema: Letta takes a malformed one, and fails at every message."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any

from bridge.errors import InvalidRequest, TooDeep
from bridge.stubs.normalise import Normalised, normalise_schema

# Letta's databases can't keep NUL and halves of surrogate pairs.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class SchemaLimits:
    """Limits for nested arrays and objects, and for characters of the client's schema and of the one that Letta gets.
    The latter may repeat a definition at each reference.
    """

    depth: int = 64
    size: int = 256 * 1024
    converted_size: int = 1024 * 1024


def schema_limits(depth: int, size: int) -> SchemaLimits:
    """Returns the limits that the operator allows. Letta's schema may be four times as large as the client's."""
    return SchemaLimits(depth, size, 4 * size)


def check_schema(parameters: Any, where: str, limits: SchemaLimits) -> Normalised:
    """Returns a schema normalised; refuses one that is unusable or beyond the limits. None and `{}` are valid: a tool
    without parameters.
    """
    _check_json(parameters, where, limits)
    size = len(json.dumps(parameters, ensure_ascii=False))
    if size > limits.size:
        _refuse_size(where, f"has {size} characters of JSON; {limits.size} are allowed")
    if parameters is not None and not isinstance(parameters, dict):
        _refuse_schema(where, "must be an object (a JSON Schema)")
    return normalise_schema(parameters or {}, where)


def check_converted_size(schema: dict[str, Any], where: str, limits: SchemaLimits) -> None:
    """Refuses a schema that is too large in the form that Letta would get."""
    size = len(json.dumps(schema, ensure_ascii=False))
    if size > limits.converted_size:
        _refuse_size(
            where,
            f"comes to {size} characters of JSON with its references spelt out; {limits.converted_size} are allowed",
        )


def remove_unstorable(text: str) -> str:
    """Returns the text without NUL, and with U+FFFD for each half of a surrogate pair."""
    return _UNSTORABLE.sub(lambda found: "" if found[0] == "\x00" else "\ufffd", text)


def _check_json(value: Any, where: str, limits: SchemaLimits) -> None:
    """Refuses what is nested too deep or can't be stored. Does not recurse, because the depth is not known yet."""
    waiting = [(value, 0)]
    while waiting:
        item, depth = waiting.pop()
        if depth > limits.depth:
            raise TooDeep(f"`{where}` is nested more than {limits.depth} levels deep.", param=where)
        if isinstance(item, dict):
            waiting.extend((inner, depth + 1) for inner in item.values())
            waiting.extend((key, depth) for key in item)
        elif isinstance(item, list):
            waiting.extend((inner, depth + 1) for inner in item)
        else:
            _check_scalar(item, where)


def _check_scalar(value: Any, where: str) -> None:
    if isinstance(value, str) and _UNSTORABLE.search(value):
        _refuse_schema(where, f"holds text with NUL or half a surrogate pair, which can't be stored: {value!r:.80}")
    if isinstance(value, float) and not math.isfinite(value):
        _refuse_schema(where, "holds a number that JSON does not have (NaN or Infinity)")
    if not isinstance(value, (str, int, float, bool, type(None))):
        _refuse_schema(where, f"holds a {type(value).__name__}, which is no JSON value")


def _refuse_schema(where: str, fault: str, code: str | None = None) -> None:
    raise InvalidRequest(f"`{where}` {fault}.", param=where, code=code)


def _refuse_size(where: str, fault: str) -> None:
    _refuse_schema(where, fault, "tool_too_large")
