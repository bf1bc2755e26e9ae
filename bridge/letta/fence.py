"""The gateway of one turn: it leads to the server only as long as the turn holds its agent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from bridge.letta.gateway import Gateway


def fenced(gateway: Gateway, check: Callable[[], None]) -> Gateway:
    """The same gateway, but `check` may raise before each call."""
    return cast(Gateway, _Fence(gateway, check))


class _Fence:
    def __init__(self, gateway: Gateway, check: Callable[[], None]) -> None:
        self._gateway = gateway
        self._check = check

    def __getattr__(self, verb: str) -> Any:
        self._check()
        return getattr(self._gateway, verb)
