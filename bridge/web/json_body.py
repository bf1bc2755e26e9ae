"""Parses the JSON of a request body, and refuses JSON that parsers understand differently."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any, NoReturn

from bridge.errors import InvalidRequest, TooDeep
from bridge.quick_json import FieldTexts, RememberedValues
from bridge.turn import JsonObject
from bridge.web.room import SMALL

# The most levels of nesting that are accepted.
DEEPEST = 72
# The most fields of objects and items of arrays. 512 large tools have about 100,000.
MOST_VALUES = 500_000
# Fields of requests whose arrays are remembered: clients send the same tools again and again.
REMEMBERED = ("tools", "client_tools")
# So many bytes of text are remembered by a worker. The parsed arrays take ten times as much.
MOST_REMEMBERED = 8_000_000
_REMEMBERED_TEXTS = FieldTexts(REMEMBERED)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# The memory of a parsed value, such as an empty object in an array, which has three bytes.
_BYTES_OF_VALUE = 80


# Arrays by their texts. Everybody who reads the same text shares an array, and nobody may change it.
Arrays = RememberedValues[list[Any]]


@dataclass(frozen=True, slots=True)
class UnparsedBody:
    """The `text` of a request body that has to be parsed. The arrays in `known` were parsed before, and the text may
    have null in their places; those in `new` have these texts.
    """

    text: bytes
    known: dict[str, list[Any]] = field(default_factory=dict)
    new: dict[str, bytes] = field(default_factory=dict)


def find_known_arrays(body: bytes, arrays: Arrays) -> UnparsedBody:
    """Finds the arrays in REMEMBERED that are in `arrays`. A text is only taken out if it is a large part of the body,
    and stands there only once: so nothing else of the body can be taken for it.
    """
    known: dict[str, list[Any]] = {}
    new: dict[str, bytes] = {}
    rest = body
    for name, text in _REMEMBERED_TEXTS.find(body).items():
        found = arrays.get(text)
        if found is None:
            new[name] = text
            continue
        known[name] = found
        if len(text) * 8 > len(body) and rest.count(text) == 1:
            rest = rest.replace(text, b"null")
    return UnparsedBody(rest, known, new)


def parse_json_body(body: bytes, deepest: int = DEEPEST, arrays: Arrays | None = None) -> JsonObject:
    """Returns the body as a JSON object of at most `deepest` levels. Arrays in REMEMBERED are shared by `arrays`.
    JSON that parsers understand differently is refused: NaN, Infinity, numbers too large for a float, and objects with
    two fields of one name, of which some parsers take the first and some the last.
    """
    arrays = RememberedValues(0) if arrays is None else arrays
    unparsed = find_known_arrays(body, arrays)
    return parse_rest(unparsed, count_values(unparsed.text), deepest, arrays)


def parse_rest(unparsed: UnparsedBody, values: int, deepest: int, arrays: Arrays) -> JsonObject:
    """Returns the whole JSON object. `values`: what `count_values` says of the unparsed text."""
    if not unparsed.text or unparsed.text.isspace():
        raise InvalidRequest(
            "The request body is empty; send a JSON object with `model` and what to tell it.", code="invalid_json"
        )
    if values > MOST_VALUES:
        raise InvalidRequest(
            f"The request body has more than {MOST_VALUES:,} fields and items, counted by commas and opening brackets;"
            " send fewer messages or tools.",
            code="too_many_values",
        )
    value = _parse_object(unparsed.text, deepest)
    for name, text in unparsed.new.items():
        if isinstance(value[name], list):
            value[name] = arrays.add(text, value[name])
    return value | unparsed.known


def _parse_object(text: bytes, deepest: int) -> dict[str, Any]:
    try:
        value = _parse_carefully(text.removeprefix(_BYTE_ORDER_MARK))
    except RecursionError:
        raise _too_deep_error(deepest) from None
    except (ValueError, UnicodeDecodeError) as fault:
        raise InvalidRequest(f"The request body is not valid JSON: {fault}.", code="invalid_json") from None
    if not isinstance(value, dict):
        raise InvalidRequest("The request body must be a JSON object.", code="invalid_json")
    if _is_nested_deeper(value, deepest):
        raise _too_deep_error(deepest)
    return value


def _parse_carefully(text: bytes) -> Any:
    return json.loads(
        text.decode(),
        parse_constant=_refuse_constant,
        parse_float=_parse_finite_number,
        object_pairs_hook=_object_from_pairs,
    )


def parsed_size(body: bytes, values: int) -> int:
    """Returns about how many bytes of memory a JSON body takes when it is parsed, with so many `values`. Texts take
    their length. A body with more than MOST_VALUES is never parsed.
    """
    return max(len(body), _BYTES_OF_VALUE * min(MOST_VALUES, values))


def count_values(body: bytes, small: int = SMALL) -> int:
    """Returns how many commas and opening brackets the JSON has, which is about one for each value. Those within
    strings count only in a body of at most `small` bytes, or where they make no difference. Each value has at most two
    strings, its name and itself.
    """
    found = _count_separators(body)
    if len(body) <= small or found <= min(MOST_VALUES, len(body) // _BYTES_OF_VALUE):
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
