"""The gateway of one turn: a call reaches the Letta server only while the turn holds its agent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from bridge.letta.gateway import Gateway


def gateway_while_held(gateway: Gateway, before_call: Callable[[str], None]) -> Gateway:
    """Returns a gateway that calls `before_call` with the name of each method first. It raises when the turn has lost
    its agent.
    """
    return cast(Gateway, _GatewayWhileHeld(gateway, before_call))


class _GatewayWhileHeld:
    def __init__(self, gateway: Gateway, before_call: Callable[[str], None]) -> None:
        self._gateway = gateway
        self._before_call = before_call

    def __getattr__(self, method: str) -> Any:
        self._before_call(method)
        return getattr(self._gateway, method)
