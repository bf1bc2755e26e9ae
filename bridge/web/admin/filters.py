"""Template filters, which show times, durations, numbers and code on a page. They escape all text."""

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
# Code and links in Markdown.
_MARKDOWN = re.compile(r"`([^`\n]+)`|\[([^\]\n]+)\]\([^)\s]+\)")
_JSON = re.compile(r'("(?:[^"\\]|\\.)*")(\s*:)?|\b(true|false|null)\b|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)')


def add_filters(app: Flask) -> None:
    app.jinja_env.filters.update(
        ago=show_time_ago,
        until=show_time_since,
        duration=format_duration,
        number=format_number,
        share=percentage,
        pretty=highlight_json,
        json_line=highlight_json_line,
        python=highlight_python,
        visible=escape_invisible,
        prose=render_prose,
    )


def show_time_ago(moment: float | None) -> Markup:
    """Returns HTML such as "5 min ago", with the exact time as a tooltip. "never" if the Unix time is None or 0."""
    if not moment:
        return Markup('<span class="none">never</span>')
    age = time.time() - moment
    return _time_element(moment, "just now" if age < 1 else f"{_duration_in_one_unit(age)} ago")


def show_time_since(moment: float) -> Markup:
    """Returns HTML such as "5 min": the duration from the Unix time `moment` until now, with the time as a tooltip."""
    return _time_element(moment, _duration_in_one_unit(time.time() - moment))


def _time_element(moment: float, text: str) -> Markup:
    exact = datetime.fromtimestamp(moment, UTC)
    return Markup('<time datetime="{}" title="{} UTC">{}</time>').format(
        exact.isoformat(timespec="seconds"), exact.strftime("%Y-%m-%d %H:%M:%S"), text
    )


def _duration_in_one_unit(seconds: float) -> str:
    seconds = max(0.0, seconds)
    size, unit = next(((size, unit) for size, unit in _UNITS if seconds >= size), (1, "s"))
    return f"{math.floor(seconds / size)} {unit}"


def format_duration(seconds: float) -> str:
    """Returns text such as "12 ms", "1.2 s" or "2 min"."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 120 else _duration_in_one_unit(seconds)


def format_number(value: float) -> str:
    return f"{value:,}"


def percentage(part: float, whole: float) -> float:
    """Returns how many percent of `whole` the part is; 0 if `whole` is 0."""
    return round(100 * part / whole, 2) if whole else 0.0


def escape_invisible(text: str) -> str:
    """Replaces invisible characters, and those that change the order of text, by codes such as \\u202e."""
    return "".join(char if char.isprintable() or char in "\n\t" else f"\\u{ord(char):04x}" for char in str(text))


def render_prose(text: str) -> Markup:
    """Returns a text with little Markdown as HTML: `code` as such, and of links the words."""
    shown, done, parts = escape_invisible(text), 0, list[Markup]()
    for found in _MARKDOWN.finditer(shown):
        code, words = found.groups()
        parts += [
            escape(shown[done : found.start()]),
            Markup("<code>{}</code>").format(code) if code else escape(words),
        ]
        done = found.end()
    return Markup("").join([*parts, escape(shown[done:])])


def highlight_json(value: Any) -> Markup:
    return highlight_json_line(json.dumps(value, indent=2, ensure_ascii=False))


def highlight_json_line(text: str) -> Markup:
    """Returns written JSON, or whole lines of it, as HTML with colours."""
    return Markup("").join(_highlighted_json_parts(escape_invisible(text)))


def _highlighted_json_parts(text: str) -> Iterator[Markup]:
    done = 0
    for found in _JSON.finditer(text):
        yield escape(text[done : found.start()])
        string, colon, word, figure = found.groups()
        if string is not None:
            yield _span_element("k" if colon else "s", string) + escape(colon or "")
        else:
            yield _span_element("w" if word else "n", word or figure)
        done = found.end()
    yield escape(text[done:])


def highlight_python(source: str) -> Markup:
    """Returns Python source as HTML with colours; without colours if the source can't be parsed."""
    shown = escape_invisible(source)
    try:
        return Markup("").join(_highlighted_python_parts(shown))
    except (tokenize.TokenError, SyntaxError):
        return escape(shown)


def _highlighted_python_parts(source: str) -> Iterator[Markup]:
    lines = source.splitlines(keepends=True)
    row, column = 1, 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        yield escape(_text_between(lines, (row, column), token.start))
        kind = _token_class(token)
        yield _span_element(kind, token.string) if kind else escape(token.string)
        row, column = token.end


def _text_between(lines: list[str], start: tuple[int, int], end: tuple[int, int]) -> str:
    """Returns the text between two pairs of a row, counted from 1, and a column, counted from 0.
    Python's tokenizer ends with tokens in a row after the last line, which counts as empty.
    """
    if start[0] == end[0]:
        return lines[start[0] - 1][start[1] : end[1]] if start[0] <= len(lines) else ""
    middle = lines[start[0] : end[0] - 1]
    last = lines[end[0] - 1][: end[1]] if end[0] <= len(lines) else ""
    return lines[start[0] - 1][start[1] :] + "".join(middle) + last


def _token_class(token: tokenize.TokenInfo) -> str:
    if token.type == tokenize.NAME and keyword.iskeyword(token.string):
        return "w"
    kinds = {tokenize.STRING: "s", tokenize.COMMENT: "c", tokenize.NUMBER: "n"}
    return kinds.get(token.type, "")


def _span_element(kind: str, text: str) -> Markup:
    return Markup('<span class="{}">{}</span>').format(kind, text)
