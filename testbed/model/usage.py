"""Counts tokens in a simple way that a test can repeat. Pure.

Four characters are a token, rounded up. The prompt is the compact JSON of `messages` and of `tools`, if there are any.
The completion is its content, its reasoning, and the names and argument texts of its calls.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

CHARACTERS = 4


def tokens(characters: int) -> int:
    """Returns the tokens of that many characters."""
    return -(-characters // CHARACTERS)


def _length(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":"))) if value else 0


def prompt_tokens(body: Mapping[str, Any]) -> int:
    """Returns the tokens of a request."""
    return tokens(_length(body.get("messages")) + _length(body.get("tools")))


def completion_tokens(content: str | None, reasoning: str | None, calls: Iterable[tuple[str, str]]) -> int:
    """Returns the tokens of an answer with these calls (name, argument text)."""
    texts = [content or "", reasoning or "", *(name + arguments for name, arguments in calls)]
    return tokens(sum(map(len, texts)))


def usage(prompt: int, completion: int) -> dict[str, Any]:
    """Returns the `usage` object of an answer."""
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    }
