"""Turns a client's names of tools and parameters into names that Letta and every model provider accept.

A client's name is kept where possible. Parameters can't have the names of Letta's own arguments, nor names that
Anthropic refuses as property keys: over 64 characters, or others than letters, digits, `_`, `.` and `-`. Letta writes
these names unchanged into the script in which it runs a tool, so this rule also keeps code out of that script.
"""

from __future__ import annotations

import hashlib
import keyword
import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import count

from bridge.errors import InvalidRequest

MAX_SERVER_NAME = 64
# Letta's own limit for names that are given outside of a schema. Names that the bridge changes keep to this limit.
MAX_CHANGED_NAME = 48
LETTA_PARAMETERS = frozenset({"request_heartbeat", "thinking", "inner_thoughts"})

_CLIENT_NAME = re.compile(r"[\w.:/-]{1,128}\Z")
_SERVER_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_PARAMETER_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}\Z")
# Names that Letta's sandbox scripts (0.6.54 to 0.16.8) use after the arguments are set, or that the relay stub uses.
_SCRIPT_NAMES = frozenset(
    {"agent_state", "asyncio", "base64", "getattr", "hashlib", "int", "len", "pickle", "print", "range", "str"}
    | {"struct", "sys", "Exception", "ImportError"}
)
# The script's own variables begin with these: the variable of its result, and private ones.
_SCRIPT_PREFIXES = ("_", "result_")
_DIGEST_LENGTH = 8


def check_tool_name(name: str, where: str) -> None:
    """Refuses an invalid name. Valid are OpenAI's names and those of real clients: with . / : and any alphabet."""
    if not _CLIENT_NAME.match(name):
        raise InvalidRequest(
            f"`{where}.name` is {name!r:.160}. A tool's name is made of 1 to 128 letters, digits and any of _ - . : /",
            param=f"{where}.name",
        )


def server_name(client_name: str, python_names: bool) -> str:
    """Returns the client's name if the server accepts it, or else its ASCII letters and a part of its SHA-256 digest.
    `python_names`: the name must be a Python name that Letta's scripts do not use.
    """
    if _SERVER_NAME.match(client_name) and (not python_names or is_script_safe(client_name)):
        return client_name
    digest = hashlib.sha256(client_name.encode()).hexdigest()
    return _cut_and_append_digest(_ascii_name(client_name, "tool"), digest, MAX_CHANGED_NAME)


def append_digest(name: str, digest: str) -> str:
    """Returns the name, cut, with the first digits of the digest, for a stub whose own name another tool has."""
    return _cut_and_append_digest(name, digest, MAX_SERVER_NAME)


def is_server_name(name: str) -> bool:
    return bool(_SERVER_NAME.match(name))


def function_name(server_name: str) -> str:
    """Returns the name of a stub's Python function: the tool's name on the server, changed if Python can't use it."""
    plain = server_name if is_script_safe(server_name) else _ascii_name(server_name, "tool")
    return plain if is_script_safe(plain) else plain + "_"


def parameter_names(names: Iterable[str], python_names: bool) -> dict[str, str]:
    """Maps each of the client's names to the name that the model sees, which no other parameter has. `python_names`:
    Letta's scripts must be able to use each name as a variable.
    """
    fits = is_script_safe if python_names else _is_sendable_parameter
    given = list(names)
    result = {name: name for name in given if fits(name)}
    taken = set(given) | LETTA_PARAMETERS
    numbers: dict[str, Iterator[int]] = {}
    for name in sorted(set(given) - result.keys()):
        base = _wanted_parameter_name(name, python_names)
        result[name] = _unused_name(base, taken, numbers.setdefault(base, count(2)))
        taken.add(result[name])
    return {name: result[name] for name in given}


def _is_sendable_parameter(name: str) -> bool:
    return bool(_PARAMETER_NAME.match(name)) and name not in LETTA_PARAMETERS


def is_script_safe(name: str) -> bool:
    """Whether a name can be a variable in Letta's scripts. ASCII only: Python may make other identifiers equal."""
    return (
        name.isascii()
        and name.isidentifier()
        and len(name) <= MAX_SERVER_NAME
        and not keyword.iskeyword(name)
        and not name.startswith(_SCRIPT_PREFIXES)
        and name not in _SCRIPT_NAMES
        and name not in LETTA_PARAMETERS
    )


def _wanted_parameter_name(name: str, python_names: bool) -> str:
    """Returns a usable name for a parameter, which another parameter may have already."""
    if not python_names:
        base = re.sub(r"[^A-Za-z0-9_.-]+", "_", _remove_accents(name)).strip("_") or "parameter"
        return base + "_" if base in LETTA_PARAMETERS else base
    base = _ascii_name(name, "parameter")
    return base if is_script_safe(base) or len(base) >= MAX_SERVER_NAME else base + "_"


def _unused_name(base: str, taken: set[str], numbers: Iterator[int]) -> str:
    """Returns the base, or the base with the first free one of the numbers that were not tried with it yet."""
    candidate = base[:MAX_SERVER_NAME]
    while candidate in taken:
        tail = f"_{next(numbers)}"
        candidate = base[: MAX_SERVER_NAME - len(tail)] + tail
    return candidate


def _ascii_name(name: str, prefix: str) -> str:
    """Returns a name's ASCII letters and digits with underscores between them, after the prefix where one is needed."""
    plain = re.sub(r"[^A-Za-z0-9]+", "_", _remove_accents(name)).strip("_")
    fits = plain[:1].isalpha() and not plain.startswith(_SCRIPT_PREFIXES)
    return plain if fits else f"{prefix}_{plain}".rstrip("_")


def _remove_accents(name: str) -> str:
    return "".join(char for char in unicodedata.normalize("NFKD", name) if not unicodedata.combining(char))


def _cut_and_append_digest(base: str, digest: str, length: int) -> str:
    return f"{base[: length - _DIGEST_LENGTH - 1].rstrip('_-')}_{digest[:_DIGEST_LENGTH]}"
