"""Recognises regular expressions that mean the same in JavaScript and Python.

JSON Schema has JavaScript's, but OpenAI refuses a schema with an expression that Python can't read. Python itself is
not asked, because it may take very long to read a hostile expression.
"""

from __future__ import annotations

import re

# Python reads nested groups by recursion.
_DEEPEST = 30
_ESCAPE = r"\\(?:[dDsSwWtnrfv]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[^a-zA-Z0-9\s])"
_ITEM = rf"(?:{_ESCAPE}|[^\\\]\[])"
_TOKEN = re.compile(
    rf"(?P<set>\[(?:\^|(?!\^))(?:{_ITEM})+\])"
    r"|(?P<open>\((?:\?[:=!])?)"
    r"|(?P<close>\))"
    r"|(?P<empty>[\^$|]|\\[bB])"
    r"|(?P<repeat>(?:[*+?]|\{(?P<least>[0-9]{1,9})(?:,(?P<most>[0-9]{0,9}))?\})\??)"
    rf"|(?P<atom>{_ESCAPE}|[^\\()\[\]{{}}*+?|^$])"
)
_RANGE = re.compile(rf"({_ITEM})(?:-({_ITEM}))?")
_CLASSES = ("\\d", "\\D", "\\s", "\\S", "\\w", "\\W")


def is_common_pattern(pattern: str) -> bool:
    """Whether an expression is surely valid, with the same meaning, in JavaScript and Python. Reads it once."""
    position, depth, repeatable = 0, 0, False
    while position < len(pattern):
        token = _TOKEN.match(pattern, position)
        if token is None:
            return False
        kind = token.lastgroup if token["repeat"] is None else "repeat"
        if (kind == "set" and not _has_valid_ranges(token["set"])) or (kind == "repeat" and not repeatable):
            return False
        if token["most"] and int(token["least"]) > int(token["most"]):
            return False
        depth += (kind == "open") - (kind == "close")
        if not 0 <= depth <= _DEEPEST:
            return False
        repeatable = kind in ("set", "close", "atom")
        position = token.end()
    return depth == 0


def _has_valid_ranges(characters: str) -> bool:
    """Whether each range in a set, such as `[a-z]`, goes from a character to a later one."""
    inner = characters[2:-1] if characters.startswith("[^") else characters[1:-1]
    for found in _RANGE.finditer(inner):
        first, last = found.groups()
        if last is not None and ({first, last} & set(_CLASSES) or _code(first) > _code(last)):
            return False
    return not re.search(r"--|&&|\|\||~~", inner)


def _code(item: str) -> int:
    """Returns the number of the character for which an item of a set stands."""
    if item[:2] in ("\\x", "\\u"):
        return int(item[2:], 16)
    control = {"\\t": 9, "\\n": 10, "\\v": 11, "\\f": 12, "\\r": 13}
    return control.get(item) or ord(item[-1])
