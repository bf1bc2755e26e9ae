"""Parsers for settings. A ValueError's message, such as "must be 1 or 0", is reported after "VARIABLE: 'text'"."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args
from urllib.parse import urlsplit

from bridge.turn import Method, SideRule


@dataclass(frozen=True, slots=True)
class Methods:
    """The interception methods that BRIDGE_METHOD names; the keys of `by_agent` are names and ids of agents."""

    default: Method
    by_agent: Mapping[str, Method]

    def for_agent(self, agent_id: str, agent_name: str) -> Method:
        """Returns the method for this agent: by its id, otherwise by its name, otherwise the default."""
        return self.by_agent.get(agent_id) or self.by_agent.get(agent_name) or self.default


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


def choice_parser(choices: Any) -> Callable[[str], str]:
    """Returns a parser for the words of `choices`, a Literal type."""

    def parse(value: str) -> str:
        if value not in get_args(choices):
            raise ValueError("must be one of " + ", ".join(get_args(choices)))
        return value

    return parse


def parse_methods(value: str) -> Methods:
    """Parses BRIDGE_METHOD, such as `auto, my-agent=prompt`. Without a method for all agents, that is `auto`."""
    default: Method = "auto"
    by_agent: dict[str, Method] = {}
    for item in value.split(","):
        agent, equals, method = item.rpartition("=")
        chosen: Any = choice_parser(Method)(method.strip())
        if equals:
            by_agent[agent.strip()] = chosen
        else:
            default = chosen
    return Methods(default, by_agent)


def parse_folder(value: str) -> Path | None:
    """Returns the path of a folder that exists, None for an empty setting."""
    if value and not Path(value).is_dir():
        raise ValueError("must be a folder")
    return Path(value) if value else None


def parse_names(value: str) -> frozenset[str]:
    """Returns the names in a list with commas."""
    return frozenset(name.strip() for name in value.split(",") if name.strip())


def parse_hosts(value: str) -> frozenset[str]:
    """Returns the host names of BRIDGE_TRUSTED_HOSTS. A wrong name would shut out all clients, so it is an error."""
    found = parse_names(value.lower())
    if not all(re.fullmatch(r"\.?\w[\w.-]*(:\d{1,5})?|\[[0-9a-f:.]+\]", host) for host in found):
        raise ValueError("must be host names such as bridge.example.com, or .example.com for all below it")
    return found


def parse_side_rules(value: str) -> tuple[SideRule, ...]:
    """Returns the bridge's own rules for side requests, then those of the file `value` ("" for no file)."""
    files = [Path(__file__).parent / "side_requests.json", *([Path(value)] if value else [])]
    return tuple(_parse_side_rule(row, file) for file in files for row in _read_rules(file))


def _read_rules(file: Path) -> list[Any]:
    try:
        rows = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as fault:
        raise ValueError(f"can't be read as JSON: {fault}") from None
    if not isinstance(rows, list):
        raise ValueError("must hold a JSON array of rules")
    return rows


def _parse_side_rule(row: Any, file: Path) -> SideRule:
    """Returns the rule of one item. A beginning of fewer than 8 characters would fit too many messages."""
    try:
        rule = SideRule(**{**row, "contains": tuple(row.get("contains", ()))})
    except (TypeError, AttributeError):
        rule = None
    if rule is None or not _has_right_types(row):
        raise ValueError(
            f"a rule in {file.name} is not of the form of those in bridge/side_requests.json: {row!r:.200}"
        )
    if rule.role not in ("system", "user") or len(rule.begins) < 8:
        raise ValueError(f"the rule {rule.name!r} in {file.name} needs a role and at least 8 characters in `begins`")
    return rule


def _has_right_types(row: dict[str, Any]) -> bool:
    """Returns whether all types are right. A text in place of the list `contains` would count as its letters."""
    contains = row.get("contains", [])
    words = [row["name"], row["begins"], *(contains if isinstance(contains, list) else [None])]
    flags = [row.get(name, False) for name in ("last", "alone", "tools", "summary")]
    return all(isinstance(word, str) for word in words) and all(isinstance(flag, bool) for flag in flags)


def parse_base_url(value: str) -> str:
    """Returns the Letta server's address, which may have a path, without a slash at the end."""
    match = re.fullmatch(r"https?://(\[[0-9A-Fa-f:.]+\]|[^\s/?#@:\[\]]+)(?::(\d{1,5}))?(/[^\s?#]*)?", value)
    if match is None or int(match[2] or 0) > 65535:
        raise ValueError("must be a URL such as http://localhost:8283, without query or user name")
    return value.rstrip("/")


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
    return value


def _is_password_escaped(url: str) -> bool:
    """Returns False if a bare / # or ? in the password ends the host part: the port is invalid, or the @ outside."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    return parts.scheme == "unix" or "@" not in url or "@" in parts.netloc
