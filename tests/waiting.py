"""Waits for a condition."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

SOON = 20.0

Found = TypeVar("Found")


def until(look: Callable[[], Found], seconds: float = SOON) -> Found:
    """Returns the first true result of `look`."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, f"no result within {seconds:.0f} s"
        time.sleep(0.02)
    return found
