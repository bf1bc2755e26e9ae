"""Compares a tool as the client sent it with the tool as Letta has it, line by line. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any, Literal

# Lines of one side. Of longer texts no comparison is made: difflib needs seconds for some of them.
MOST_LINES = 3000


@dataclass(frozen=True, slots=True)
class LinePair:
    """A line of each side; None on the side that has no such line."""

    kind: Literal["same", "differs"]
    sent: str | None
    given: str | None


def compare_tools(sent: Any, given: Any) -> list[LinePair] | None:
    """Returns the lines of two JSON values beside each other; None if they are too long. The order of an object's
    fields is no difference: those of `given` follow the order of `sent`.
    """
    left, right = _lines(sent), _lines(_in_order_of(sent, given))
    if max(len(left), len(right)) > MOST_LINES:
        return None
    return list(_pairs(left, right))


def _lines(value: Any) -> list[str]:
    return json.dumps(value, indent=2, ensure_ascii=False).split("\n")


def _in_order_of(model: Any, value: Any) -> Any:
    """Returns `value` with the fields of its objects in the order that they have in `model`, others after them."""
    if isinstance(model, dict) and isinstance(value, dict):
        names = dict.fromkeys([*(name for name in model if name in value), *value])
        return {name: _in_order_of(model.get(name), value[name]) for name in names}
    if isinstance(model, list) and isinstance(value, list):
        return [_in_order_of(one, other) for one, other in zip(model, value, strict=False)] + value[len(model) :]
    return value


def _pairs(left: Sequence[str], right: Sequence[str]) -> Iterator[LinePair]:
    """Yields all lines. A comma at the end of a line, which depends on the next line, is no difference."""
    matcher = SequenceMatcher(None, [line.rstrip(",") for line in left], [line.rstrip(",") for line in right])
    for tag, begin, end, other_begin, other_end in matcher.get_opcodes():
        lines, others = left[begin:end], right[other_begin:other_end]
        if tag == "equal":
            yield from (LinePair("same", line, other) for line, other in zip(lines, others, strict=True))
        else:
            yield from (LinePair("differs", line, other) for line, other in zip_longest(lines, others))
