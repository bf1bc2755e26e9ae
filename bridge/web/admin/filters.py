"""Template filters: how times, durations, numbers and code look on a page. They escape all text from outside."""

from __future__ import annotations

import io
import json
import keyword
import math
import re
import time
import tokenize
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from flask import Flask
from markupsafe import Markup, escape

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_JSON = re.compile(r'("(?:[^"\\]|\\.)*")(\s*:)?|\b(true|false|null)\b|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)')


def add_filters(app: Flask) -> None:
    app.jinja_env.filters.update(
        ago=ago,
        until=until,
        duration=duration,
        number=number,
        share=share,
        pretty=pretty,
        python=python,
        visible=visible,
    )


def ago(moment: float | None) -> Markup:
    """Returns how long ago it was, in words. A tooltip has the exact time."""
    if not moment:
        return Markup('<span class="none">never</span>')
    age = time.time() - moment
    return _timed(moment, "just now" if age < 1 else f"{_span(age)} ago")


def until(moment: float) -> Markup:
    """Returns for how long it has been going on."""
    return _timed(moment, _span(time.time() - moment))


def _timed(moment: float, text: str) -> Markup:
    exact = datetime.fromtimestamp(moment, UTC)
    return Markup('<time datetime="{}" title="{} UTC">{}</time>').format(
        exact.isoformat(timespec="seconds"), exact.strftime("%Y-%m-%d %H:%M:%S"), text
    )


def _span(seconds: float) -> str:
    seconds = max(0.0, seconds)
    size, unit = next(((size, unit) for size, unit in _UNITS if seconds >= size), (1, "s"))
    return f"{math.floor(seconds / size)} {unit}"


def duration(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 120 else _span(seconds)


def number(value: float) -> str:
    return f"{value:,}"


def share(part: float, whole: float) -> float:
    """Returns a percentage."""
    return round(100 * part / whole, 2) if whole else 0.0


def visible(text: str) -> str:
    """Replaces characters that are invisible, or that change the order of others, by their codes."""
    return "".join(char if char.isprintable() or char in "\n\t" else f"\\u{ord(char):04x}" for char in str(text))


def pretty(value: Any) -> Markup:
    """Returns JSON with keys and values in different colours."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return Markup("").join(_coloured_json(visible(text)))


def _coloured_json(text: str) -> Iterator[Markup]:
    done = 0
    for found in _JSON.finditer(text):
        yield escape(text[done : found.start()])
        string, colon, word, figure = found.groups()
        if string is not None:
            yield _marked("k" if colon else "s", string) + escape(colon or "")
        else:
            yield _marked("w" if word else "n", word or figure)
        done = found.end()
    yield escape(text[done:])


def python(source: str) -> Markup:
    """Returns Python source in colours, or plain if it cannot be parsed."""
    shown = visible(source)
    try:
        return Markup("").join(_coloured_python(shown))
    except (tokenize.TokenError, SyntaxError):
        return escape(shown)


def _coloured_python(source: str) -> Iterator[Markup]:
    lines = source.splitlines(keepends=True)
    row, column = 1, 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        yield escape(_between(lines, (row, column), token.start))
        kind = _kind_of(token)
        yield _marked(kind, token.string) if kind else escape(token.string)
        row, column = token.end


def _between(lines: list[str], start: tuple[int, int], end: tuple[int, int]) -> str:
    if start[0] == end[0]:
        return lines[start[0] - 1][start[1] : end[1]] if start[0] <= len(lines) else ""
    middle = lines[start[0] : end[0] - 1]
    last = lines[end[0] - 1][: end[1]] if end[0] <= len(lines) else ""
    return lines[start[0] - 1][start[1] :] + "".join(middle) + last


def _kind_of(token: tokenize.TokenInfo) -> str:
    if token.type == tokenize.NAME and keyword.iskeyword(token.string):
        return "w"
    kinds = {tokenize.STRING: "s", tokenize.COMMENT: "c", tokenize.NUMBER: "n"}
    return kinds.get(token.type, "")


def _marked(kind: str, text: str) -> Markup:
    return Markup('<span class="{}">{}</span>').format(kind, text)
