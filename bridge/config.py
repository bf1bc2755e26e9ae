"""The settings: read from the environment once, here only, and checked before the service starts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from dotenv import dotenv_values

from bridge.errors import SettingsError
from bridge.keys import ApiKey, api_keys
from bridge.logs import LogFormat, LogLevel
from bridge.turn import Meanwhile, SideRule, SystemPromptMode
from bridge.values import (
    Methods,
    base_url,
    flag,
    folder,
    hosts,
    methods,
    names,
    one_of,
    redis_url,
    seconds,
    side_rules,
    text,
    token,
    url_prefix,
    whole,
)


def setting(variable: str, default: str | None, meaning: str, parse: Callable[[str], Any], secret: bool = False) -> Any:
    metadata = {"variable": variable, "default": default, "meaning": meaning, "parse": parse, "secret": secret}
    return field(metadata=metadata)


@dataclass(frozen=True, slots=True)
class Settings:
    letta_base_url: str = setting(
        "LETTA_BASE_URL", None, "Address of the Letta server, e.g. `http://localhost:8283`", base_url
    )
    letta_api_key: str = setting("LETTA_API_KEY", "", "Letta's token or server password, if it wants one", token, True)
    host: str = setting("BRIDGE_HOST", "0.0.0.0", "Address to listen on", text)  # nosec B104 # platforms route from outside
    port: int = setting("PORT", "8080", "Port to listen on", whole(0, 65535))
    url_prefix: str = setting(
        "BRIDGE_URL_PREFIX", "", "Path under which a proxy serves the bridge, e.g. `/bridge`", url_prefix
    )
    workers: int = setting("WEB_CONCURRENCY", "2", "Worker processes", whole(1, 64))
    threads: int = setting("BRIDGE_THREADS", "64", "Requests that one worker serves at once", whole(4, 1024))
    api_keys: tuple[ApiKey, ...] = setting(
        "BRIDGE_API_KEYS",
        "",
        "Keys that clients may use, between commas: `name:sha256[:agents[:options]]` or plain; see [Keys](#keys)",
        api_keys,
        True,
    )
    allow_anonymous: bool = setting(
        "BRIDGE_ALLOW_ANONYMOUS", "0", "1: serve without any key. Only where nobody else can reach the port", flag
    )
    admin_password: str = setting(
        "BRIDGE_ADMIN_PASSWORD", "", "Password of the admin page; without one the page is off", text, True
    )
    keep_text: bool = setting(
        "BRIDGE_KEEP_TEXT",
        "1",
        "0: the admin page's history keeps no arguments, results and answers, only their sizes",
        flag,
    )
    methods: Methods = setting(
        "BRIDGE_METHOD",
        "auto",
        "How calls of client tools are caught; `auto` takes the best. Agents may differ: `auto, my-agent=prompt`",
        methods,
    )
    system_prompt: SystemPromptMode = setting(
        "BRIDGE_SYSTEM_PROMPT",
        "block",
        "Where a client's system prompt goes: `block` (a read-only memory block), `message` (a system message that"
        " opens the conversation), `ignore`",
        one_of(SystemPromptMode),
    )
    toolsets: Path | None = setting(
        "BRIDGE_TOOLSETS",
        "",
        "Folder of tools that are added to requests: `all.json`, `agents/NAME.json`, `keys/NAME.json`",
        folder,
    )
    side_rules: tuple[SideRule, ...] = setting(
        "BRIDGE_SIDE_REQUESTS",
        "",
        "File with more rules to know requests that must not reach the agent's memory, as in bridge/side_requests.json",
        side_rules,
    )
    final_tools: frozenset[str] = setting(
        "BRIDGE_FINAL_TOOLS",
        "attempt_completion,submit_and_exit",
        "Tools of clients that take only a call of them for the end: plain text becomes such a call",
        names,
    )
    image_urls: bool = setting(
        "BRIDGE_IMAGE_URLS",
        "0",
        "1: pass addresses of pictures on; then the Letta server fetches what clients name",
        flag,
    )
    cors_origins: frozenset[str] = setting(
        "BRIDGE_CORS_ORIGINS",
        "",
        "Origins whose pages may call the API from a browser, between commas; `*` for all",
        names,
    )
    trusted_hosts: frozenset[str] = setting(
        "BRIDGE_TRUSTED_HOSTS",
        "",
        "Host names that clients may use, between commas, `.example.com` for all below it; empty for any",
        hosts,
    )
    proxies: int = setting(
        "BRIDGE_PROXIES",
        "0",
        "Proxies in front that set `X-Forwarded-For` and `-Proto`, such as 1 for Heroku's router",
        whole(0, 10),
    )
    data_dir: Path = setting("BRIDGE_DATA_DIR", ".bridge", "Folder for what the workers share", Path)
    redis_url: str = setting(
        "REDIS_URL",
        "",
        "Redis (`redis://` or `rediss://`) that the workers share; needed when they run on several machines",
        redis_url,
        True,
    )
    redis_verify: bool = setting(
        "BRIDGE_REDIS_VERIFY", "1", "0: take any certificate of a `rediss://` server, as Heroku's Redis needs", flag
    )
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
    meanwhile: Meanwhile = setting(
        "BRIDGE_MEANWHILE",
        "wait",
        "What another client's message does while a client runs a tool for the agent: `wait`, `refuse` (409), or"
        " `close` the call",
        one_of(Meanwhile),
    )
    tool_wait: float = setting(
        "BRIDGE_TOOL_WAIT",
        "30",
        "Seconds that a client's open tool call holds up other clients; after that a message closes it",
        seconds(1, 86400),
    )
    max_turns: int = setting(
        "BRIDGE_MAX_TURNS",
        "0",
        "Turns that one worker runs at once; one more is refused with 503. 0: seven of eight threads",
        whole(0, 1023),
    )
    reply_wait: float = setting(
        "BRIDGE_REPLY_WAIT",
        "600",
        "Seconds until an unstreamed request is answered with 504 while its turn goes on; a repeat gets the answer",
        seconds(1, 86400),
    )
    journal_keep: float = setting(
        "BRIDGE_JOURNAL_KEEP",
        "900",
        "Seconds that the answer of a turn is kept for a client that did not get it",
        seconds(10, 86400),
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
    read_timeout: float = setting(
        "BRIDGE_READ_TIMEOUT", "10", "Whole seconds that a client may pause within its request", seconds(1, 600)
    )
    drain: float = setting(
        "BRIDGE_DRAIN",
        "20",
        "Seconds that turns may go on when the service is told to end; platforms kill it 10 s after that or so",
        seconds(0, 3600),
    )
    key_rate: int = setting(
        "BRIDGE_KEY_RATE", "600", "Requests that a key may make in a minute; 0: any number", whole(0, 1_000_000)
    )
    key_turns: int = setting(
        "BRIDGE_KEY_TURNS", "32", "Turns that a key may have under way at once; 0: any number", whole(0, 1024)
    )
    max_body: int = setting("BRIDGE_MAX_BODY", "20000000", "Largest request body, in bytes", whole(1000, 10**9))
    max_tools: int = setting("BRIDGE_MAX_TOOLS", "512", "Most tools that one request may offer", whole(1, 10_000))
    metrics_token: str = setting(
        "BRIDGE_METRICS_TOKEN",
        "",
        "Bearer token that Prometheus sends to `/metrics`; without one they are off",
        token,
        True,
    )
    max_schema: int = setting(
        "BRIDGE_MAX_SCHEMA", "262144", "Largest schema of a tool, in characters of JSON", whole(100, 10**8)
    )
    max_depth: int = setting(
        "BRIDGE_MAX_DEPTH",
        "64",
        "Deepest nesting of a tool's schema; the request around it may add eight levels",
        whole(8, 200),
    )
    max_result: int = setting(
        "BRIDGE_MAX_RESULT", "1000000", "Longest result of a tool, in characters", whole(100, 10**8)
    )
    log_format: LogFormat = setting(
        "BRIDGE_LOG_FORMAT",
        "auto",
        "`json`: a JSON object a line; `text`: for people; `auto`: text at a terminal, else JSON",
        one_of(LogFormat),
    )
    log_level: LogLevel = setting(
        "BRIDGE_LOG_LEVEL",
        "info",
        "Least level of what is logged: `debug`, `info`, `warning`, `error`",
        one_of(LogLevel),
    )
    stub_idle: float = setting(
        "BRIDGE_STUB_IDLE",
        "86400",
        "Seconds that a client's tool may stand on the Letta server while no agent has it",
        seconds(0, 31_536_000),
    )
    sweep_interval: float = setting(
        "BRIDGE_SWEEP_INTERVAL",
        "3600",
        "Seconds between two sweeps for such tools; 0: only by the command `sweep`",
        seconds(0, 31_536_000),
    )

    def secrets(self) -> list[str]:
        """What must never be told to anybody. Keys of clients are not among it: they are known as hashes only."""
        password = re.search(r"://[^/@]*:([^/@]+)@", self.redis_url)
        found = [self.letta_api_key, self.admin_password, self.metrics_token, password[1] if password else ""]
        return [secret for secret in found if secret]

    @property
    def turns_at_once(self) -> int:
        """Some threads are always left for what is quick: health, models, the admin page."""
        most = self.threads - max(1, self.threads // 8)
        return min(self.max_turns or most, most)


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


def read_settings(environment: Mapping[str, str], *, serving: bool = True) -> Settings:
    """The settings, or one SettingsError that lists all that is wrong with the environment.

    Without `serving` no client will ask, so no keys are needed.
    """
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
    if serving and not values.get("api_keys", True) and not values.get("allow_anonymous", True):
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


def make_data_folder(settings: Settings) -> None:
    """So that a folder that can't be used is told as what it is: a wrong setting."""
    try:
        settings.data_dir.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=settings.data_dir):
            return
    except OSError as fault:
        raise SettingsError(
            f"BRIDGE_DATA_DIR: {str(settings.data_dir)!r} can't be written ({fault.strerror});"
            " name a folder that the service may make or write to"
        ) from None
