"""Waits for a condition."""

from __future__ import annotations

import sys
import threading
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


def turns_have_ended() -> bool:
    """Returns whether no thread runs a turn. The threads themselves wait for the next one."""
    frames = sys._current_frames()
    turns = [frames.get(thread.ident or 0) for thread in threading.enumerate() if thread.name == "turn"]
    return all(frame is None or frame.f_code.co_qualname == "_Seat.take" for frame in turns)
