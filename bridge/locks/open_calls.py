"""Calls that are open while a client runs its tools: the turn is over, and other clients may have to wait."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
import time
from collections.abc import Sequence

from bridge.errors import Busy, RequestConflict, StoreUnavailable
from bridge.store.port import Store
from bridge.turn import Meanwhile, ToolSpec, Turn

log = logging.getLogger(__name__)

LOOK = 0.1


class OpenCalls:
    """`mode` says what another client's message does then. After `keep` seconds an open call holds up no client."""

    def __init__(self, store: Store, mode: Meanwhile, keep: float) -> None:
        self._store = store
        self._mode = mode
        self._keep = keep

    def in_the_way(self, agent_id: str, turn: Turn) -> str | None:
        """Returns the open calls of another client, if this turn has to wait for them. Raises if it is refused."""
        if self._mode == "close":
            return None
        noted = self._store.get(_key(agent_id))
        if noted is None or _is_the_same_client(noted, turn):
            return None
        if self._mode == "refuse":
            raise RequestConflict(
                "The agent waits for another client's tool result (BRIDGE_MEANWHILE). Try again soon.",
                code="tool_result_pending",
                retry_after=5,
            )
        return noted

    def wait(self, agent_id: str, noted: str, deadline: float, gone: threading.Event) -> None:
        """Wait until these calls are answered, given up, or open for too long."""
        while self._store.get(_key(agent_id)) == noted:
            if time.monotonic() >= deadline:
                raise Busy("The agent waits for another client's tool result (BRIDGE_MEANWHILE).", retry_after=5)
            if gone.wait(LOOK):
                return

    def note(self, agent_id: str, turn: Turn, call_ids: Sequence[str]) -> None:
        """These calls are open after the turn. The agent has answered, so a store that fails loses nothing by it."""
        if self._mode == "close":
            return
        try:
            if call_ids:
                noted = json.dumps([turn.client, _toolset(turn.tools), [*call_ids]])
                self._store.put(_key(agent_id), noted, self._keep)
            else:
                self._store.remove(_key(agent_id))
        except StoreUnavailable as fault:
            log.warning("which calls are open could not be kept: %s", fault.message)

    def forget(self, agent_id: str) -> None:
        """The agent's calls were closed by the operator."""
        self._store.remove(_key(agent_id))


def _is_the_same_client(noted: str, turn: Turn) -> bool:
    """Whether the client knows one of the calls, or has the same key and tools: then it has given the calls up."""
    client, tools, calls = json.loads(noted)
    return not turn.known_calls.isdisjoint(calls) or (client == turn.client and tools == _toolset(turn.tools))


def _toolset(tools: Sequence[ToolSpec]) -> str:
    described = [[tool.name, tool.description, tool.parameters] for tool in tools]
    return hashlib.blake2b(json.dumps(described, sort_keys=True).encode(), digest_size=8).hexdigest()


def _key(agent_id: str) -> str:
    return f"open-calls:{agent_id}"
