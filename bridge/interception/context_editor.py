"""The agent's context, kept clean of what the methods for older loops have to put into it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bridge.interception.method import GO_ON, PreparedTurn
from bridge.letta.gateway import AgentChange, Say


class ContextEditor:
    """Knows the ids of the messages as they were before the turn, and what the turn does to them."""

    def __init__(self, turn: PreparedTurn) -> None:
        self._turn = turn
        self._before = list(turn.agent.message_ids)
        self._nudged = False

    def nudge(self) -> Say:
        """A message that makes the agent go on. It is nobody's, so it leaves when the run is over."""
        self._nudged = True
        return Say("system", GO_ON)

    @property
    def before(self) -> Sequence[str]:
        return self._before

    def close(self, request_id: str, reason: str) -> str:
        """Deny a held call and cut all that this adds but the call's return; the id of that return."""
        turn = self._turn
        return_id = turn.gateway.deny(turn.agent.id, request_id, reason).id
        now = self._now()
        added = now.index(request_id) + 1 if request_id in now else len(now)
        kept = [*now[:added], *(message_id for message_id in now[added:] if message_id == return_id)]
        self._keep(self._without_nudge(kept))
        return return_id

    def keep(self, message_ids: Sequence[str], variables: Mapping[str, str] | None = None) -> None:
        """Begin the turn with these messages. A call that held the agent and is not among them holds it no more."""
        self._before = list(message_ids)
        change = AgentChange(message_ids=message_ids, variables=variables)
        self._turn.gateway.change_agent(self._turn.agent.id, change)

    def drop(self, message_id: str) -> None:
        self.keep([kept for kept in self._before if kept != message_id])

    def drop_nudge(self) -> None:
        if self._nudged:
            now = self._now()
            kept = self._without_nudge(now)
            if len(kept) < len(now):
                self._keep(kept)

    def _now(self) -> list[str]:
        return list(self._turn.gateway.agent(self._turn.agent.id).message_ids)

    def _keep(self, message_ids: Sequence[str]) -> None:
        self._turn.gateway.change_agent(self._turn.agent.id, AgentChange(message_ids=message_ids))

    def _without_nudge(self, message_ids: list[str]) -> list[str]:
        """The nudge stands right behind what was last before it; a compaction may have taken both."""
        last = self._before[-1] if self._before else ""
        if not self._nudged or last not in message_ids[:-1]:
            return message_ids
        self._nudged = False
        place = message_ids.index(last) + 1
        return [*message_ids[:place], *message_ids[place + 1 :]]
