"""Notes in the store which calls of an agent are open.

A call is open while a client runs its tool: the client got the call, and the agent still waits for the result. The
turn is over then, but a turn of another client may have to wait.
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
    """Knows the open calls of each agent.

    `mode` is the setting BRIDGE_MEANWHILE: what happens to a turn of another client while a call is open. With the mode
    "close", no calls are noted. After `keep` seconds, an open call is ignored.
    """

    def __init__(self, store: Store, mode: Meanwhile, keep: float) -> None:
        self._store = store
        self._mode = mode
        self._keep = keep

    def find_calls_to_wait_for(self, agent_id: str, turn: Turn) -> str | None:
        """Returns the note of another client's open calls, as a JSON text, if the turn has to wait for these calls.

        Returns None if the turn need not wait. Raises RequestConflict if it would have to wait and `mode` is "refuse".
        """
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
        """Waits until the agent's open calls are not those of the note `noted` any more, or `gone` is set.

        `noted` comes from `find_calls_to_wait_for`. Returns when the calls were answered, given up or forgotten, or
        were open for too long. Raises Busy at the `deadline`, a time of `time.monotonic`.
        """
        while self._store.get(_store_key(agent_id)) == noted:
            if time.monotonic() >= deadline:
                raise Busy("The agent waits for another client's tool result (BRIDGE_MEANWHILE).", retry_after=5)
            if gone.wait(CHECK_INTERVAL):
                return

    def note(self, agent_id: str, turn: Turn, call_ids: Sequence[str]) -> None:
        """Notes that these calls are open after the turn; without calls, removes the agent's note.

        Does nothing with the mode "close". If the store fails, only logs that: the agent has answered, so the turn must
        not fail.
        """
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
    """Returns whether the turn comes from the client whose open calls are noted.

    That client sends one of the calls in its transcript, or has the same API key and the same tools. In the second
    case, the client does not answer the calls any more. `noted` is the JSON text that `OpenCalls.note` wrote.
    """
    client, tools, calls = json.loads(noted)
    return not turn.known_calls.isdisjoint(calls) or (client == turn.client and tools == _toolset_digest(turn.tools))


def _toolset_digest(tools: Sequence[ToolSpec]) -> str:
    """Returns a hash of the tools, which is different if any name, description or schema is different."""
    described = [[tool.name, tool.description, tool.parameters] for tool in tools]
    return hashlib.blake2b(json.dumps(described, sort_keys=True).encode(), digest_size=8).hexdigest()


def _store_key(agent_id: str) -> str:
    return f"open-calls:{agent_id}"
