"""The settings: read from the environment once, here only, and checked before the service starts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, get_args

from dotenv import dotenv_values

from bridge.errors import SettingsError
from bridge.turn import Method, SystemPromptMode


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A client's key: a name for logs and the SHA-256 of the key, never the key itself."""

    name: str
    sha256: str


def setting(variable: str, default: str | None, meaning: str, parse: Callable[[str], Any], secret: bool = False) -> Any:
    metadata = {"variable": variable, "default": default, "meaning": meaning, "parse": parse, "secret": secret}
    return field(metadata=metadata)


def text(value: str) -> str:
    return value


def flag(value: str) -> bool:
    if value.lower() in ("1", "true", "yes", "on"):
        return True
    if value.lower() in ("", "0", "false", "no", "off"):
        return False
    raise ValueError("must be 1 or 0")


def whole(least: int, most: int) -> Callable[[str], int]:
    def parse(value: str) -> int:
        if not re.fullmatch(r"-?\d{1,12}", value) or not least <= int(value) <= most:
            raise ValueError(f"must be a whole number from {least} to {most}")
        return int(value)

    return parse


def seconds(least: float, most: float) -> Callable[[str], float]:
    def parse(value: str) -> float:
        if not re.fullmatch(r"\d{1,9}(\.\d+)?", value) or not least <= float(value) <= most:
            raise ValueError(f"must be a number of seconds from {least:g} to {most:g}")
        return float(value)

    return parse


def one_of(choices: Any) -> Callable[[str], str]:
    def parse(value: str) -> str:
        if value not in get_args(choices):
            raise ValueError("must be one of " + ", ".join(get_args(choices)))
        return value

    return parse


def base_url(value: str) -> str:
    match = re.fullmatch(r"https?://(\[[0-9A-Fa-f:.]+\]|[^\s/?#@:\[\]]+)(?::(\d{1,5}))?(/[^\s?#]*)?", value)
    if match is None or int(match[2] or 0) > 65535:
        raise ValueError("must be a URL such as http://localhost:8283, without query or user name")
    return value.rstrip("/")


def token(value: str) -> str:
    if not re.fullmatch(r"[!-~]*", value):
        raise ValueError("has characters that a header cannot carry")
    return value


def redis_url(value: str) -> str:
    if value and not re.fullmatch(r"(rediss?|unix)://\S+", value):
        raise ValueError("must begin with redis:// or rediss://")
    return value


def api_keys(value: str) -> tuple[ApiKey, ...]:
    """Keys between commas or blanks: either the key as it is, or `name:sha256` in hex."""
    keys = []
    for number, item in enumerate(re.split(r"[,\s]+", value.strip()), start=1):
        if not item:
            continue
        hashed = re.fullmatch(r"([A-Za-z0-9_.-]{1,64}):([0-9a-fA-F]{64})", item)
        if hashed:
            keys.append(ApiKey(hashed[1], hashed[2].lower()))
        elif len(item) < 8:
            raise ValueError(f"key {number} is shorter than 8 characters")
        elif not item.isascii():
            raise ValueError(f"key {number} has characters that a header cannot carry")
        else:
            keys.append(ApiKey(f"key-{number}", hashlib.sha256(item.encode()).hexdigest()))
    return tuple(keys)


@dataclass(frozen=True, slots=True)
class Settings:
    letta_base_url: str = setting(
        "LETTA_BASE_URL", None, "Address of the Letta server, e.g. `http://localhost:8283`", base_url
    )
    letta_api_key: str = setting("LETTA_API_KEY", "", "Letta's token or server password, if it wants one", token, True)
    host: str = setting("BRIDGE_HOST", "0.0.0.0", "Address to listen on", text)
    port: int = setting("PORT", "8080", "Port to listen on", whole(0, 65535))
    workers: int = setting("WEB_CONCURRENCY", "2", "Worker processes", whole(1, 64))
    threads: int = setting("BRIDGE_THREADS", "64", "Requests that one worker serves at once", whole(4, 1024))
    api_keys: tuple[ApiKey, ...] = setting(
        "BRIDGE_API_KEYS", "", "Keys that clients may use, between commas: the key, or `name:sha256`", api_keys, True
    )
    allow_anonymous: bool = setting(
        "BRIDGE_ALLOW_ANONYMOUS", "0", "1: serve without any key. Only where nobody else can reach the port", flag
    )
    admin_password: str = setting(
        "BRIDGE_ADMIN_PASSWORD", "", "Password of the admin page; without one the page is off", text, True
    )
    method: Method = setting(
        "BRIDGE_METHOD", "auto", "How calls of client tools are caught; `auto` takes the best", one_of(Method)
    )
    system_prompt: SystemPromptMode = setting(
        "BRIDGE_SYSTEM_PROMPT",
        "block",
        "Where a client's system prompt goes: `block` (a read-only memory block), `message` (a system message that"
        " opens the conversation), `ignore`",
        one_of(SystemPromptMode),
    )
    data_dir: Path = setting("BRIDGE_DATA_DIR", ".bridge", "Folder for what the workers share", Path)
    redis_url: str = setting("REDIS_URL", "", "Redis for several machines: `redis://` or `rediss://`", redis_url, True)
    connect_timeout: float = setting(
        "BRIDGE_CONNECT_TIMEOUT", "3", "Seconds to wait for a connection to Letta", seconds(0.1, 60)
    )
    letta_timeout: float = setting(
        "BRIDGE_LETTA_TIMEOUT", "30", "Seconds that one call to Letta may take, turns apart", seconds(1, 600)
    )
    turn_timeout: float = setting(
        "BRIDGE_TURN_TIMEOUT", "600", "Seconds that an agent may be silent in its turn", seconds(1, 86400)
    )
    wait: float = setting(
        "BRIDGE_WAIT", "60", "Seconds that a request waits while its agent is busy with another turn", seconds(0, 3600)
    )
    header_wait: float = setting(
        "BRIDGE_HEADER_WAIT",
        "10",
        "Seconds a streamed reply waits for the agent's first sign, so that an early failure has its true status",
        seconds(0, 25),
    )
    ping_interval: float = setting(
        "BRIDGE_PING_INTERVAL", "15", "Seconds between comments that keep a quiet stream open", seconds(0.1, 25)
    )
    max_body: int = setting("BRIDGE_MAX_BODY", "20000000", "Largest request body, in bytes", whole(1000, 10**9))
    max_tools: int = setting("BRIDGE_MAX_TOOLS", "512", "Most tools that one request may offer", whole(1, 10_000))


def variables() -> list[dict[str, str]]:
    """The rows of the README's table: variable, default, meaning."""
    return [
        {
            "variable": f.metadata["variable"],
            "default": "(required)" if f.metadata["default"] is None else f.metadata["default"],
            "meaning": f.metadata["meaning"],
        }
        for f in fields(Settings)
    ]


def read_settings(environment: Mapping[str, str]) -> Settings:
    """The settings, or one SettingsError that lists all that is wrong with the environment."""
    values: dict[str, Any] = {}
    faults: list[str] = []
    for item in fields(Settings):
        variable, default = item.metadata["variable"], item.metadata["default"]
        raw = environment.get(variable, "").strip() or default
        if raw is None:
            faults.append(f"{variable} is not set: {item.metadata['meaning']}")
            continue
        try:
            values[item.name] = item.metadata["parse"](raw)
        except ValueError as fault:
            secret = item.metadata["secret"] or "@" in raw  # a URL may hold a password
            shown = "its value" if secret else repr(raw)
            faults.append(f"{variable}: {shown} {fault}")
    if not values.get("api_keys", True) and not values.get("allow_anonymous", True):
        faults.append(
            "BRIDGE_API_KEYS is not set: anybody who reaches the port could talk to your agents."
            " Set keys, or BRIDGE_ALLOW_ANONYMOUS=1 if only you can reach it"
        )
    if faults:
        raise SettingsError("\n".join(faults))
    return Settings(**values)


def environment_with_dotenv(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The environment, filled up from a `.env` file in development; on a platform such as Heroku there is none."""
    if "DYNO" in environment:
        return dict(environment)
    from_file = {
        key: value for key, value in dotenv_values(folder / ".env", interpolate=False).items() if value is not None
    }
    return {**from_file, **environment}
