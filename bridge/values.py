"""Parsers for settings. Each returns the value of a variable's text.

If the text is wrong it raises a ValueError, whose words follow "VARIABLE: 'text'" in the report: "must be 1 or 0".
"""

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
    """How calls are caught: for all agents, and for the agents in `by_agent`, by name or id."""

    default: Method
    by_agent: Mapping[str, Method]

    def of(self, agent_id: str, agent_name: str) -> Method:
        return self.by_agent.get(agent_id) or self.by_agent.get(agent_name) or self.default


def text(value: str) -> str:
    return value


def flag(value: str) -> bool:
    if value.lower() in ("1", "true", "yes", "on"):
        return True
    if value.lower() in ("", "0", "false", "no", "off"):
        return False
    raise ValueError("must be 1 or 0")


def whole_number(least: int, most: int) -> Callable[[str], int]:
    def parse(value: str) -> int:
        if not re.fullmatch(r"-?\d{1,12}", value) or not least <= int(value) <= most:
            raise ValueError(f"must be a whole number from {least} to {most}")
        return int(value)

    return parse


def seconds(least: float, most: float) -> Callable[[str], float]:
    def parse(value: str) -> float:
        if not re.fullmatch(r"\d{1,9}(\.\d+)?", value) or not least <= float(value) <= most:
            raise ValueError(f"must be a number of seconds from {least:.15g} to {most:.15g}")
        return float(value)

    return parse


def one_of(choices: Any) -> Callable[[str], str]:
    def parse(value: str) -> str:
        if value not in get_args(choices):
            raise ValueError("must be one of " + ", ".join(get_args(choices)))
        return value

    return parse


def methods(value: str) -> Methods:
    """`auto`, or with exceptions for agents, separated by commas: `auto, my-agent=prompt`."""
    default: Method = "auto"
    by_agent: dict[str, Method] = {}
    for item in value.split(","):
        agent, equals, method = item.rpartition("=")
        chosen: Any = one_of(Method)(method.strip())
        if equals:
            by_agent[agent.strip()] = chosen
        else:
            default = chosen
    return Methods(default, by_agent)


def folder(value: str) -> Path | None:
    if value and not Path(value).is_dir():
        raise ValueError("must be a folder")
    return Path(value) if value else None


def names(value: str) -> frozenset[str]:
    return frozenset(name.strip() for name in value.split(",") if name.strip())


def hosts(value: str) -> frozenset[str]:
    """A name that no request can have would shut out everybody, so it is reported at the start."""
    found = names(value.lower())
    if not all(re.fullmatch(r"\.?\w[\w.-]*(:\d{1,5})?|\[[0-9a-f:.]+\]", host) for host in found):
        raise ValueError("must be host names such as bridge.example.com, or .example.com for all below it")
    return found


def side_rules(value: str) -> tuple[SideRule, ...]:
    """The rules that come with the bridge, and the rules of a file of the same form."""
    files = [Path(__file__).parent / "side_requests.json", *([Path(value)] if value else [])]
    return tuple(_side_rule(row, file) for file in files for row in _rows(file))


def _rows(file: Path) -> list[Any]:
    try:
        rows = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as fault:
        raise ValueError(f"can't be read as JSON: {fault}") from None
    if not isinstance(rows, list):
        raise ValueError("must hold a JSON array of rules")
    return rows


def _side_rule(row: Any, file: Path) -> SideRule:
    try:
        rule = SideRule(**{**row, "contains": tuple(row.get("contains", ()))})
    except (TypeError, AttributeError):
        rule = None
    if rule is None or not _is_of_the_form(row):
        raise ValueError(
            f"a rule in {file.name} is not of the form of those in bridge/side_requests.json: {row!r:.200}"
        )
    if rule.role not in ("system", "user") or len(rule.begins) < 8:
        raise ValueError(f"the rule {rule.name!r} in {file.name} needs a role and at least 8 characters in `begins`")
    return rule


def _is_of_the_form(row: dict[str, Any]) -> bool:
    """A text in place of the list `contains` would count as a list of its letters, which any message contains."""
    contains = row.get("contains", [])
    words = [row["name"], row["begins"], *(contains if isinstance(contains, list) else [None])]
    flags = [row.get(name, False) for name in ("last", "alone", "tools")]
    return all(isinstance(word, str) for word in words) and all(isinstance(flag, bool) for flag in flags)


def base_url(value: str) -> str:
    match = re.fullmatch(r"https?://(\[[0-9A-Fa-f:.]+\]|[^\s/?#@:\[\]]+)(?::(\d{1,5}))?(/[^\s?#]*)?", value)
    if match is None or int(match[2] or 0) > 65535:
        raise ValueError("must be a URL such as http://localhost:8283, without query or user name")
    return value.rstrip("/")


def url_prefix(value: str) -> str:
    if value and not re.fullmatch(r"(/[A-Za-z0-9._~-]+)+/?", value):
        raise ValueError("must be a path such as /bridge")
    return value.rstrip("/")


def token(value: str) -> str:
    if not re.fullmatch(r"[!-~]*", value):
        raise ValueError("has characters that a header cannot carry")
    return value


def redis_url(value: str) -> str:
    if value and not re.fullmatch(r"(rediss?|unix)://\S+", value):
        raise ValueError("must begin with redis:// or rediss://")
    if not _is_parsed_whole(value):
        raise ValueError("must be like redis://:password@host:6379/0; in a password / is written %2F, # %23 and ? %3F")
    return value


def _is_parsed_whole(url: str) -> bool:
    """A / # or ? in a password ends the host part: then the text before it is not a valid port, or the @ is lost."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    return parts.scheme == "unix" or "@" not in url or "@" in parts.netloc
