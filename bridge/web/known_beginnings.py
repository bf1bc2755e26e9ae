"""Remembers the beginnings of large bodies: clients send their whole transcript with each request, and add to it.

JSON is read from left to right. So of a body that begins with the bytes of an earlier one, up to the end of an item of
its array of messages, only the rest has to be parsed. The last message is not remembered: clients change it to ask
again.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bridge.quick_json import FieldTexts, last_item_text
from bridge.turn import JsonObject
from bridge.web.json_body import count_values, parsed_size

# The fields in which the dialects have the transcript.
TRANSCRIPTS = ("messages", "input")
# Shorter bodies are parsed in less than a millisecond.
SHORTEST = 200_000
# What all beginnings of a worker may take in memory, with what was parsed of them.
MOST_BYTES = 24_000_000
MOST_BEGINNINGS = 64
MOST_ITEMS = 20_000
_TEXTS = FieldTexts(TRANSCRIPTS)
_BLANKS = b" \t\r\n"
# So many bytes of an array are enough to look for it. Each place where it may be costs a look at the whole body.
_SEARCHED = 200
_MOST_PLACES = 4


@dataclass(frozen=True, slots=True)
class Beginning:
    """The first bytes of a body, up to the end of the last of these `items` of its field `name`.

    - `opening`: the bytes up to the bracket that opens the array.
    - `values`: how many values the items have, as `count_values` counts. `size`: what they take in memory.
    """

    content: bytes
    name: str
    opening: bytes
    items: list[Any]
    values: int
    size: int

    def without_items(self, body: bytes) -> bytes | None:
        """Returns a body that begins so, without the known items; None if it does not go on as an array does."""
        rest = body[len(self.content) :].lstrip(_BLANKS)
        if rest.startswith(b","):
            rest = rest[1:].lstrip(_BLANKS)
            return None if rest.startswith(b"]") else self.opening + rest
        return self.opening + rest if rest.startswith(b"]") else None


class KnownBeginnings:
    """The beginnings of earlier bodies. Many threads use one object."""

    def __init__(self) -> None:
        self._known: dict[int, Beginning] = {}  # by their ids, the one that was used last at the end
        self._size = 0
        self._lock = threading.Lock()

    def find(self, body: bytes) -> tuple[Beginning | None, bytes]:
        """Returns the longest known beginning of this body, and the text that is left to parse, maybe all of it."""
        if len(body) < SHORTEST:
            return None, body
        with self._lock:
            known = [one for one in self._known.values() if body.startswith(one.content)]
        longest = max(known, key=lambda one: len(one.content), default=None)
        text = longest.without_items(body) if longest else None
        return (None, body) if text is None else (longest, text)

    def add(self, body: bytes, known: Beginning | None, text: bytes, value: JsonObject) -> None:
        """Remembers the beginning of a body with this value, in the place of the `known` one. `text` is what of the
        body was left to parse.
        """
        if len(body) < SHORTEST:
            return
        if known is not None and len(value[known.name]) <= len(known.items) + 1:
            return self._keep(known, known)
        found = _find_array(text, known)
        if found is None or not 1 < len(value[found[0]]) <= MOST_ITEMS:
            return
        name, opening, array = found
        end = len(opening) + len(_text_before_last_item(array))
        values = count_values(text[len(opening) : end], small=0)
        size = parsed_size(text[len(opening) : end], values)
        if known is not None:
            values, size = known.values + values, known.size + size
        content = body[: len(body) - (len(text) - end)]
        self._keep(Beginning(content, name, opening, value[name][:-1], values, size), known)

    def _keep(self, beginning: Beginning, replaced: Beginning | None) -> None:
        """Remembers a beginning as the newest, in the place of another one. Forgets the ones used longest ago."""
        with self._lock:
            if replaced is not None and id(replaced) in self._known:
                self._size -= _size_of(self._known.pop(id(replaced)))
            if _size_of(beginning) > MOST_BYTES:
                return
            self._known[id(beginning)] = beginning
            self._size += _size_of(beginning)
            while len(self._known) > MOST_BEGINNINGS or self._size > MOST_BYTES:
                self._size -= _size_of(self._known.pop(next(iter(self._known))))


def _size_of(beginning: Beginning) -> int:
    return len(beginning.content) + beginning.size


def _find_array(text: bytes, known: Beginning | None) -> tuple[str, bytes, bytes] | None:
    """Returns the name of a JSON object's transcript, the text up to its bracket, and its own text with brackets."""
    texts = _TEXTS.find(text)  # none if there is half a surrogate pair in the text
    if known is not None:
        return (known.name, known.opening, texts[known.name]) if known.name in texts else None
    for name, array in texts.items():
        for at in _places_of(array, text) if array.startswith(b"[") else ():
            opening = text[: at + 1]
            if _is_opening(name, opening, text[at + len(array) - 1 :]):
                return name, opening, array
    return None


def _places_of(array: bytes, text: bytes) -> Iterator[int]:
    """Yields the first places where the array may be in the text."""
    at = -1
    for _ in range(_MOST_PLACES):
        at = text.find(array[:_SEARCHED], at + 1)
        if at < 0:
            return
        if text.startswith(array, at):
            yield at


def _is_opening(name: str, opening: bytes, rest: bytes) -> bool:
    """Returns whether a text put between `opening` and `rest` is the only item of the array. Otherwise this place has
    equal text in another field.
    """
    item = f'"{secrets.token_hex(8)}"'.encode()
    return _TEXTS.find(opening + item + rest).get(name) == b"[" + item + b"]"


def _text_before_last_item(array: bytes) -> bytes:
    """Returns the text between the opening bracket and the comma before the last of several items."""
    items = array[1:-1].rstrip(_BLANKS)
    return items[: -len(last_item_text(array))].rstrip(_BLANKS)[:-1].rstrip(_BLANKS)
