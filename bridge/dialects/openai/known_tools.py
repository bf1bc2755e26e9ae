"""Remembers what was read of the tools of earlier requests, because clients send the same ones with every request.

The JSON of a request is never changed. An array that a client sends again comes as the same Python list as before, so
it is recognised without a look into it. Each entry holds its list, so that no other one can have the same id.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from bridge.dialects.openai.canonical import canonical_json, digest_text, size_in_memory
from bridge.turn import ToolSpec

MOST_LISTS = 64
# About as much as all lists may take in memory.
MOST_BYTES = 24_000_000


@dataclass(frozen=True, slots=True)
class _KnownList:
    tools: list[Any]
    specs: tuple[ToolSpec, ...]
    digest: str
    size: int


class KnownTools:
    """The tools of earlier requests. Many threads use one object."""

    def __init__(self) -> None:
        self._lists: OrderedDict[int, _KnownList] = OrderedDict()
        self._newest: dict[str, int] = {}  # by the digest of a list
        self._size = 0
        self._lock = threading.Lock()

    def specs(self, tools: list[Any]) -> tuple[ToolSpec, ...] | None:
        """Returns the tools as they were read before; None if this list was not."""
        known = self._find(tools)
        return known.specs if known else None

    def digest(self, tools: list[Any]) -> str:
        """Returns a digest of the JSON, the same in whatever order the fields of its objects are."""
        known = self._find(tools)
        return known.digest if known else digest_text(canonical_json(tools))

    def add(self, tools: list[Any], specs: tuple[ToolSpec, ...]) -> None:
        """Remembers a list that could be read, of equal ones the newest. Forgets those used longest ago."""
        text = canonical_json(tools)
        known = _KnownList(tools, specs, digest_text(text), size_in_memory(text))
        if known.size > MOST_BYTES:
            return
        with self._lock:
            for replaced in {id(tools), self._newest.get(known.digest, 0)} & self._lists.keys():
                self._remove(replaced)
            self._lists[id(tools)], self._newest[known.digest] = known, id(tools)
            self._size += known.size
            while len(self._lists) > MOST_LISTS or self._size > MOST_BYTES:
                self._remove(next(iter(self._lists)))

    def _remove(self, key: int) -> None:
        removed = self._lists.pop(key)
        del self._newest[removed.digest]
        self._size -= removed.size

    def _find(self, tools: list[Any]) -> _KnownList | None:
        with self._lock:
            known = self._lists.get(id(tools))
            if known is not None:
                self._lists.move_to_end(id(tools))
            return known
