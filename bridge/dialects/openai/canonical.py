"""Writes the JSON of a request so that equal requests have equal texts, in whatever order their fields are."""

from __future__ import annotations

import hashlib
import json
from typing import Any

# About what a value takes in memory besides its text.
_BYTES_OF_VALUE = 120


def canonical_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def digest_text(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def size_in_memory(text: str) -> int:
    """Returns about how many bytes the value of a JSON text takes in memory, at most. Commas and brackets within
    strings are counted as values, too.
    """
    values = 1 + text.count(",") + text.count("[") + text.count("{")
    return len(text) + _BYTES_OF_VALUE * values
