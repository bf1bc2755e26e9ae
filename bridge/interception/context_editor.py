"""Keeps the agent's context free of what the bridge has to add to it during a turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bridge.interception.method import GO_ON, PreparedTurn
from bridge.letta.gateway import AgentChange, Say


class ContextEditor:
    """Remembers the ids of the messages before the turn, to know which ones the turn has added."""

    def __init__(self, turn: PreparedTurn) -> None:
        self._turn = turn
        self.before: Sequence[str] = turn.agent.message_ids
        self._sent_first = False

    def for_this_run(self, first: Say) -> Say:
        """The first message to send, which is removed again after the run: nobody said it."""
        self._sent_first = True
        return first

    def go_on(self) -> Say:
        """A message that makes the agent go on."""
        return self.for_this_run(Say("system", GO_ON))

    def deny(self, request_id: str, reason: str) -> str:
        """Denies a held call and removes everything that this adds except the call's return. Returns its id."""
        turn = self._turn
        return_id = turn.gateway.deny_call(turn.agent.id, request_id, reason).id
        now = self._now()
        end = now.index(request_id) + 1 if request_id in now else len(now)
        added = [message_id for message_id in now[end:] if message_id == return_id]
        self._set(self._without_first([*now[:end], *added]))
        return return_id

    def begin_with(self, message_ids: Sequence[str], variables: Mapping[str, str] | None = None) -> None:
        """Begins the turn with these messages. A held call that is not among them does not hold the agent any more."""
        self.before = message_ids
        self._set(message_ids, variables)

    def remove(self, message_id: str) -> None:
        self.begin_with([kept for kept in self.before if kept != message_id])

    def end_run(self) -> None:
        """Removes the message that was for this run only."""
        if self._sent_first:
            now = self._now()
            kept = self._without_first(now)
            if len(kept) < len(now):
                self._set(kept)

    def _now(self) -> list[str]:
        return list(self._turn.gateway.agent(self._turn.agent.id).message_ids)

    def _set(self, message_ids: Sequence[str], variables: Mapping[str, str] | None = None) -> None:
        change = AgentChange(message_ids=message_ids, variables=variables)
        self._turn.gateway.change_agent(self._turn.agent.id, change)

    def _without_first(self, message_ids: list[str]) -> list[str]:
        """The message comes right after the last one before the turn. A compaction may have removed both."""
        last = self.before[-1] if self.before else ""
        if not self._sent_first or last not in message_ids[:-1]:
            return message_ids
        self._sent_first = False
        place = message_ids.index(last) + 1
        return [*message_ids[:place], *message_ids[place + 1 :]]
