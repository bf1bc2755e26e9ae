"""Refuses requests for host names that the service does not have, before a route is looked for."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any

from flask import Flask, Request
from werkzeug.exceptions import SecurityError
from werkzeug.wsgi import get_host

from bridge.config import Settings

# Host names that are always accepted: commands on the machine itself, such as `chat`, use them.
THIS_MACHINE = ("localhost", "127.0.0.1", "[::1]")
# Load balancers and kubelets request these paths by addresses that no setting can list. The replies reveal nothing.
PROBES = frozenset({"/healthz", "/readyz"})
_PORT = re.compile(r":\d*$")


def accepted_hosts(settings: Settings) -> frozenset[str]:
    """Returns the host names that requests may have; an empty set if they may have any.
    A service without keys that only this machine reaches has no other names: otherwise a web page could lead its own
    name to this machine (DNS rebinding), and read what the service answers.
    """
    if settings.trusted_hosts or settings.serves_this_machine_without_keys:
        return settings.trusted_hosts.union(THIS_MACHINE)
    return frozenset()


def accept_only_hosts(app: Flask, names: Collection[str]) -> None:
    """Makes the app refuse requests for all hosts but these, if any. Flask's own check knows no IPv6 addresses."""
    if not names:
        return
    make_adapter, is_accepted = app.create_url_adapter, host_check(names)

    def make_adapter_for_accepted_host(request: Request | None) -> Any:
        if request is not None and request.path not in PROBES and not is_accepted(get_host(request.environ)):
            raise SecurityError
        return make_adapter(request)

    app.create_url_adapter = make_adapter_for_accepted_host  # type: ignore[method-assign]


def host_check(names: Collection[str]) -> Callable[[str], bool]:
    """Returns a function that says whether a host, maybe with a port, is one of `names`. `.example.com` is itself and
    all hosts below it.
    """
    bare = [_without_port(name) for name in names]
    exact = {name.removeprefix(".") for name in bare}
    endings = tuple(name for name in bare if name.startswith("."))

    def is_accepted(host: str) -> bool:
        asked = _without_port(host.lower())
        return asked in exact or asked.endswith(endings)

    return is_accepted


def _without_port(host: str) -> str:
    return _PORT.sub("", host)
