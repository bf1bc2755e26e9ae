"""The keys of clients, as BRIDGE_API_KEYS lists them: `name:sha256[:agents[:options]]`, or the plain key."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any, Literal, get_args
from urllib.parse import unquote

from bridge.turn import ChatsMode, Method
from bridge.values import MOST_DIRECT_TOOLS

# What a client may do in Letta's own API: nothing, what its agents need, or everything.
LettaRight = Literal["off", "agents", "all"]

# An entry of BRIDGE_API_KEYS, with or without agents and options.
ENTRY = re.compile(r"[A-Za-z0-9_.-]{1,64}:[0-9a-fA-F]{64}(:.*)?")
_HASHED = re.compile(r"([A-Za-z0-9_.-]{1,64}):([0-9a-fA-F]{64})(?::([^:]*))?(?::([^:]*))?")
_ALMOST_HASHED = re.compile(r"([A-Za-z0-9_.-]{1,64}):([0-9a-fA-F]{32,})(:.*)?")
_NAMED_PLAIN = re.compile(r"[A-Za-z0-9_.-]{1,64}:.*")
MIN_LENGTH = 8
_METHODS = sorted(set(get_args(Method)) - {"auto"})
# The options that are numbers, and the most that each may be.
_MOST = {"rate": 999_999, "turns": 999_999, "search": MOST_DIRECT_TOOLS}
# What each option of a key must be.
_OPTIONS = {
    "rate": "a whole number, as in rate=60",
    "turns": "a whole number, as in turns=4",
    "methods": f"one of {', '.join(_METHODS)}, or several with | between, as in methods=native|relay",
    "search": f"a whole number up to {MOST_DIRECT_TOOLS}, as in search=40",
    "chats": f"one of {', '.join(get_args(ChatsMode))}, as in chats=each",
    "letta": f"one of {', '.join(get_args(LettaRight))}, as in letta=agents",
}


class KeyFault(ValueError):
    """A key in BRIDGE_API_KEYS is wrong. The message says which by its place and, where it is certain, its name."""


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A client's key: its name for logs and limits, and its SHA-256, never the key itself. `agents` (names or ids) and
    `methods`: what it allows, empty for all. `rate` (a minute), `turns` (at once): None: see Settings, 0: no limit.
    `letta`, `search` (BRIDGE_TOOL_SEARCH), `chats` (BRIDGE_CHATS): None: see Settings.
    """

    name: str
    sha256: str
    agents: frozenset[str] = frozenset()
    methods: frozenset[Method] = frozenset()
    rate: int | None = None
    turns: int | None = None
    letta: LettaRight | None = None
    search: int | None = None
    chats: ChatsMode | None = None


def parse_api_keys(value: str) -> tuple[ApiKey, ...]:
    """Parses BRIDGE_API_KEYS: keys with commas or blanks between. Two keys with one name belong to one client."""
    items = [item for item in re.split(r"[,\s]+", value.strip()) if item]
    keys = tuple(_parse_key(item, number) for number, item in enumerate(items, start=1))
    plain = {key.name for key, item in zip(keys, items, strict=True) if not _HASHED.fullmatch(item)}
    for number, (key, item) in enumerate(zip(keys, items, strict=True), start=1):
        if key.name in plain and _HASHED.fullmatch(item):
            raise KeyFault(f"key {number} has the name {key.name!r}, which a plain key has by its place: rename it")
    return keys


def _parse_key(item: str, number: int) -> ApiKey:
    """Parses one entry; a plain key gets the name `key-NUMBER`. An error names the number from 1, never the key."""
    hashed = _HASHED.fullmatch(item)
    if hashed:
        name, digest, agents, options = hashed.groups()
        key = f"key {number} ({name})"
        limits = _parse_options(options or "", key)
        return ApiKey(name, digest.lower(), _parse_agents(agents or "", key), **limits)
    almost = _ALMOST_HASHED.fullmatch(item)
    if almost:
        raise KeyFault(_what_is_wrong_with_hash(f"key {number} ({almost[1]})", almost[2], item))
    if _NAMED_PLAIN.fullmatch(item):
        raise KeyFault(
            f"key {number} looks like a name and a plain key: after `name:` comes the SHA-256 of the key, not the key."
            " The command `keys new NAME` makes a key and its entry, `keys hash NAME` the entry of a key that you have"
        )
    if len(item) < MIN_LENGTH:
        raise KeyFault(f"key {number} is shorter than {MIN_LENGTH} characters: the command `keys new NAME` makes a key")
    if not item.isascii():
        raise KeyFault(
            f"key {number} has characters that a header cannot carry: use letters without accents, digits and signs"
        )
    return ApiKey(f"key-{number}", hashlib.sha256(item.encode()).hexdigest())


def _what_is_wrong_with_hash(key: str, digest: str, item: str) -> str:
    if len(digest) != 64:
        return f"{key} has {len(digest)} hex digits after its name, and a SHA-256 has 64: copy the whole hash"
    return (
        f"{key} has {item.count(':') + 1} parts with `:` between, and `name:sha256[:agents[:options]]` has 4 at most:"
        " write a `:` within an agent's name as %3A"
    )


def _parse_agents(text: str, key: str) -> frozenset[str]:
    """Parses the agents of a key, with `|` between and escaped as in a URL. `*` or "" is the empty set: all agents."""
    agents = {unquote(agent) for agent in text.split("|") if agent}
    if text and not agents:
        raise KeyFault(f"{key} lists agents, but names none between its `|`: for all agents, write `*`")
    return frozenset() if "*" in agents else frozenset(agents)


def _parse_options(text: str, key: str) -> dict[str, Any]:
    """Parses the options of a key, such as `rate=60;turns=4;methods=native|relay`, into fields of ApiKey."""
    found: dict[str, Any] = {}
    for option in filter(None, text.split(";")):
        name, _, value = option.partition("=")
        if name not in _OPTIONS:
            raise KeyFault(
                f"{key} has an unknown option; options are"
                " rate=60;turns=4;methods=native|relay;search=40;chats=each;letta=agents"
            )
        if name in _MOST and re.fullmatch(r"\d{1,6}", value) and int(value) <= _MOST[name]:
            found[name] = int(value)
        elif name == "methods" and value and set(value.split("|")) <= set(_METHODS):
            found[name] = frozenset(value.split("|"))
        elif (name == "chats" and value in get_args(ChatsMode)) or (name == "letta" and value in get_args(LettaRight)):
            found[name] = value
        else:
            raise KeyFault(f"{key} has an option `{name}` that is invalid: it must be {_OPTIONS[name]}")
    return found
