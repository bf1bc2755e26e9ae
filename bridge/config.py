"""The settings of the bridge. Only this module reads them from the environment, once, before the service starts."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from dotenv import dotenv_values

from bridge.errors import SettingsError
from bridge.keys import ApiKey, KeyFault, LettaRight, parse_api_keys
from bridge.logs import LogLevel
from bridge.turn import SystemPromptMode
from bridge.values import (
    MOST_DIRECT_TOOLS,
    ChatsModes,
    Methods,
    OwnFiles,
    ToolSearch,
    ToolWait,
    choice_parser,
    is_loopback,
    parse_base_url,
    parse_chats,
    parse_flag,
    parse_hosts,
    parse_methods,
    parse_names,
    parse_own_files,
    parse_redis_url,
    parse_text,
    parse_token,
    parse_tool_search,
    parse_tool_wait,
    parse_url_prefix,
    seconds_parser,
    whole_number_parser,
    without_verification,
)

# Environment variables that earlier versions of the bridge had, and what the bridge does now in their place.
FORMER_VARIABLES = {
    "BRIDGE_CONNECT_TIMEOUT": "it is always 3 seconds",
    "BRIDGE_LETTA_TIMEOUT": "it is always 30 seconds",
    "BRIDGE_HEADER_WAIT": "it is always 10 seconds",
    "BRIDGE_PING_INTERVAL": "it is always 15 seconds",
    "BRIDGE_READ_TIMEOUT": "it is always 10 seconds",
    "BRIDGE_JOURNAL_KEEP": "it is always 900 seconds",
    "BRIDGE_SWEEP_INTERVAL": "it is always 3600 seconds",
    "BRIDGE_STUB_IDLE": "it is always 86400 seconds",
    "BRIDGE_KEY_RATE": "it is always 600 requests a minute, except for keys with their own `rate`",
    "BRIDGE_KEY_TURNS": "it is always 32 turns at once, except for keys with their own `turns`",
    "BRIDGE_MAX_BODY": "it is always 20000000 bytes",
    "BRIDGE_MAX_TOOLS": "it is always 5000 tools, of which an agent gets 512 at most, see BRIDGE_TOOL_SEARCH",
    "BRIDGE_MAX_SCHEMA": "it is always 262144 characters",
    "BRIDGE_MAX_DEPTH": "it is always 64 levels",
    "BRIDGE_MAX_RESULT": "it is always 1000000 characters",
    "BRIDGE_THREADS": "it is always 64 threads, or more if BRIDGE_MAX_TURNS needs them",
    "BRIDGE_LOG_FORMAT": "it is always text at a terminal and JSON elsewhere",
    "BRIDGE_MEANWHILE": "BRIDGE_TOOL_WAIT is a number of seconds, 0 for `close`, or such as refuse=30",
    "BRIDGE_REDIS_VERIFY": "REDIS_URL may end in ?ssl_cert_reqs=none, and on Heroku need not",
    "BRIDGE_TOOLSETS": "BRIDGE_FILES is a folder in which that folder is called tools",
    "BRIDGE_SIDE_REQUESTS": "BRIDGE_FILES is a folder in which that file is called side_requests.json",
}
PREFIX = "BRIDGE_"
# Variables with the prefix that are not settings of the service: the first two are for the command `chat`, the last is
# for compose.yaml, and is in the same file `.env` as the settings.
OTHER_VARIABLES = frozenset({"BRIDGE_URL", "BRIDGE_KEY", "BRIDGE_PUBLISH"})
# Kubernetes sets such variables for each Service, which may be called `bridge`.
_OF_KUBERNETES = re.compile(PREFIX + r"(.*_)?(SERVICE_(HOST|PORT(_.*)?)|PORT_\d+_(TCP|UDP|SCTP)(_.*)?)")


def setting(variable: str, default: str | None, meaning: str, parse: Callable[[str], Any], secret: bool = False) -> Any:
    """Returns a field of Settings for an environment variable. `default` is the text for an empty or missing one; None:
    it must be set. `meaning` is for docs/settings.md and the admin page. A `secret` is never shown.
    """
    metadata = {"variable": variable, "default": default, "meaning": meaning, "parse": parse, "secret": secret}
    return field(metadata=metadata)


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings: first those that an environment variable sets, then parameters that only tests change."""

    letta_base_url: str = setting(
        "LETTA_BASE_URL", None, "Address of the Letta server, e.g. `http://localhost:8283`", parse_base_url
    )
    letta_api_key: str = setting(
        "LETTA_API_KEY", "", "Letta's token or server password, if it needs one", parse_token, True
    )
    host: str = setting("BRIDGE_HOST", "0.0.0.0", "Address to listen on", parse_text)  # nosec B104 # platforms route from outside
    port: int = setting("PORT", "8080", "Port to listen on", whole_number_parser(0, 65535))
    url_prefix: str = setting(
        "BRIDGE_URL_PREFIX", "", "Path under which a proxy serves the bridge, e.g. `/bridge`", parse_url_prefix
    )
    workers: int = setting("WEB_CONCURRENCY", "2", "Worker processes", whole_number_parser(1, 64))
    max_turns: int = setting(
        "BRIDGE_MAX_TURNS",
        "0",
        "Turns that one worker runs at once; further turns get 503. 0 = 56, which is 7/8 of its 64 threads;"
        " a higher number adds threads",
        whole_number_parser(0, 896),
    )
    api_keys: tuple[ApiKey, ...] = setting(
        "BRIDGE_API_KEYS",
        "",
        "Keys of clients, separated by commas: `name:sha256[:agents[:options]]` or plain; see [Keys](#keys)",
        parse_api_keys,
        True,
    )
    allow_anonymous: bool = setting(
        "BRIDGE_ALLOW_ANONYMOUS", "0", "1: serve without any key. Only where nobody else can reach the port", parse_flag
    )
    letta_api: LettaRight = setting(
        "BRIDGE_LETTA_API",
        "off",
        "Letta's own API below `/letta`: `off`, `agents` (messages, memory and state of agents) or `all` (everything"
        " that the Letta server can do). Keys may differ; a key for certain agents never has `all`",
        choice_parser(LettaRight),
    )
    admin_password: str = setting(
        "BRIDGE_ADMIN_PASSWORD", "", "Password of the admin page; without one the page is off", parse_text, True
    )
    keep_text: bool = setting(
        "BRIDGE_KEEP_TEXT",
        "1",
        "0: the admin page's history keeps only the sizes of arguments, results and answers, not their text, and"
        " nothing of what users say",
        parse_flag,
    )
    methods: Methods = setting(
        "BRIDGE_METHOD",
        "auto",
        "How calls of client tools are caught; `auto` takes the best way. Agents may differ: `auto, my-agent=prompt`",
        parse_methods,
    )
    system_prompt: SystemPromptMode = setting(
        "BRIDGE_SYSTEM_PROMPT",
        "block",
        "Where a client's system prompt goes: `block` (a read-only memory block), `message` (a system message that"
        " opens the conversation), `ignore`",
        choice_parser(SystemPromptMode),
    )
    history_limit: int = setting(
        "BRIDGE_HISTORY_LIMIT",
        "200000",
        "Characters of older messages, unknown to the agent, that one turn tells it; 0: only what comes after the last"
        " assistant message is new",
        whole_number_parser(0, 10_000_000),
    )
    own_files: OwnFiles = setting(
        "BRIDGE_FILES",
        "",
        "Folder of your own files: `all.json`, `agents/NAME.json` and `keys/NAME.json` in its folder `tools` are tools"
        " that are added to requests; `side_requests.json` has more rules that recognise requests which must not reach"
        " the agent's memory, in the form of bridge/side_requests.json",
        parse_own_files,
    )
    final_tools: frozenset[str] = setting(
        "BRIDGE_FINAL_TOOLS",
        "attempt_completion,submit_and_exit",
        "Tools by which a client expects a task to end: a plain answer is returned as a call of such a tool",
        parse_names,
    )
    tool_search: ToolSearch = setting(
        "BRIDGE_TOOL_SEARCH",
        "100",
        "With more tools than this in a request, the agent gets a few of them and a search for the others; 0: it always"
        " gets all, 512 at most. Agents may differ, and `+` names tools that it always gets:"
        " `100, my-agent=40, +read_file`",
        parse_tool_search,
    )
    chats: ChatsModes = setting(
        "BRIDGE_CHATS",
        "one",
        "`one`: all chats of an agent share its context, as in Letta. `each`: every chat has a context of its own."
        " `each+main`: after each turn, Letta's own programs find the main context again. Agents may differ:"
        " `one, my-agent=each`",
        parse_chats,
    )
    format_retries: int = setting(
        "BRIDGE_FORMAT_RETRIES",
        "1",
        "How often an agent is asked again for a reply without the form that `response_format` asks for; 0 = never",
        whole_number_parser(0, 5),
    )
    image_urls: bool = setting(
        "BRIDGE_IMAGE_URLS",
        "0",
        "1: pass addresses of pictures on to the Letta server, which then fetches any address that a client names",
        parse_flag,
    )
    cors_origins: frozenset[str] = setting(
        "BRIDGE_CORS_ORIGINS",
        "",
        "Origins whose pages may call the API from a browser, separated by commas; `*` for all",
        parse_names,
    )
    trusted_hosts: frozenset[str] = setting(
        "BRIDGE_TRUSTED_HOSTS",
        "",
        "Host names that clients may use, separated by commas, `.example.com` for all below it; empty for any."
        " Without keys, a bridge that only this machine reaches has local names and these",
        parse_hosts,
    )
    proxies: int = setting(
        "BRIDGE_PROXIES",
        "0",
        "Number of proxies in front that set `X-Forwarded-For` and `-Proto`, e.g. 1 for Heroku's router",
        whole_number_parser(0, 10),
    )
    data_dir: Path = setting("BRIDGE_DATA_DIR", ".bridge", "Folder for the data that the workers share", Path)
    redis_url: str = setting(
        "REDIS_URL",
        "",
        "Redis (`redis://` or `rediss://`) that the workers share; needed when they run on several machines."
        " `?ssl_cert_reqs=none` at its end accepts any certificate, as on Heroku is done without it",
        parse_redis_url,
        True,
    )
    turn_timeout: float = setting(
        "BRIDGE_TURN_TIMEOUT", "600", "Seconds that an agent may be silent in its turn", seconds_parser(1, 86400)
    )
    wait: float = setting(
        "BRIDGE_WAIT",
        "60",
        "Seconds that a request waits while its agent is busy with another turn",
        seconds_parser(0, 3600),
    )
    tool_wait: ToolWait = setting(
        "BRIDGE_TOOL_WAIT",
        "30",
        "Seconds that a message of another conversation waits while a client runs a tool for the agent; then it closes"
        " the call, with 0 at once. `refuse=30`: it gets 409 for so long. BRIDGE_WAIT ends the wait, too",
        parse_tool_wait,
    )
    reply_wait: float = setting(
        "BRIDGE_REPLY_WAIT",
        "600",
        "Seconds after which an unstreamed request gets 504. Its turn goes on, and the same request gets the answer",
        seconds_parser(1, 86400),
    )
    repeat_wait: float = setting(
        "BRIDGE_REPEAT_WAIT",
        "20",
        "Seconds that a turn goes on when its client hung up before it got anything, so that the same request gets its"
        " answer. 0: the run is cancelled at once",
        seconds_parser(0, 600),
    )
    drain: float = setting(
        "BRIDGE_DRAIN",
        "20",
        "Seconds that turns may go on when the service is told to end; platforms kill it about 10 s later",
        seconds_parser(0, 3600),
    )
    metrics_token: str = setting(
        "BRIDGE_METRICS_TOKEN",
        "",
        "Bearer token that Prometheus sends to `/metrics`; without one they are off, or open to all with"
        " BRIDGE_ALLOW_ANONYMOUS=1",
        parse_token,
        True,
    )
    log_level: LogLevel = setting(
        "BRIDGE_LOG_LEVEL",
        "info",
        "Lowest level that is logged: `debug`, `info`, `warning`, `error`",
        choice_parser(LogLevel),
    )

    # Parameters: no environment variable sets them, only tests change them. Times are in seconds.
    connect_timeout: float = 3.0  # for a connection to Letta
    letta_timeout: float = 30.0  # for one call to Letta that is not a turn
    header_wait: float = 10.0  # a stream waits so long for the first event: an early failure gets its own status
    ping_interval: float = 15.0  # between the comments that keep a quiet stream open
    read_timeout: float = 10.0  # a client may pause so long within its request; whole seconds
    journal_keep: float = 900.0  # the answer of a turn is kept for a client that did not get it
    sweep_interval: float = 3600.0  # between two sweeps; 0: only the command sweeps
    stub_idle: float = 86400.0  # a sweep deletes a stub that no agent has had for so long
    key_rate: int = 600  # requests that a key without `rate` may make in a minute; 0: any number
    key_turns: int = 32  # turns at once of a key without `turns`; 0: any number
    max_body: int = 20_000_000  # bytes of a request's body
    max_tools: int = 5_000  # tools of one request
    most_attached: int = MOST_DIRECT_TOOLS  # tools of one request that an agent gets itself
    max_schema: int = 262_144  # characters as JSON of a tool's schema, or of the reply's
    max_depth: int = 64  # levels of a tool's schema; the request around it may add eight
    max_result: int = 1_000_000  # characters of a tool's result
    least_threads: int = 64  # requests that one worker serves at once; see `threads`
    # One sentence for each variable that is set without effect: of an earlier version, or with a misspelt name.
    ignored_variables: tuple[str, ...] = ()

    def secrets(self) -> list[str]:
        """Returns the passwords and tokens that must never be shown. Of clients' keys, the bridge has only hashes."""
        password = re.search(r"://[^/@]*:([^/@]+)@", self.redis_url)
        found = [self.letta_api_key, self.admin_password, self.metrics_token, password[1] if password else ""]
        return [secret for secret in found if secret]

    @property
    def serves_this_machine_without_keys(self) -> bool:
        return not self.api_keys and is_loopback(self.host)

    @property
    def threads(self) -> int:
        """One worker's threads, each for one request at a time."""
        return self._threads_without_letta + self.passed_on_at_once

    @property
    def _threads_without_letta(self) -> int:
        """The threads for all but requests that are passed on. Turns take at most 7/8 of them."""
        return max(self.least_threads, math.ceil(self.max_turns * 8 / 7))

    @property
    def passed_on_at_once(self) -> int:
        """The requests of Letta's own API, apart from messages, that one worker passes on at once. They have threads of
        their own, so that they and turns do not take each other's. 0 if no client may use this API.
        """
        may_any = self.letta_api != "off" or any(key.letta not in (None, "off") for key in self.api_keys)
        return max(1, self.least_threads // 4) if may_any else 0

    @property
    def most_idle_stubs(self) -> int:
        """The stubs that a sweep leaves of each client's key beside those that agents have."""
        return 2 * self.most_attached

    @property
    def turns_at_once(self) -> int:
        """The turns that one worker may run at once. A thread stays free for health, models, the admin page."""
        return self.max_turns or self._threads_without_letta - max(1, self._threads_without_letta // 8)


def _environment_fields() -> Iterator[Field[Any]]:
    return (item for item in fields(Settings) if item.metadata)


def variable_rows() -> list[dict[str, str]]:
    """Returns the rows of the table in docs/settings.md."""
    return [
        {
            "variable": item.metadata["variable"],
            "default": "(required)" if item.metadata["default"] is None else item.metadata["default"],
            "meaning": item.metadata["meaning"],
        }
        for item in _environment_fields()
    ]


def read_settings(environment: Mapping[str, str], *, serving: bool = True, **parameters: Any) -> Settings:
    """Returns the settings of the environment, or raises one SettingsError that lists all wrong variables. `serving`
    false, as in commands: clients' keys need not be set. `parameters` set fields that have no environment variable.
    """
    values: dict[str, Any] = {}
    faults: list[str] = []
    for item in _environment_fields():
        variable, default = item.metadata["variable"], item.metadata["default"]
        raw = environment.get(variable, "").strip() or default
        if raw is None:
            faults.append(f"{variable} is not set: {item.metadata['meaning']}")
            continue
        try:
            values[item.name] = item.metadata["parse"](raw)
        except KeyFault as fault:
            faults.append(f"{variable}: {fault}")
        except ValueError as fault:
            secret = item.metadata["secret"] or "@" in raw  # a URL may hold a password
            shown = "its value" if secret else repr(raw)
            faults.append(f"{variable}: {shown} {fault}")
    if serving and not values.get("api_keys", True) and not values.get("allow_anonymous", True):
        faults.append(
            "BRIDGE_API_KEYS is not set: anybody who reaches the port could talk to your agents."
            " Set keys, or BRIDGE_ALLOW_ANONYMOUS=1 if only you can reach it"
        )
    ignored = ignored_variables(environment)
    if faults:  # a misspelt variable may be the reason for one that is not set
        raise SettingsError("\n".join((*faults, *ignored)))
    return Settings(**values, ignored_variables=ignored, **parameters)


def ignored_variables(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Returns a sentence for each variable that only looks like a setting, with the setting that may be meant."""
    set_ = {variable: value for variable, value in environment.items() if value.strip()}
    former = (
        f"{variable} is not a setting any more and is ignored: {now}."
        for variable, now in FORMER_VARIABLES.items()
        if variable in set_
    )
    settings = {item.metadata["variable"] for item in _environment_fields()}
    known = settings | FORMER_VARIABLES.keys() | OTHER_VARIABLES
    misspelt = (
        f"{variable} is not a setting and is ignored{_nearest(variable, settings)}"
        for variable, value in sorted(set_.items())
        if variable.startswith(PREFIX) and variable not in known and not _is_of_kubernetes(variable, value)
    )
    return (*former, *misspelt)


def _nearest(variable: str, settings: Iterable[str]) -> str:
    """Returns the end of the sentence, which asks about the setting that may be meant. The prefix is left out: it makes
    all names alike, and some settings do not have it.
    """
    names = {name.removeprefix(PREFIX): name for name in settings}
    found = get_close_matches(variable.removeprefix(PREFIX), sorted(names), n=1)
    return f"; did you mean {names[found[0]]}?" if found else "."


def _is_of_kubernetes(variable: str, value: str) -> bool:
    address = variable.endswith("_PORT") and re.match(r"(tcp|udp|sctp)://", value)
    return bool(address or _OF_KUBERNETES.fullmatch(variable))


def complete_environment(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Adds what the environment lacks: on Heroku, which sets DYNO, that the certificate of its Redis can't be verified;
    elsewhere, the variables of the folder's `.env` file.
    """
    if "DYNO" in environment:
        return {**environment, "REDIS_URL": without_verification(environment.get("REDIS_URL", ""))}
    from_file = {
        key: value for key, value in dotenv_values(folder / ".env", interpolate=False).items() if value is not None
    }
    return {**from_file, **environment}
