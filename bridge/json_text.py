"""Makes texts of clients, and JSON in them, storable in Letta's databases. Pure."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
# JSON text may also have a surrogate as an escape.
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_LONGEST_PLACE = 200


def storable_text(text: str) -> str:
    """Returns the text as Letta's databases can store it: without NUL, and with U+FFFD for each lone surrogate."""
    if "\x00" not in text and _has_no_surrogate(text):
        return text
    return text.replace("\x00", "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def storable_json(text: str) -> str:
    """Returns JSON text as `storable_text` does, also where a lone surrogate is an escape; other text likewise."""
    if _ESCAPED_SURROGATE.search(text):
        with suppress(ValueError, RecursionError):
            text = json.dumps(json.loads(text), ensure_ascii=False)
    return storable_text(text)


def _has_no_surrogate(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def find_lone_surrogate(value: Any, where: str) -> str:
    """Returns the place of a text in a JSON value with half a surrogate pair, such as `where.title`; "" without one.
    Of a long place, only the beginning: there are as many places as values, and names may have any length.
    """
    waiting = [(value, where)]
    while waiting:
        item, place = waiting.pop()
        if isinstance(item, str) and _LONE_SURROGATE.search(item):
            return place
        if isinstance(item, dict):
            waiting.extend((inner, f"{place}.{name}"[:_LONGEST_PLACE]) for name, inner in item.items())
            waiting.extend((name, place) for name in item)
        elif isinstance(item, list):
            waiting.extend((inner, f"{place}[{index}]"[:_LONGEST_PLACE]) for index, inner in enumerate(item))
    return ""
