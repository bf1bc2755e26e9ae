"""Who else may talk to an agent while a client runs a tool for it: the turn is over, its call is still open."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
import time
from collections.abc import Iterator, Sequence

from bridge.errors import Busy, RequestConflict, StoreUnavailable
from bridge.store.port import Store
from bridge.turn import Meanwhile, ToolCall, ToolSpec, Turn, TurnEvent

log = logging.getLogger(__name__)

LOOK = 0.1


class OpenCalls:
    """`mode` is what another client's message does meanwhile; after `keep` seconds an open call holds up nobody."""

    def __init__(self, store: Store, mode: Meanwhile, keep: float) -> None:
        self._store = store
        self._mode = mode
        self._keep = keep

    def in_the_way(self, agent_id: str, turn: Turn) -> str | None:
        """The open calls of another client, if this turn has to wait for them; raises if it is refused."""
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
        """Until these calls are answered, given up, or open for too long."""
        while self._store.get(_key(agent_id)) == noted:
            if time.monotonic() >= deadline:
                raise Busy("The agent waits for another client's tool result (BRIDGE_MEANWHILE).", retry_after=5)
            if gone.wait(LOOK):
                return

    def noting(self, agent_id: str, turn: Turn, events: Iterator[TurnEvent]) -> Iterator[TurnEvent]:
        """The events of a turn. The calls that it leaves open are noted while it still holds the agent."""
        if self._mode == "close":
            yield from events
            return
        calls = []
        for event in events:
            if isinstance(event, ToolCall):
                calls.append(event.id)
            yield event
        try:
            self._note(agent_id, turn, calls)
        except StoreUnavailable as fault:  # the agent has answered: others may come too early, but nothing is lost
            log.warning("which calls are open could not be kept: %s", fault.message)

    def _note(self, agent_id: str, turn: Turn, calls: Sequence[str]) -> None:
        if calls:
            self._store.put(_key(agent_id), json.dumps([turn.client, _toolset(turn.tools), calls]), self._keep)
        else:
            self._store.remove(_key(agent_id))

    def forget(self, agent_id: str) -> None:
        """Its calls were closed by somebody else."""
        self._store.remove(_key(agent_id))


def _is_the_same_client(noted: str, turn: Turn) -> bool:
    """It knows of a call, or it comes with the same key and tools: then it has given the call up."""
    client, tools, calls = json.loads(noted)
    known = {message.tool_call_id for message in turn.messages}
    known.update(call.id for message in turn.messages for call in message.tool_calls)
    return not known.isdisjoint(calls) or (client == turn.client and tools == _toolset(turn.tools))


def _toolset(tools: Sequence[ToolSpec]) -> str:
    described = [[tool.name, tool.description, tool.parameters] for tool in tools]
    return hashlib.blake2b(json.dumps(described, sort_keys=True).encode(), digest_size=8).hexdigest()


def _key(agent_id: str) -> str:
    return f"open-calls:{agent_id}"
