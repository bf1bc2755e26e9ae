"""The interface of the store: a small database of texts that all threads, workers and machines share.

Every key expires, so no key has to be removed. The data may be lost without harm.
"""

from __future__ import annotations

from typing import Protocol


class Store(Protocol):
    """A store of values, lists and counters by their keys. A key holds only one of these three.

    Every method is atomic, and raises StoreUnavailable if the store fails. A key expires `keep` seconds after the last
    write to it. A key is free before the first write, and after it has expired or was removed.
    """

    def get(self, key: str) -> str | None:
        """Returns the value of the key, None if the key is free."""

    def get_all(self, *keys: str) -> list[str | None]:
        """Returns the value of each key, None for a free key, with one request to the store."""

    def put(self, key: str, value: str, keep: float) -> None:
        """Sets the value of the key for `keep` seconds, and replaces an older value."""

    def put_if_free(self, key: str, value: str, keep: float) -> str | None:
        """Sets the value for `keep` seconds if the key is free. Returns None if the value is now `value`, also if it
        was before. Otherwise returns the other value that the key has.
        """

    def replace_if_unchanged(self, key: str, old: str, new: str, keep: float) -> bool:
        """Sets the value to `new`, for `keep` seconds, if the value is still `old`. Returns whether it was set."""

    def remove_if_unchanged(self, key: str, value: str) -> bool:
        """Removes the key if its value is still `value`. Returns whether the key was removed."""

    def remove(self, *keys: str) -> None:
        """Removes the keys, also if they hold lists or counters. Free keys are ignored."""

    def append(self, key: str, item: str, most: int, keep: float) -> None:
        """Adds an item to the end of the key's list, and makes the whole list expire `keep` seconds from now.
        If the list has more than `most` items then, removes the oldest.
        """

    def items(self, key: str) -> list[str]:
        """Returns the items of the key's list, the oldest first; an empty list if the key is free."""

    def add_to_counter(self, key: str, by: int, keep: float) -> int:
        """Adds `by` to the key's counter, which begins at 0, for `keep` seconds from now. Returns the new value."""

    def check_writable(self) -> None:
        """Raises StoreUnavailable if the store can't be written. Writes only a key of its own."""
