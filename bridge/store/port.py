"""The port to a small store that threads, workers and machines share. Its data may be lost without harm.

Everything in it expires, so nothing has to be removed. Values are texts.
"""

from __future__ import annotations

from typing import Protocol


class Store(Protocol):
    """Every method is atomic, and raises StoreUnavailable if the store does not answer.

    `keep` is in seconds, counted from the last write to the key. A key holds either a value, a list or a counter.
    """

    def get(self, key: str) -> str | None:
        """Returns the value, None if the key is free."""

    def put(self, key: str, value: str, keep: float) -> None:
        """Sets the value, whatever it was before."""

    def claim(self, key: str, value: str, keep: float) -> str | None:
        """Sets the value if the key is free. Returns None if our value is there now, otherwise the other value."""

    def swap(self, key: str, old: str, new: str, keep: float) -> bool:
        """Sets the value if it is still `old`. Returns whether it was."""

    def unclaim(self, key: str, value: str) -> bool:
        """Removes the value if it is still this one. Returns whether it was."""

    def remove(self, *keys: str) -> None:
        """Removes these keys, whatever they hold."""

    def append(self, key: str, item: str, most: int, keep: float) -> None:
        """Adds an item to the end of a list. The list keeps its newest items, at most `most`."""

    def items(self, key: str) -> list[str]:
        """Returns the items of a list, the oldest first."""

    def count(self, key: str, by: int, keep: float) -> int:
        """Adds to a counter that begins at 0. Returns its new value."""

    def check(self) -> None:
        """Raises StoreUnavailable if the store can't be written. Changes nothing."""
