"""The gateway of one turn: its calls go to the server only while the turn holds its agent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from bridge.letta.gateway import Gateway


def fenced(gateway: Gateway, check: Callable[[], None]) -> Gateway:
    """Returns a gateway that calls `check` before each call; when `check` raises, the call is not made."""
    return cast(Gateway, _Fence(gateway, check))


class _Fence:
    def __init__(self, gateway: Gateway, check: Callable[[], None]) -> None:
        self._gateway = gateway
        self._check = check

    def __getattr__(self, verb: str) -> Any:
        self._check()
        return getattr(self._gateway, verb)
