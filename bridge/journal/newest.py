"""Notes in the store which turn of each agent is the newest, of those that a later request may name as the one before.

An agent has one history. So a request can only go on from its newest answer, not from an older one.
"""

from __future__ import annotations

import logging

from bridge.errors import InvalidRequest, StoreUnavailable
from bridge.store.port import Put, Store, Write
from bridge.turn import Turn

log = logging.getLogger(__name__)

# For so many seconds. After that, or if the store is lost, any turn of the bridge's own counts as the newest.
KEEP = 30 * 86_400.0


class NewestTurns:
    """The newest such turn of each agent. Use `check` and `note` only while the agent is locked."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def check(self, agent_id: str, turn: Turn) -> None:
        """Raises InvalidRequest if the turn goes on from an answer after which the agent has given another one."""
        if not turn.follows:
            return
        newest = self._store.get(_key(agent_id))
        if newest not in (None, turn.follows, turn.id):
            raise InvalidRequest(
                "The agent has answered again since the response that `previous_response_id` names, and has only one"
                " history. Name its newest response, or leave the field out and send the whole conversation.",
                param="previous_response_id",
                code="previous_response_not_newest",
            )

    def note(self, agent_id: str, turn: Turn, write: Write | None = None) -> None:
        """Notes that the turn is the newest now. `write` has the change made; without it, it is made now. Only logs a
        fault of the store, because the agent has answered.
        """
        if not turn.is_named:
            return
        try:
            (write or self._store.change)([Put(_key(agent_id), turn.id, KEEP)])
        except StoreUnavailable as fault:
            log.warning("the newest turn of an agent could not be noted: %s", fault.message)

    def note_without_agent(self, agent_id: str, turn: Turn) -> None:
        """Notes that the turn, in which the agent was not asked, stands for the newest, if it came after that one. The
        agent need not be locked.
        """
        try:
            before = turn.follows or self._store.get(_key(agent_id))
            if turn.is_named and before is not None:
                self._store.replace_if_unchanged(_key(agent_id), before, turn.id, KEEP)
        except StoreUnavailable as fault:
            log.warning("the newest turn of an agent could not be noted: %s", fault.message)


def _key(agent_id: str) -> str:
    return f"newest-turn:{agent_id}"
