"""What `make run` prints when the bridge serves: what to give to a client, and where to look."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence

from bridge.config import Settings
from bridge.directory import Directory
from bridge.errors import BridgeError
from bridge.letta.gateway import Gateway
from bridge.passthrough.rights import serves_letta
from bridge.values import is_loopback
from testbed.network import address_in_the_network

MOST_NAMED = 5
ALL_ADDRESSES = ("0.0.0.0", "::")
NO_RESTART = "It serves as soon as Letta does; for another address, start it again with that as LETTA_BASE_URL."
NEW_KEY = "`./letta-bridge keys new NAME`"


def find_agents(gateway: Gateway, preferred: Sequence[str]) -> tuple[list[str], str]:
    """Returns the agents as clients name them, the preferred ones first, and what is wrong, if anything."""
    try:
        names = [name for name, _ in Directory(gateway).models()]
    except BridgeError as failure:
        return [], f"The bridge runs, but can't serve yet: {failure.message}\n{NO_RESTART}"
    first = [name for name in preferred if name in names]
    trouble = "" if names else "The bridge is ready, but this Letta has no agent yet: make one."
    return first + [name for name in names if name not in first], trouble


def welcome(url: str, settings: Settings, agents: Sequence[str], trouble: str, password: str) -> str:
    """Returns the text for a bridge at `url`. `password` says which one the admin page has."""
    rows = [
        ("base URL", f"{url}/v1"),
        *_addresses_for_others(settings),
        ("API key", _key(settings)),
        ("model", _models(agents, url)),
        *_letta_api(url, settings),
        ("clients", "docs/clients.md says what to fill in: Roo Code, Open WebUI, Codex and others"),
        ("admin", f"{url}/admin/ (password: {password})"),
        ("check it", "./letta-bridge doctor"),
        ("try it", _curl(url, settings, agents)),
    ]
    lines = [f"  {name:<10} {value}" for name, value in rows]
    end = [*_reach(settings), "Ctrl-C stops everything that was started here."]
    return "\n".join(["", trouble or "The bridge is ready.", "", *lines, "", *end, ""])


def _key(settings: Settings) -> str:
    if not settings.api_keys:
        return "anything: none is needed"
    names = ", ".join(dict.fromkeys(key.name for key in settings.api_keys))
    return f"one of BRIDGE_API_KEYS ({names})"


def _models(agents: Sequence[str], url: str) -> str:
    if not agents:
        return "the name of an agent"
    named = ", ".join(_printable(name) for name in agents[:MOST_NAMED])
    more = f" and {len(agents) - MOST_NAMED} more, which {url}/v1/models lists" if len(agents) > MOST_NAMED else ""
    return f"the name of an agent: {named}{more}"


def _curl(url: str, settings: Settings, agents: Sequence[str]) -> str:
    """Returns a request that works when it is pasted into a shell; only a key has to be filled in, if one is needed."""
    key = " -H 'Authorization: Bearer YOUR_KEY'" if settings.api_keys else ""
    body = {"model": agents[0] if agents else "YOUR_AGENT", "messages": [{"role": "user", "content": "Hello!"}]}
    question = shlex.quote(json.dumps(body))
    address = shlex.quote(f"{url}/v1/chat/completions")
    return f"curl {address}{key} -H 'Content-Type: application/json' -d {question}"


def _addresses_for_others(settings: Settings) -> list[tuple[str, str]]:
    """Returns the base URLs on other machines and in containers, if the bridge listens on all addresses."""
    if settings.host.strip("[]") not in ALL_ADDRESSES:
        return []
    end = f"{settings.port}{settings.url_prefix}/v1"
    here = address_in_the_network()
    elsewhere = [("elsewhere", f"http://{here}:{end} on other machines")] if here else []
    return [
        *elsewhere,
        ("", f"http://host.docker.internal:{end} in Docker; on Linux, the container needs"),
        ("", "--add-host host.docker.internal:host-gateway"),
    ]


def _reach(settings: Settings) -> list[str]:
    """Says what to do so that others reach a bridge that only this machine reaches."""
    if not is_loopback(settings.host):
        return []
    start = "BRIDGE_HOST=0.0.0.0" if settings.api_keys else "BRIDGE_HOST=0.0.0.0 BRIDGE_API_KEYS=NAME:..."
    key = "" if settings.api_keys else f" {NEW_KEY} makes a key."
    return [
        f"Only this machine reaches it. For clients in Docker or on other machines:{key}",
        f"Then start with: {start} make run",
        "",
    ]


def _letta_api(url: str, settings: Settings) -> list[tuple[str, str]]:
    shown = ("Letta API", f"{url}/letta (for Letta Code and letta-client: docs/letta.md)")
    return [shown] if serves_letta(settings) else []


def _printable(name: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in name)
