"""The names a client uses -> names that Letta and every model provider behind it can take.

A tool keeps its name wherever it can. Parameters keep theirs but for three that Letta's own arguments would collide
with, and for what Anthropic refuses as a property key: anything but letters, digits, `_`, `.`, `-`, or beyond 64.
That rule also keeps code out of the script in which Letta runs tools: it writes parameter names into it as they are.
"""

from __future__ import annotations

import hashlib
import keyword
import re
import unicodedata
from collections.abc import Iterable

from bridge.errors import InvalidRequest

MAX_SERVER_NAME = 64
# Letta's own limit for names given outside a schema; a name that has to be changed anyway keeps to it.
MAX_CHANGED_NAME = 48
LETTA_PARAMETERS = frozenset({"request_heartbeat", "thinking", "inner_thoughts"})

_CLIENT_NAME = re.compile(r"[\w.:/-]{1,128}\Z")
_SERVER_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_PARAMETER_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}\Z")
# What Letta's sandbox scripts (0.6.54 to 0.16.8) still use after the arguments are set, and the relay stub's own.
_SCRIPT_NAMES = frozenset(
    {"agent_state", "asyncio", "base64", "getattr", "hashlib", "int", "len", "pickle", "print", "range", "str"}
    | {"struct", "sys", "Exception", "ImportError"}
)
# What begins the names of its own variables: its result's, and private ones.
_SCRIPT_PREFIXES = ("_", "result_")
_DIGEST_LENGTH = 8


def check_tool_name(name: str, where: str) -> None:
    """What OpenAI allows and what real clients send beyond it: dots, slashes, colons, letters of any alphabet, 128."""
    if not _CLIENT_NAME.match(name):
        raise InvalidRequest(
            f"`{where}.name` is {name!r:.160}. A tool's name is made of 1 to 128 letters, digits and any of _ - . : /",
            param=f"{where}.name",
        )


def server_name(client_name: str, identifier: bool) -> str:
    """The name a tool has on the server when nobody else has taken it."""
    if _SERVER_NAME.match(client_name) and (not identifier or is_script_safe(client_name)):
        return client_name
    digest = hashlib.sha256(client_name.encode()).hexdigest()
    return _with_suffix(_plain(client_name, "tool"), digest, MAX_CHANGED_NAME)


def suffixed(name: str, digest: str) -> str:
    """A second name, for a tool whose first one is taken."""
    return _with_suffix(name, digest, MAX_SERVER_NAME)


def is_server_name(name: str) -> bool:
    return bool(_SERVER_NAME.match(name))


def function_name(server_name: str) -> str:
    """The Python name of the stub's function: the tool's own name where Python allows it."""
    plain = server_name if is_script_safe(server_name) else _plain(server_name, "tool")
    return plain if is_script_safe(plain) else plain + "_"


def parameter_names(names: Iterable[str], identifier: bool) -> dict[str, str]:
    """Every parameter's name as the model sees it; equal to the client's unless it can't be."""
    fits = is_script_safe if identifier else _fits_everywhere
    given = list(names)
    result = {name: name for name in given if fits(name)}
    taken = set(given) | LETTA_PARAMETERS
    for name in sorted(set(given) - result.keys()):
        result[name] = _free(_parameter_base(name, identifier), taken)
        taken.add(result[name])
    return {name: result[name] for name in given}


def _fits_everywhere(name: str) -> bool:
    return bool(_PARAMETER_NAME.match(name)) and name not in LETTA_PARAMETERS


def is_script_safe(name: str) -> bool:
    """An ASCII identifier (others are normalised by Python, and may then collide) that no script needs itself."""
    return (
        name.isascii()
        and name.isidentifier()
        and len(name) <= MAX_SERVER_NAME
        and not keyword.iskeyword(name)
        and not name.startswith(_SCRIPT_PREFIXES)
        and name not in _SCRIPT_NAMES
        and name not in LETTA_PARAMETERS
    )


def _parameter_base(name: str, identifier: bool) -> str:
    if not identifier:
        base = re.sub(r"[^A-Za-z0-9_.-]+", "_", _folded(name)).strip("_") or "parameter"
        return base + "_" if base in LETTA_PARAMETERS else base
    base = _plain(name, "parameter")
    return base if is_script_safe(base) or len(base) >= MAX_SERVER_NAME else base + "_"


def _free(base: str, taken: set[str]) -> str:
    """The base, or the base with the first number that makes it the only one of its name."""
    candidate, number = base[:MAX_SERVER_NAME], 2
    while candidate in taken:
        tail = f"_{number}"
        candidate, number = base[: MAX_SERVER_NAME - len(tail)] + tail, number + 1
    return candidate


def _plain(name: str, otherwise: str) -> str:
    """ASCII letters, digits and underscores, with a beginning that no script minds; accents and other alphabets go."""
    plain = re.sub(r"[^A-Za-z0-9]+", "_", _folded(name)).strip("_")
    fits = plain[:1].isalpha() and not plain.startswith(_SCRIPT_PREFIXES)
    return plain if fits else f"{otherwise}_{plain}".rstrip("_")


def _folded(name: str) -> str:
    return "".join(char for char in unicodedata.normalize("NFKD", name) if not unicodedata.combining(char))


def _with_suffix(base: str, digest: str, length: int) -> str:
    return f"{base[: length - _DIGEST_LENGTH - 1].rstrip('_-')}_{digest[:_DIGEST_LENGTH]}"
