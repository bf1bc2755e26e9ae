"""What threads, workers and dynos know in common: the port to a small store that may be lost without harm.

Everything in it expires, so nothing has to be cleared away. Values are texts.
"""

from __future__ import annotations

from typing import Protocol


class Store(Protocol):
    """Every method is atomic, and raises StoreUnavailable when the store can't be asked.

    `keep` is in seconds, counted anew with every write to the key. A key holds either a value, a list or a counter.
    """

    def get(self, key: str) -> str | None:
        """The value, None when there is none or no more."""

    def put(self, key: str, value: str, keep: float) -> None:
        """Set the value, whatever there was."""

    def claim(self, key: str, value: str, keep: float) -> str | None:
        """Set the value if there is none: None when it is this one now, else the value that is there."""

    def swap(self, key: str, old: str, new: str, keep: float) -> bool:
        """Set the value if it is still `old`; whether it was."""

    def unclaim(self, key: str, value: str) -> bool:
        """Forget the value if it is still this one; whether it was."""

    def remove(self, *keys: str) -> None:
        """Forget these keys, whatever they hold."""

    def append(self, key: str, item: str, most: int, keep: float) -> None:
        """Add to the end of a list, which loses its oldest items beyond `most`."""

    def items(self, key: str) -> list[str]:
        """The list, oldest first."""

    def count(self, key: str, by: int, keep: float) -> int:
        """Add to a counter that begins at 0; what it is now."""

    def check(self) -> None:
        """Raise what keeps the store from being written; nothing changes."""
