"""How much is tried: a few minutes' worth, or all."""

from __future__ import annotations

import os

FULL = os.environ.get("TEST_FAULTS") == "all"


def scaled(short: int, full: int) -> int:
    return full if FULL else short
