"""Says when a client's key has made so many stubs that a sweep is due at once."""

from __future__ import annotations

import threading
from collections import Counter


class MadeStubs:
    """Counts the stubs that this worker has put on the server for each key. `most` is how many a key may leave."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def add(self, key_name: str, count: int) -> None:
        with self._lock:
            self._counts[key_name] += count

    def are_many(self) -> bool:
        """Returns True, and counts from 0 again, if a key made more than `most` stubs since the last True."""
        with self._lock:
            many = any(count > self._most for count in self._counts.values())
            if many:
                self._counts.clear()
            return many
