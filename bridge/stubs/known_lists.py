"""Remembers whole lists of tools, because a client sends the same tools with every request.

A list is known by its identity, which no other object has while it is remembered: so nobody has to look into the tools.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from bridge.turn import SchemaForm, Stub, StubKind, ToolSpec

MAX_LISTS = 64
# About how many bytes of memory all lists may take.
MAX_SIZE = 24_000_000


@dataclass(slots=True)
class KnownList:
    """The tools of a request, as they were `sent` last and after they were `checked`, with their stubs."""

    sent: tuple[ToolSpec, ...]
    checked: tuple[ToolSpec, ...]
    size: int = 0
    stubs: dict[tuple[SchemaForm, StubKind], tuple[Stub, ...]] = field(default_factory=dict)

    @property
    def key(self) -> tuple[int, ...]:
        """Identifies the tools. A tool that was checked before is the same object again."""
        return tuple(map(id, self.checked))


class KnownLists:
    """The lists of earlier requests, each once, however often it was sent. Many threads use one object."""

    def __init__(self) -> None:
        self._lists: OrderedDict[tuple[int, ...], KnownList] = OrderedDict()
        self._by_identity: dict[int, KnownList] = {}
        self._size = 0
        self._lock = threading.Lock()

    def find(self, specs: Sequence[ToolSpec]) -> KnownList | None:
        """Returns what is known of tools as they were sent, or after they were checked."""
        with self._lock:
            known = self._by_identity.get(id(specs))
            if known is not None:
                self._lists.move_to_end(known.key)
            return known

    def add(self, sent: tuple[ToolSpec, ...], checked: tuple[ToolSpec, ...], size: int) -> KnownList:
        """Remembers a list, and returns what is known of it already. Forgets those not used for the longest time."""
        added = KnownList(sent, checked)
        with self._lock:
            known = self._lists.get(added.key)
            if known is None:
                self._put(added, size)
                return added
            self._forget_identity(known, known.sent)
            known.sent = sent
            self._by_identity |= {id(sent): known, id(known.checked): known}
            self._lists.move_to_end(known.key)
            return known

    def resize(self, known: KnownList, size: int) -> None:
        """Notes what a list takes in memory now, if it is still remembered."""
        with self._lock:
            if self._lists.get(known.key) is known:
                self._remove(known)
                self._put(known, size)

    def _put(self, known: KnownList, size: int) -> None:
        if size > MAX_SIZE:
            return
        known.size = size
        self._lists[known.key] = known
        self._by_identity |= {id(known.sent): known, id(known.checked): known}
        self._size += size
        while len(self._lists) > MAX_LISTS or self._size > MAX_SIZE:
            self._remove(next(iter(self._lists.values())))

    def _remove(self, known: KnownList) -> None:
        del self._lists[known.key]
        for specs in (known.sent, known.checked):
            self._forget_identity(known, specs)
        self._size -= known.size

    def _forget_identity(self, known: KnownList, specs: tuple[ToolSpec, ...]) -> None:
        """Forgets that these specs are of this list. They are of another one if two requests brought it at once."""
        if self._by_identity.get(id(specs)) is known:
            del self._by_identity[id(specs)]
