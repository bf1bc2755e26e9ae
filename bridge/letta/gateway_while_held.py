"""The gateway of one turn: a call reaches the Letta server only while the turn holds its agent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from bridge.letta.gateway import Gateway


def gateway_while_held(gateway: Gateway, check_hold: Callable[[], None]) -> Gateway:
    """Returns a gateway that calls `check_hold`, which raises when the turn has lost its agent, before each method."""
    return cast(Gateway, _GatewayWhileHeld(gateway, check_hold))


class _GatewayWhileHeld:
    def __init__(self, gateway: Gateway, check_hold: Callable[[], None]) -> None:
        self._gateway = gateway
        self._check_hold = check_hold

    def __getattr__(self, method: str) -> Any:
        self._check_hold()
        return getattr(self._gateway, method)
