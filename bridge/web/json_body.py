"""Parses the JSON of a request body, and refuses JSON that parsers understand differently."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from bridge.errors import InvalidRequest, TooDeep
from bridge.turn import JsonObject

# The most levels of nesting that are accepted.
DEEPEST = 72
# The most fields of objects and items of arrays. 512 large tools have about 100,000.
MOST_VALUES = 500_000
# The memory of a parsed value, such as an empty object in an array, which has three bytes.
_BYTES_OF_VALUE = 80


def parse_json_body(body: bytes, deepest: int = DEEPEST) -> JsonObject:
    """Returns the body as a JSON object of at most `deepest` levels.
    JSON that parsers understand differently is refused: NaN, Infinity, numbers too large for a float, and objects with
    two fields of one name, of which some parsers take the first and some the last.
    """
    if not body or body.isspace():
        raise InvalidRequest(
            "The request body is empty; send a JSON object with `model` and what to tell it.", code="invalid_json"
        )
    if _count_values(body, MOST_VALUES) > MOST_VALUES:
        raise InvalidRequest(
            f"The request body has more than {MOST_VALUES:,} fields and items, counted by commas and opening brackets;"
            " send fewer messages or tools.",
            code="too_many_values",
        )
    try:
        value = json.loads(
            body.decode("utf-8-sig"),
            parse_constant=_refuse_constant,
            parse_float=_parse_finite_number,
            object_pairs_hook=_object_from_pairs,
        )
    except RecursionError:
        raise _too_deep_error(deepest) from None
    except (ValueError, UnicodeDecodeError) as fault:
        raise InvalidRequest(f"The request body is not valid JSON: {fault}.", code="invalid_json") from None
    if not isinstance(value, dict):
        raise InvalidRequest("The request body must be a JSON object.", code="invalid_json")
    if _is_nested_deeper(value, deepest):
        raise _too_deep_error(deepest)
    return value


def parsed_size(body: bytes) -> int:
    """Returns about how many bytes of memory a JSON body takes when it is parsed. Texts take their length. A body with
    more than MOST_VALUES is never parsed.
    """
    values = _count_values(body, min(MOST_VALUES, len(body) // _BYTES_OF_VALUE))
    return max(len(body), _BYTES_OF_VALUE * min(MOST_VALUES, values))


def _count_values(body: bytes, enough: int) -> int:
    """Returns how many commas and opening brackets the JSON has, which is about one for each value. Those within
    strings are not counted, but looked for only if it matters: if there are more than `enough`. Each value has at most
    two strings, its name and itself.
    """
    found = _count_separators(body)
    if found <= enough:
        return found
    unescaped = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    if unescaped.count(b'"') > 4 * MOST_VALUES:
        return found
    return _count_separators(b"".join(unescaped.split(b'"')[::2]))


def _count_separators(body: bytes) -> int:
    return body.count(b",") + body.count(b"[") + body.count(b"{")


def _is_nested_deeper(value: Any, deepest: int) -> bool:
    """Returns whether the value has more than `deepest` levels. The value itself is the first level.
    Does not use recursion, which fails for a very deep value. All other code gets only values that were checked here.
    """
    level = [value]
    for _ in range(deepest):
        if not level:
            return False
        below: list[Any] = []
        for item in level:
            for part in item.values() if item.__class__ is dict else item:
                if part.__class__ is dict or part.__class__ is list:
                    below.append(part)
        level = below
    return bool(level)


def _too_deep_error(deepest: int) -> TooDeep:
    return TooDeep(f"The request body is nested more than {deepest} levels deep.")


def _object_from_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twin = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ValueError(f"the name {twin!r:.80} occurs twice in one object")
    return found


def _parse_finite_number(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise ValueError(f"{digits:.20} is out of range")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")
