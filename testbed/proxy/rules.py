"""Rules that say to which calls a fault applies."""

import re
import threading
from collections.abc import Callable
from functools import cache
from types import TracebackType
from typing import Self

from testbed.proxy.calls import ProxiedCall
from testbed.proxy.faults import Fault

Condition = Callable[[ProxiedCall], bool]


@cache
def _pattern(glob: str) -> re.Pattern[str]:
    parts = re.split(r"(\*\*|\*)", glob)
    meaning = {"**": ".*", "*": "[^/]*"}
    return re.compile("".join(meaning.get(part) or re.escape(part) for part in parts) + r"\Z", re.DOTALL)


def matches(call: ProxiedCall, method: str, path: str) -> bool:
    """Whether a call has a method ("*" is any) and a path, in which * matches within a segment and ** anything."""
    return method in ("*", call.method) and _pattern(path).match(call.path) is not None


class Rule:
    """A fault and its calls. `seen` counts the calls that matched, `applied` those that the fault was applied to."""

    def __init__(
        self, fault: Fault, method: str, path: str, nth: int | None, times: int | None, where: Condition | None
    ) -> None:
        self.fault = fault
        self.seen = 0
        self.applied = 0
        self._method = method
        self._path = path
        self._nth = nth
        self._times = times
        self._where = where
        self._removed = threading.Event()
        self.released = threading.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    def remove(self) -> None:
        """Applies to no further call, and releases the calls that it holds."""
        self._removed.set()
        self.released.set()

    def release(self) -> None:
        """Releases the calls that a Hang or a Stall without end holds, now and in future."""
        self.released.set()

    def applies_to(self, call: ProxiedCall) -> bool:
        """Counts a call if it matches, and returns whether the fault applies to it. Not safe between threads."""
        if self._removed.is_set() or not matches(call, self._method, self._path):
            return False
        if self._where is not None and not self._where(call):
            return False
        self.seen += 1
        applies = self._nth in (None, self.seen) and (self._times is None or self.applied < self._times)
        self.applied += applies
        return applies
