"""Notes the calls that are open while a client runs its tools. The turn is over, but other clients may have to wait."""

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

CHECK_INTERVAL = 0.1


class OpenCalls:
    """`mode` says what another client's message does then. After `keep` seconds, an open call is ignored."""

    def __init__(self, store: Store, mode: Meanwhile, keep: float) -> None:
        self._store = store
        self._mode = mode
        self._keep = keep

    def find_calls_to_wait_for(self, agent_id: str, turn: Turn) -> str | None:
        """Returns the open calls of another client, if this turn has to wait for them. Raises if it is refused."""
        if self._mode == "close":
            return None
        noted = self._store.get(_store_key(agent_id))
        if noted is None or _is_same_client(noted, turn):
            return None
        if self._mode == "refuse":
            raise RequestConflict(
                "The agent waits for another client's tool result (BRIDGE_MEANWHILE). Try again soon.",
                code="tool_result_pending",
                retry_after=5,
            )
        return noted

    def wait_until_closed(self, agent_id: str, noted: str, deadline: float, gone: threading.Event) -> None:
        """Waits until these calls are answered, given up, or open for too long."""
        while self._store.get(_store_key(agent_id)) == noted:
            if time.monotonic() >= deadline:
                raise Busy("The agent waits for another client's tool result (BRIDGE_MEANWHILE).", retry_after=5)
            if gone.wait(CHECK_INTERVAL):
                return

    def note(self, agent_id: str, turn: Turn, call_ids: Sequence[str]) -> None:
        """Notes the calls that are open after the turn. A failing store ends no turn: the agent has answered."""
        if self._mode == "close":
            return
        try:
            if call_ids:
                noted = json.dumps([turn.client, _toolset_digest(turn.tools), [*call_ids]])
                self._store.put(_store_key(agent_id), noted, self._keep)
            else:
                self._store.remove(_store_key(agent_id))
        except StoreUnavailable as fault:
            log.warning("the open calls of an agent could not be noted: %s", fault.message)

    def forget(self, agent_id: str) -> None:
        """Forgets the agent's open calls, because the operator closed them."""
        self._store.remove(_store_key(agent_id))


def _is_same_client(noted: str, turn: Turn) -> bool:
    """Returns whether the client knows one of the calls, or has the same key and tools. Then it gave the calls up."""
    client, tools, calls = json.loads(noted)
    return not turn.known_calls.isdisjoint(calls) or (client == turn.client and tools == _toolset_digest(turn.tools))


def _toolset_digest(tools: Sequence[ToolSpec]) -> str:
    described = [[tool.name, tool.description, tool.parameters] for tool in tools]
    return hashlib.blake2b(json.dumps(described, sort_keys=True).encode(), digest_size=8).hexdigest()


def _store_key(agent_id: str) -> str:
    return f"open-calls:{agent_id}"
