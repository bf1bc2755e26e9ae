"""Waiting for what comes by itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

SOON = 20.0

Found = TypeVar("Found")


def until(look: Callable[[], Found], seconds: float = SOON) -> Found:
    """What was looked for, as soon as it is there (is true)."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, f"it did not come within {seconds:.0f} s"
        time.sleep(0.02)
    return found
