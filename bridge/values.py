"""Parsers for settings. A ValueError's message, such as "must be 1 or 0", is reported after "VARIABLE: 'text'"."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any, get_args
from urllib.parse import parse_qs, urlsplit

from bridge.turn import ChatsMode, Method, SideRule

# The rules for side requests that are the bridge's own.
_USUAL_RULES = Path(__file__).parent / "side_requests.json"
# The parameter in the address of a Redis server, known to the library, that says which certificates are accepted.
_VERIFICATION = "ssl_cert_reqs"
# The most tools of one request that an agent gets itself.
MOST_DIRECT_TOOLS = 512


@dataclass(frozen=True, slots=True)
class Methods:
    """The interception methods that BRIDGE_METHOD names; the keys of `by_agent` are names and ids of agents."""

    default: Method
    by_agent: Mapping[str, Method]

    def for_agent(self, agent_id: str, agent_name: str) -> Method:
        """Returns the method for this agent: by its id, otherwise by its name, otherwise the default."""
        return self.by_agent.get(agent_id) or self.by_agent.get(agent_name) or self.default


@dataclass(frozen=True, slots=True)
class ChatsModes:
    """What BRIDGE_CHATS says; the keys of `by_agent` are names and ids of agents."""

    default: ChatsMode
    by_agent: Mapping[str, ChatsMode]

    def for_agent(self, agent_id: str, agent_name: str) -> ChatsMode:
        """Returns what is said for this agent: by its id, otherwise by its name, otherwise for all."""
        return self.by_agent.get(agent_id) or self.by_agent.get(agent_name) or self.default


@dataclass(frozen=True, slots=True)
class ToolSearch:
    """From how many tools on an agent gets only a few of them, and finds the others: with more than that; 0: never. The
    keys of `by_agent` are names and ids of agents. `always`: tools that an agent gets in any case.
    """

    above: int
    by_agent: Mapping[str, int]
    always: frozenset[str]

    def above_for(self, agent_id: str, agent_name: str) -> int:
        """Returns the number for this agent: by its id, otherwise by its name, otherwise that for all."""
        return self.by_agent.get(agent_id, self.by_agent.get(agent_name, self.above))


@dataclass(frozen=True, slots=True)
class OwnFiles:
    """The operator's folder BRIDGE_FILES, and all rules for side requests, those of the folder last."""

    folder: Path | None
    side_rules: tuple[SideRule, ...]

    @property
    def tools(self) -> Path | None:
        """The folder with tools that are added to requests."""
        return self.folder / "tools" if self.folder and (self.folder / "tools").exists() else None


@dataclass(frozen=True, slots=True)
class ToolWait:
    """For how long an open tool call keeps messages of other conversations waiting, or has them refused."""

    seconds: float
    refuse: bool = False


def parse_text(value: str) -> str:
    return value


def parse_flag(value: str) -> bool:
    """Returns whether a setting is switched on; "" is off."""
    if value.lower() in ("1", "true", "yes", "on"):
        return True
    if value.lower() in ("", "0", "false", "no", "off"):
        return False
    raise ValueError("must be 1 or 0")


def whole_number_parser(least: int, most: int) -> Callable[[str], int]:
    """Returns a parser for whole numbers from `least` to `most`, both included."""

    def parse(value: str) -> int:
        if not re.fullmatch(r"-?\d{1,12}", value) or not least <= int(value) <= most:
            raise ValueError(f"must be a whole number from {least} to {most}")
        return int(value)

    return parse


def seconds_parser(least: float, most: float) -> Callable[[str], float]:
    """Returns a parser for a number of seconds, such as 0.5, from `least` to `most`, both included."""

    def parse(value: str) -> float:
        if not re.fullmatch(r"\d{1,9}(\.\d+)?", value) or not least <= float(value) <= most:
            raise ValueError(f"must be a number of seconds from {least:.15g} to {most:.15g}")
        return float(value)

    return parse


def parse_tool_wait(value: str) -> ToolWait:
    """Parses BRIDGE_TOOL_WAIT, such as `30` or `refuse=30`."""
    refuse, _, seconds = value.rpartition("=")
    if refuse not in ("", "refuse") or ("=" in value and not refuse):
        raise ValueError("must be a number of seconds, or refuse= and such a number")
    return ToolWait(seconds_parser(0, 3600)(seconds), bool(refuse))


def choice_parser(choices: Any) -> Callable[[str], str]:
    """Returns a parser for the words of `choices`, a Literal type."""

    def parse(value: str) -> str:
        if value not in get_args(choices):
            raise ValueError("must be one of " + ", ".join(get_args(choices)))
        return value

    return parse


def parse_methods(value: str) -> Methods:
    """Parses BRIDGE_METHOD, such as `auto, my-agent=prompt`. Without a method for all agents, that is `auto`."""
    return Methods(*_parse_words(value, Method, "auto"))


def parse_chats(value: str) -> ChatsModes:
    """Parses BRIDGE_CHATS, such as `one, my-agent=each`. Without a word for all agents, that is `one`."""
    return ChatsModes(*_parse_words(value, ChatsMode, "one"))


def _parse_words(value: str, choices: Any, default: Any) -> tuple[Any, dict[str, Any]]:
    """Returns the word for all agents, and those for some, from a list such as `word, my-agent=other`."""
    by_agent: dict[str, Any] = {}
    for item in value.split(","):
        agent, equals, word = item.rpartition("=")
        chosen = choice_parser(choices)(word.strip())
        if equals:
            by_agent[agent.strip()] = chosen
        else:
            default = chosen
    return default, by_agent


def parse_tool_search(value: str) -> ToolSearch:
    """Parses BRIDGE_TOOL_SEARCH, such as `100, my-agent=40, +read_file`."""
    parse_number = whole_number_parser(0, MOST_DIRECT_TOOLS)
    items = [item.strip() for item in value.split(",")]
    always = {item[1:].strip() for item in items if item.startswith("+")}
    numbers = [item.rpartition("=") for item in items if not item.startswith("+")]
    for_all = [parse_number(number.strip()) for _, equals, number in numbers if not equals]
    by_agent = {agent.strip(): parse_number(number.strip()) for agent, equals, number in numbers if equals}
    if len(for_all) != 1 or "" in always or "" in by_agent:
        raise ValueError("must have one number for all agents, as in `100, my-agent=40, +read_file`")
    return ToolSearch(for_all[0], by_agent, frozenset(always))


def parse_names(value: str) -> frozenset[str]:
    """Returns the names in a list with commas."""
    return frozenset(name.strip() for name in value.split(",") if name.strip())


def parse_hosts(value: str) -> frozenset[str]:
    """Returns the host names of BRIDGE_TRUSTED_HOSTS. A wrong name would shut out all clients, so it is an error."""
    found = parse_names(value.lower())
    if not all(re.fullmatch(r"\.?\w[\w.-]*(:\d{1,5})?|\[[0-9a-f:.]+\]", host) for host in found):
        raise ValueError("must be host names such as bridge.example.com, or .example.com for all below it")
    return frozenset(host if host.isascii() else _as_sent(host) for host in found)


def _as_sent(host: str) -> str:
    """Returns a host name with letters beyond ASCII as clients send it, such as `xn--bcher-kva.example`."""
    return ("." if host.startswith(".") else "") + host.removeprefix(".").encode("idna").decode()


def is_loopback(host: str) -> bool:
    """Returns whether only this machine reaches a service that listens on this address."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def parse_own_files(value: str) -> OwnFiles:
    """Returns what the folder BRIDGE_FILES has; "" for no folder. The bridge's own rules are the first."""
    if not value:
        return OwnFiles(None, _read_rules(_USUAL_RULES))
    folder = Path(value)
    if not folder.is_dir():
        raise ValueError("must be a folder")
    named = {path.name: path for path in sorted(folder.iterdir()) if not path.name.startswith(".")}
    tools, rules = named.pop("tools", None), named.pop("side_requests.json", None)
    if named:
        raise ValueError(f"may hold `tools` and `side_requests.json`, and has {', '.join(named)}")
    if tools and not tools.is_dir():
        raise ValueError("has a file `tools`, which must be a folder")
    return OwnFiles(folder, _read_rules(_USUAL_RULES) + (_read_rules(rules) if rules else ()))


def _read_rules(file: Path) -> tuple[SideRule, ...]:
    try:
        rows = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as fault:
        raise ValueError(f"has a file {file.name} that can't be read as JSON: {fault}") from None
    if not isinstance(rows, list):
        raise ValueError(f"has a file {file.name} that must hold a JSON array of rules")
    return tuple(_parse_side_rule(row, file) for row in rows)


def _parse_side_rule(row: Any, file: Path) -> SideRule:
    """Returns the rule of one item. A beginning of fewer than 8 characters would fit too many messages."""
    try:
        rule = SideRule(**{**row, "contains": tuple(row.get("contains", ()))})
    except (TypeError, AttributeError):
        rule = None
    if rule is None or not _has_right_types(row):
        raise ValueError(
            f"has a rule in {file.name} that is not of the form of those in bridge/side_requests.json: {row!r:.200}"
        )
    if rule.role not in ("system", "user") or len(rule.begins) < 8:
        raise ValueError(
            f"has the rule {rule.name!r} in {file.name}, which needs a role and at least 8 characters in `begins`"
        )
    return rule


def _has_right_types(row: dict[str, Any]) -> bool:
    """Returns whether all types are right. A text in place of the list `contains` would count as its letters."""
    contains = row.get("contains", [])
    words = [row["name"], row["begins"], *(contains if isinstance(contains, list) else [None])]
    flags = [row.get(name, False) for name in ("last", "alone", "tools", "summary")]
    return all(isinstance(word, str) for word in words) and all(isinstance(flag, bool) for flag in flags)


def parse_base_url(value: str) -> str:
    """Returns the Letta server's address, which may have a path. Slashes and one `/v1` at its end are taken off: people
    copy it from clients of OpenAI's API, and the bridge adds `/v1` itself.
    """
    match = re.fullmatch(r"https?://(\[[0-9A-Fa-f:.]+\]|[^\s/?#@:\[\]]+)(?::(\d{1,5}))?(/[^\s?#]*)?", value)
    if match is None or int(match[2] or 0) > 65535:
        raise ValueError("must be a URL such as http://localhost:8283, without query or user name")
    path = match[3] or ""
    return value.removesuffix(path) + path.rstrip("/").removesuffix("/v1").rstrip("/")


def parse_url_prefix(value: str) -> str:
    """Returns the path under which a proxy serves the bridge, without a slash at the end; "" for no path."""
    if value and not re.fullmatch(r"(/[A-Za-z0-9._~-]+)+/?", value):
        raise ValueError("must be a path such as /bridge")
    return value.rstrip("/")


def parse_token(value: str) -> str:
    """Returns the token unchanged, also "", if an HTTP header can carry it."""
    if not re.fullmatch(r"[!-~]*", value):
        raise ValueError("has characters that a header cannot carry")
    return value


def parse_redis_url(value: str) -> str:
    """Returns the address of a Redis server unchanged; "" if Redis is not used."""
    if value and not re.fullmatch(r"(rediss?|unix)://\S+", value):
        raise ValueError("must begin with redis:// or rediss://")
    if not _is_password_escaped(value):
        raise ValueError("must be like redis://:password@host:6379/0; in a password / is written %2F, # %23 and ? %3F")
    for wanted in parse_qs(urlsplit(value).query, keep_blank_values=True).get(_VERIFICATION, ()):
        if wanted not in ("none", "required") or not value.startswith("rediss://"):
            raise ValueError(f"may end in ?{_VERIFICATION}=none or =required, and only with rediss://")
    return value


def without_verification(redis_url: str) -> str:
    """Returns the address of a Redis server so that any certificate is accepted, unless it says what is."""
    if not redis_url.startswith("rediss://") or _VERIFICATION in redis_url:
        return redis_url
    return f"{redis_url}{'&' if '?' in redis_url else '?'}{_VERIFICATION}=none"


def _is_password_escaped(url: str) -> bool:
    """Returns False if a bare / # or ? in the password ends the host part: the port is invalid, or the @ outside."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    return parts.scheme == "unix" or "@" not in url or "@" in parts.netloc
