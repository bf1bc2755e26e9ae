"""Notes in the store which calls of an agent are open: a client runs the tool, and the agent waits for the result.

The turn is over then, but a turn of another client may have to wait.
"""

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

# A waiting turn looks so often, in seconds, whether the calls are still open.
CHECK_INTERVAL = 0.1


class OpenCalls:
    """Knows the open calls of each agent. After `keep` seconds, an open call is ignored.
    `mode` is BRIDGE_MEANWHILE: what happens to another client's turn while a call is open. With "close", none is noted.
    """

    def __init__(self, store: Store, mode: Meanwhile, keep: float) -> None:
        self._store = store
        self._mode = mode
        self._keep = keep

    def find_calls_to_wait_for(self, agent_id: str, turn: Turn) -> str | None:
        """Returns the note of another client's open calls, None if the turn need not wait for them."""
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
        """Waits until the agent's note is not `noted`, or `gone`. Raises Busy at `deadline`, by `time.monotonic`."""
        while self._store.get(_store_key(agent_id)) == noted:
            if time.monotonic() >= deadline:
                raise Busy("The agent waits for another client's tool result (BRIDGE_MEANWHILE).", retry_after=5)
            if gone.wait(CHECK_INTERVAL):
                return

    def note(self, agent_id: str, turn: Turn, call_ids: Sequence[str]) -> None:
        """Notes the turn's open calls, or none. Only logs a fault of the store, because the agent has answered."""
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
        """Removes the note of the agent's open calls, because the operator closed them."""
        self._store.remove(_store_key(agent_id))


def _is_same_client(noted: str, turn: Turn) -> bool:
    """Returns whether the turn sends one of the calls of the note in its transcript, or has the same key and tools.
    In the second case, the client does not answer the calls any more.
    """
    client, tools, calls = json.loads(noted)
    return not turn.known_calls.isdisjoint(calls) or (client == turn.client and tools == _toolset_digest(turn.tools))


def _toolset_digest(tools: Sequence[ToolSpec]) -> str:
    described = [[tool.name, tool.description, tool.parameters] for tool in tools]
    return hashlib.blake2b(json.dumps(described, sort_keys=True).encode(), digest_size=8).hexdigest()


def _store_key(agent_id: str) -> str:
    return f"open-calls:{agent_id}"
