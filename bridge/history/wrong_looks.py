"""Recognises results of tools that look like errors. OpenAI's API has no mark for a failed tool, so clients send the
error's words as the result. A result that only looks wrong may be right, so it is never counted as an error. Pure.
"""

from __future__ import annotations

import re

# Only so much of a result's beginning is looked at: a long text that quotes an error further down is no error.
LOOKED_AT = 400
MOST_LINES = 3

_OPENINGS = re.compile(
    r"""(?:
      \[?error\]?\s*[:\]]                                     # Error: no such file; [ERROR] ...
    | error\s+(?:executing|reading|writing|running|calling|opening|parsing|while|during|in)\b
    | (?:uncaught\s+)?(?:\w+\.)*\w*(?:Error|Exception)\b\s*[:(\[]   # TypeError: ...; java.io.IOException: ...
    | <(?:tool_)?error\b
    | traceback\ \(most\ recent\ call\ last\):
    | (?:fatal|panic):\s
    )""",
    re.VERBOSE | re.IGNORECASE,
)
# An object that begins with what failed. A tool that reports no error often has the same key with an empty value.
_OBJECTS = re.compile(
    r"""\{\s*(?:
      "errors?"\s*:\s*(?!null\b|false\b|0\b|""|\[\s*\]|\{\s*\})\S
    | "is_?error"\s*:\s*true\b
    | "(?:success|ok)"\s*:\s*false\b
    | "status"\s*:\s*"(?:error|failed|failure)"
    )""",
    re.VERBOSE | re.IGNORECASE,
)
# The names of faults of operating systems, as Node.js and Go write them.
_FAULTS = re.compile(
    r"\b(?:ENOENT|EACCES|EPERM|EISDIR|ENOTDIR|EEXIST|ENOSPC|EMFILE|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENOTFOUND)\b\s*:"
)
# Lines that end so are the last words of a program that failed, not a text about failing.
_LAST_WORDS = re.compile(
    r"(?:permission denied|access (?:is )?denied|no such file or directory|command not found|operation not permitted"
    r"|is not recognized as an internal or external command,?|connection refused)[.!'\")]*$",
    re.IGNORECASE,
)


def looks_like_error(text: str) -> bool:
    """Returns whether the result of a tool reads like an error, by how it begins and how its first lines end."""
    beginning = text[:LOOKED_AT].lstrip()
    if _OPENINGS.match(beginning) or _OBJECTS.match(beginning):
        return True
    lines = beginning.splitlines()
    if len(text.strip()) > LOOKED_AT or len(lines) > MOST_LINES:
        return False
    return any(_FAULTS.search(line) or _LAST_WORDS.search(line.rstrip()) for line in lines)
