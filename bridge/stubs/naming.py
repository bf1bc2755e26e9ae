"""Turns a client's names into names that Letta and every model provider behind it accept.

A tool keeps its name wherever it can. Parameters keep theirs, except for three names that Letta's own arguments have,
and for property keys that Anthropic refuses: those of more than 64 characters, or with other characters than letters,
digits, `_`, `.` and `-`. This rule also keeps code out of the script in which Letta runs tools, because Letta writes
the names of parameters into it unchanged.
"""

from __future__ import annotations

import hashlib
import keyword
import re
import unicodedata
from collections.abc import Iterable

from bridge.errors import InvalidRequest

MAX_SERVER_NAME = 64
# Letta's own limit for names that are given outside of a schema. Names that are changed anyway keep to it.
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
# The script's own variables begin with these: its result's, and private ones.
_SCRIPT_PREFIXES = ("_", "result_")
_DIGEST_LENGTH = 8


def check_tool_name(name: str, where: str) -> None:
    """Accepts what OpenAI allows and what real clients send: dots, slashes, colons, any alphabet, 128 characters."""
    if not _CLIENT_NAME.match(name):
        raise InvalidRequest(
            f"`{where}.name` is {name!r:.160}. A tool's name is made of 1 to 128 letters, digits and any of _ - . : /",
            param=f"{where}.name",
        )


def server_name(client_name: str, python_names: bool) -> str:
    """Returns the name that a tool gets on the server if no other tool has it."""
    if _SERVER_NAME.match(client_name) and (not python_names or is_script_safe(client_name)):
        return client_name
    digest = hashlib.sha256(client_name.encode()).hexdigest()
    return _with_suffix(_plain(client_name, "tool"), digest, MAX_CHANGED_NAME)


def append_digest(name: str, digest: str) -> str:
    """Returns another name, for a tool whose first name is taken."""
    return _with_suffix(name, digest, MAX_SERVER_NAME)


def is_server_name(name: str) -> bool:
    return bool(_SERVER_NAME.match(name))


def function_name(server_name: str) -> str:
    """Returns the name of the stub's Python function: the tool's own name if Python allows it."""
    plain = server_name if is_script_safe(server_name) else _plain(server_name, "tool")
    return plain if is_script_safe(plain) else plain + "_"


def parameter_names(names: Iterable[str], python_names: bool) -> dict[str, str]:
    """Returns the name of each parameter as the model sees it: the client's name, unless that is impossible."""
    fits = is_script_safe if python_names else _fits_everywhere
    given = list(names)
    result = {name: name for name in given if fits(name)}
    taken = set(given) | LETTA_PARAMETERS
    for name in sorted(set(given) - result.keys()):
        result[name] = _free(_parameter_base(name, python_names), taken)
        taken.add(result[name])
    return {name: result[name] for name in given}


def _fits_everywhere(name: str) -> bool:
    return bool(_PARAMETER_NAME.match(name)) and name not in LETTA_PARAMETERS


def is_script_safe(name: str) -> bool:
    """Whether it is an identifier that no script uses, and ASCII: Python normalises others, which may then collide."""
    return (
        name.isascii()
        and name.isidentifier()
        and len(name) <= MAX_SERVER_NAME
        and not keyword.iskeyword(name)
        and not name.startswith(_SCRIPT_PREFIXES)
        and name not in _SCRIPT_NAMES
        and name not in LETTA_PARAMETERS
    )


def _parameter_base(name: str, python_names: bool) -> str:
    if not python_names:
        base = re.sub(r"[^A-Za-z0-9_.-]+", "_", _folded(name)).strip("_") or "parameter"
        return base + "_" if base in LETTA_PARAMETERS else base
    base = _plain(name, "parameter")
    return base if is_script_safe(base) or len(base) >= MAX_SERVER_NAME else base + "_"


def _free(base: str, taken: set[str]) -> str:
    """Returns the base, or the base with the first number that makes it unique."""
    candidate, number = base[:MAX_SERVER_NAME], 2
    while candidate in taken:
        tail = f"_{number}"
        candidate, number = base[: MAX_SERVER_NAME - len(tail)] + tail, number + 1
    return candidate


def _plain(name: str, prefix: str) -> str:
    """Keeps ASCII letters, digits and underscores. The prefix is added to names that scripts reserve.

    Accents and other alphabets are dropped.
    """
    plain = re.sub(r"[^A-Za-z0-9]+", "_", _folded(name)).strip("_")
    fits = plain[:1].isalpha() and not plain.startswith(_SCRIPT_PREFIXES)
    return plain if fits else f"{prefix}_{plain}".rstrip("_")


def _folded(name: str) -> str:
    return "".join(char for char in unicodedata.normalize("NFKD", name) if not unicodedata.combining(char))


def _with_suffix(base: str, digest: str, length: int) -> str:
    return f"{base[: length - _DIGEST_LENGTH - 1].rstrip('_-')}_{digest[:_DIGEST_LENGTH]}"
