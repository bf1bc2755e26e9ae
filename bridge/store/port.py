"""The interface of the store: a small database of texts that all threads, workers and machines share.

Every key expires, so no key has to be removed. The data may be lost without harm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Put:
    """Sets the value of the key for `keep` seconds, and replaces an older value."""

    key: str
    value: str
    keep: float


@dataclass(frozen=True, slots=True)
class Append:
    """Adds an item to the end of the key's list, and makes the whole list expire `keep` seconds from now.
    If the list has more than `most` items then, removes the oldest.
    """

    key: str
    item: str
    most: int
    keep: float


@dataclass(frozen=True, slots=True)
class Add:
    """Adds `by` to the key's counter, which begins at 0, for `keep` seconds from now."""

    key: str
    by: int
    keep: float


@dataclass(frozen=True, slots=True)
class Remove:
    """Removes the key's value; if `value` is not None, only if the key still has this one."""

    key: str
    value: str | None = None


@dataclass(frozen=True, slots=True)
class RemoveList:
    """Removes the key's list, except if the key `unless` has a value."""

    key: str
    unless: str = ""


Change = Put | Append | Add | Remove | RemoveList
# Has changes made, now or later.
Write = Callable[[Sequence[Change]], object]


class Store(Protocol):
    """A store of values, lists and counters by their keys. A key holds only one of these three.

    Every method is atomic, and raises StoreUnavailable if the store fails. A key expires `keep` seconds after the last
    write to it. A key is free before the first write, and after it has expired or was removed.
    """

    def change(
        self, changes: Sequence[Change], needs: str = "", unchanged: Mapping[str, str | None] | None = None
    ) -> bool:
        """Makes all the changes, in this order, with one request to the store. Makes none if the key `needs` has no
        value, or if a key of `unchanged` has another value than there (None: the key is free). Returns whether it made
        them.
        """

    def get(self, key: str) -> str | None:
        """Returns the value of the key, None if the key is free."""

    def get_all(self, *keys: str) -> list[str | None]:
        """Returns the value of each key, None for a free key, with one request to the store."""

    def put(self, key: str, value: str, keep: float) -> None:
        """Makes the change `Put`."""

    def put_if_free(self, key: str, value: str, keep: float) -> str | None:
        """Sets the value for `keep` seconds if the key is free. Returns None if the value is now `value`, also if it
        was before. Otherwise returns the other value that the key has.
        """

    def replace_if_unchanged(self, key: str, old: str, new: str, keep: float) -> bool:
        """Sets the value to `new`, for `keep` seconds, if the value is still `old`. Returns whether it was set."""

    def remove(self, *keys: str) -> None:
        """Removes the keys, also if they hold lists or counters. Free keys are ignored."""

    def append(self, key: str, item: str, most: int, keep: float) -> None:
        """Makes the change `Append`."""

    def items(self, key: str) -> list[str]:
        """Returns the items of the key's list, the oldest first; an empty list if the key is free."""

    def add_to_counter(self, key: str, by: int, keep: float) -> int:
        """Adds `by` to the key's counter, which begins at 0, for `keep` seconds from now. Returns the new value."""

    def check_writable(self) -> None:
        """Raises StoreUnavailable if the store can't be written. Writes only a key of its own."""
