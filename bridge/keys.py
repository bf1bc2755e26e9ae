"""The keys of clients, as BRIDGE_API_KEYS lists them: `name:sha256[:agents[:options]]`, or the plain key."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any, Literal, get_args
from urllib.parse import unquote

from bridge.turn import Method

# What a client may do in Letta's own API: nothing, what its agents need, or everything.
LettaRight = Literal["off", "agents", "all"]

_HASHED = re.compile(r"([A-Za-z0-9_.-]{1,64}):([0-9a-fA-F]{64})(?::([^:]*))?(?::([^:]*))?")
_ALMOST_HASHED = re.compile(r"[A-Za-z0-9_.-]{1,64}:[0-9a-fA-F]{32,}(:.*)?")
_NAMED_PLAIN = re.compile(r"[A-Za-z0-9_.-]{1,64}:.*")
MIN_LENGTH = 8


class KeyFault(ValueError):
    """A key in BRIDGE_API_KEYS is wrong. The message, a whole sentence, names the key by its place, never the key."""


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A client's key: its name for logs and limits, and its SHA-256, never the key itself. `agents` (names or ids) and
    `methods`: what it allows, empty for all. `rate` (a minute), `turns` (at once): None: see Settings, 0: no limit.
    `letta`: None: see Settings.
    """

    name: str
    sha256: str
    agents: frozenset[str] = frozenset()
    methods: frozenset[Method] = frozenset()
    rate: int | None = None
    turns: int | None = None
    letta: LettaRight | None = None


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
        limits = _parse_options(options or "", number)
        return ApiKey(name, digest.lower(), _parse_agents(agents or "", number), **limits)
    if _ALMOST_HASHED.fullmatch(item):
        raise KeyFault(
            f"key {number} looks like `name:sha256[:agents[:options]]`, but a SHA-256 has 64 hex digits,"
            " and a `:` within a name is written %3A"
        )
    if _NAMED_PLAIN.fullmatch(item):
        raise KeyFault(
            f"key {number} looks like a name and a plain key: after `name:` comes the SHA-256 of the key, not the key."
            " The command `keys new NAME` makes a key and its entry, `keys hash NAME` the entry of a key that you have"
        )
    if len(item) < MIN_LENGTH:
        raise KeyFault(f"key {number} is shorter than {MIN_LENGTH} characters")
    if not item.isascii():
        raise KeyFault(f"key {number} has characters that a header cannot carry")
    return ApiKey(f"key-{number}", hashlib.sha256(item.encode()).hexdigest())


def _parse_agents(text: str, number: int) -> frozenset[str]:
    """Parses the agents of a key, with `|` between and escaped as in a URL. `*` or "" is the empty set: all agents."""
    agents = {unquote(agent) for agent in text.split("|") if agent}
    if text and not agents:
        raise KeyFault(f"key {number} lists agents, but names none between its `|`: for all agents, write `*`")
    return frozenset() if "*" in agents else frozenset(agents)


def _parse_options(text: str, number: int) -> dict[str, Any]:
    """Parses the options of a key, such as `rate=60;turns=4;methods=native|relay`, into fields of ApiKey."""
    found: dict[str, Any] = {}
    for option in filter(None, text.split(";")):
        name, _, value = option.partition("=")
        if name in ("rate", "turns") and re.fullmatch(r"\d{1,6}", value):
            found[name] = int(value)
        elif name == "methods" and value and set(value.split("|")) <= set(get_args(Method)) - {"auto"}:
            found[name] = frozenset(value.split("|"))
        elif name == "letta" and value in get_args(LettaRight):
            found[name] = value
        else:
            raise KeyFault(
                f"key {number} has an unknown option; options are rate=60;turns=4;methods=native|relay;letta=agents"
            )
    return found
