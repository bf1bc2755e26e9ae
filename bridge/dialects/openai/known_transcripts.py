"""Remembers the messages of earlier requests, because clients send their whole transcript with each request.

Only what is new in a transcript is read, and digested, again. What is remembered is found by the beginning of the
transcript, and then compared with the request, item by item: so nothing is taken for something else.
"""

from __future__ import annotations

import marshal
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate, islice
from typing import Any

from bridge.dialects.openai.canonical import canonical_json, digest_text, size_in_memory
from bridge.turn import Message

MOST_TRANSCRIPTS = 100
# In bytes, about as much as all transcripts may take in memory.
MOST_BYTES = 16_000_000
# What a message takes besides its texts, and besides the values in it that are not just texts.
_BYTES_OF_MESSAGE = 1_000
_USUAL_FIELDS = 8
# A transcript is found by so many of its items. Shorter ones are not remembered.
_FIRST = 2


@dataclass(frozen=True, slots=True)
class KnownTranscript:
    """The items of a transcript, in the client's JSON and as they were read.

    - `plain`: whether the item has only texts and nulls. `size`: what all items up to this one take in memory.
    - `digests`: a digest of the JSON of all items up to this one, the same in whatever order the fields of objects are.
    """

    items: list[Any]
    messages: Sequence[Message]
    plain: Sequence[bool]
    sizes: Sequence[int]
    digests: Sequence[str]


_NOTHING = KnownTranscript([], (), (), (), ())


class KnownTranscripts:
    """The transcripts of earlier requests. Many threads use one object."""

    def __init__(self) -> None:
        self._known: OrderedDict[int, KnownTranscript] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def read(self, items: list[Any], read: Callable[[Any, int], Message]) -> KnownTranscript:
        """Returns what `read` returns for each item and its place. `read` is not asked for items that stood at the same
        places, behind the same ones, in an earlier request.
        """
        key = hash(marshal.dumps(items[:_FIRST], 2)) if len(items) >= _FIRST else None
        with self._lock:
            known = self._known.get(key) if key is not None else None
        known = known or _NOTHING
        found = _with_more(known, _count_alike(known, items), items, read)
        if key is not None:
            self._keep(key, found)
        return found

    def _keep(self, key: int, found: KnownTranscript) -> None:
        """Remembers a transcript in the place of the one that begins so. Forgets the ones used longest ago."""
        with self._lock:
            replaced = self._known.pop(key, None)
            self._size -= replaced.sizes[-1] if replaced else 0
            if found.sizes[-1] > MOST_BYTES:
                return
            self._known[key] = found
            self._size += found.sizes[-1]
            while len(self._known) > MOST_TRANSCRIPTS or self._size > MOST_BYTES:
                _, oldest = self._known.popitem(last=False)
                self._size -= oldest.sizes[-1]


def digest_items(items: list[Any]) -> str:
    """Returns the digest that `KnownTranscript` has of these items."""
    return reduce(_digest_up_to, map(canonical_json, items), "")


def _digest_up_to(before: str, text: str) -> str:
    return digest_text(f"{before}{text}")


def _count_alike(known: KnownTranscript, items: list[Any]) -> int:
    """Returns how many items at the beginning are as they were."""
    for place, (old, new, plain) in enumerate(zip(known.items, items, known.plain, strict=False)):
        if old is not new and (old != new or not (plain or _has_same_types(old, new))):
            return place
    return min(len(known.items), len(items))


def _has_same_types(old: Any, new: Any) -> bool:
    """Returns whether equal values have the same JSON text. Python takes 1, 1.0 and True for equal."""
    return marshal.dumps(old, 2) == marshal.dumps(new, 2)


def _with_more(
    known: KnownTranscript, alike: int, items: list[Any], read: Callable[[Any, int], Message]
) -> KnownTranscript:
    """Returns the first `alike` items as they are known, and the others as `read` returns them."""
    if alike == len(items) == len(known.items):
        return known
    more = items[alike:]
    messages = [read(item, place) for place, item in enumerate(more, alike)]
    plain = [*map(_is_plain, more)]
    texts = [*map(canonical_json, more)]
    size, digest = (known.sizes[alike - 1], known.digests[alike - 1]) if alike else (0, "")
    sizes = accumulate(map(_size_of, texts, plain), initial=size)
    digests = accumulate(texts, _digest_up_to, initial=digest)
    return KnownTranscript(
        [*known.items[:alike], *more],
        [*known.messages[:alike], *messages],
        [*known.plain[:alike], *plain],
        [*known.sizes[:alike], *islice(sizes, 1, None)],
        [*known.digests[:alike], *islice(digests, 1, None)],
    )


def _is_plain(item: Any) -> bool:
    """Returns whether an item is a message with texts and nulls only, and no more fields than usual."""
    if item.__class__ is not dict or len(item) > _USUAL_FIELDS:
        return False
    return all(value is None or value.__class__ is str for value in item.values())


def _size_of(text: str, plain: bool) -> int:
    """Returns what an item with this JSON takes. Parts and pictures are there twice: as they were sent, and read."""
    return _BYTES_OF_MESSAGE + (len(text) if plain else len(text) + size_in_memory(text))
