"""Remembers the catalogues of earlier requests, because a client sends the same tools with every request.

A list of tools is known by its identity, which no other object has while the catalogue holds it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

from bridge.catalogue.catalogue import Catalogue
from bridge.turn import ToolSpec

MAX_LISTS = 8
# About how many bytes of memory all indexes may take.
MAX_SIZE = 16_000_000


class KnownCatalogues:
    """The catalogues that were used last. Many threads use one object."""

    def __init__(self) -> None:
        self._catalogues: OrderedDict[int, Catalogue] = OrderedDict()
        self._lock = threading.Lock()

    def catalogue(self, specs: tuple[ToolSpec, ...], *, comes_again: bool = True) -> Catalogue:
        """Returns the catalogue of these tools: the same one again while it is remembered. It is not if the tools never
        come as this very list again.
        """
        with self._lock:
            known = self._catalogues.get(id(specs))
            if known is None and not comes_again:
                return Catalogue(specs)
            if known is None:
                known = self._catalogues[id(specs)] = Catalogue(specs)
            self._catalogues.move_to_end(id(specs))
            self._forget_oldest()
            return known

    def _forget_oldest(self) -> None:
        """Forgets lists that are too large, and then the oldest until the others are small enough. A size is known
        better after a search, so all are counted again each time.
        """
        sizes = {key: known.size for key, known in self._catalogues.items()}
        for key in [key for key, size in sizes.items() if size > MAX_SIZE]:
            del self._catalogues[key], sizes[key]
        while len(sizes) > MAX_LISTS or sum(sizes.values()) > MAX_SIZE:
            key, _ = self._catalogues.popitem(last=False)
            del sizes[key]
