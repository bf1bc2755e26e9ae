"""How much is tried: one case of each fault, or everything."""

from __future__ import annotations

import os

FULL = os.environ.get("TEST_FAULTS") == "all"


def scaled(short: int, full: int) -> int:
    return full if FULL else short
