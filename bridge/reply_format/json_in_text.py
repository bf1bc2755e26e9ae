"""Finds the one JSON value in a model's text, alone, in fenced code or within prose. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from json import JSONDecoder
from typing import Any, NoReturn

# Fenced code: the lines between two lines that begin with three backquotes.
_FENCED = re.compile(r"^[ \t]*```[^\n`]*\n(.*?)^[ \t]*```[ \t]*$", re.M | re.S)
# How some models write their thoughts before their answer.
_THOUGHTS = re.compile(r"\A\s*<(think|thinking)>.*?</\1>", re.S)
_OPEN = re.compile(r"[\[{]")
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.S)


def find_json_values(text: str) -> list[str]:
    """Returns the text of each JSON value. Thoughts before the answer do not count. If all the rest is JSON, it is the
    only value. Otherwise, fenced code that is JSON is a value, and outside of it, every object or array. A value inside
    of another, also of one that is broken or cut off, does not count: it is not what the model meant to say.
    """
    text = _THOUGHTS.sub("", text)
    whole = text.strip()
    if _is_json(whole):
        return [whole]
    fenced = [code.strip() for code in _FENCED.findall(text) if _is_json(code.strip())]
    prose = _FENCED.sub(lambda found: "\n" if _is_json(found[1].strip()) else found[0], text)
    return [*fenced, *_objects_and_arrays(prose)]


def parse_json(text: str) -> Any:
    """Returns the value. Raises ValueError for text that is not JSON, which NaN and Infinity are not."""
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise ValueError("the value is nested too deep") from None


def _is_json(text: str) -> bool:
    try:
        parse_json(text)
    except ValueError:
        return False
    return True


def _objects_and_arrays(text: str) -> Iterator[str]:
    start = 0
    while opening := _OPEN.search(text, start):
        start = opening.start()
        try:
            _, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            start = _end_of_brackets(text, start)
        else:
            yield text[start:end]
            start = end


def _end_of_brackets(text: str, start: int) -> int:
    """Returns the place after the bracket that closes the one at `start`, the end of the text if nothing closes it."""
    depth = 0
    for found in _STRING_OR_BRACKET.finditer(text, start):
        if found[0] in ("{", "["):
            depth += 1
        elif found[0] in ("}", "]"):
            depth -= 1
            if depth == 0:
                return found.end()
    return len(text)


def _refuse_constant(name: str) -> NoReturn:
    raise json.JSONDecodeError(f"JSON has no {name}", name, 0)


_DECODER = JSONDecoder(parse_constant=_refuse_constant)
