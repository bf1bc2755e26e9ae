"""Removes from the agent's context the messages that the bridge has to add to the context during a turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bridge.interception.method import GO_ON, PreparedTurn
from bridge.letta.gateway import AgentChange, Say


class ContextEditor:
    """Changes the context of a turn's agent. `ids_before` are its messages before the run. At most one is temporary."""

    def __init__(self, turn: PreparedTurn) -> None:
        self._turn = turn
        self.ids_before: Sequence[str] = turn.agent.message_ids
        self._has_temporary = False

    def mark_temporary(self, first: Say) -> Say:
        """Returns `first`, the first message of the turn, and notes that `remove_temporary` must remove it."""
        self._has_temporary = True
        return first

    def go_on_message(self) -> Say:
        """Returns a temporary message that makes the agent go on where the client sent no message."""
        return self.mark_temporary(Say("system", GO_ON))

    def deny_call(self, request_id: str, reason: str) -> str:
        """Denies a held call. Returns the id of the message with its return, the only one that the denial leaves."""
        turn = self._turn
        return_id = turn.gateway.deny_call(turn.agent.id, request_id, reason).id
        now = self._current_ids()
        end = now.index(request_id) + 1 if request_id in now else len(now)
        added = [message_id for message_id in now[end:] if message_id == return_id]
        self._change_context(self._without_temporary([*now[:end], *added]))
        return return_id

    def set_context(self, message_ids: Sequence[str], variables: Mapping[str, str] | None = None) -> None:
        """Makes these messages the context before the run: no other call holds the agent then. `variables` replace all
        variables of the agent; None leaves them.
        """
        self.ids_before = message_ids
        self._change_context(message_ids, variables)

    def remove_message(self, message_id: str) -> None:
        self.set_context([kept for kept in self.ids_before if kept != message_id])

    def remove_temporary(self) -> None:
        """Removes the temporary message after the run, if there is one that `deny_call` has not removed already."""
        if self._has_temporary:
            now = self._current_ids()
            kept = self._without_temporary(now)
            if len(kept) < len(now):
                self._change_context(kept)

    def _current_ids(self) -> list[str]:
        return list(self._turn.gateway.agent(self._turn.agent.id).message_ids)

    def _change_context(self, message_ids: Sequence[str], variables: Mapping[str, str] | None = None) -> None:
        change = AgentChange(message_ids=message_ids, variables=variables)
        self._turn.gateway.change_agent(self._turn.agent.id, change)

    def _without_temporary(self, message_ids: list[str]) -> list[str]:
        """Returns the ids without the temporary message, the first after `ids_before`. Returns all ids if the last of
        `ids_before` is gone: Letta has compacted the context, and the temporary message's place is not known.
        """
        last = self.ids_before[-1] if self.ids_before else ""
        if not self._has_temporary or last not in message_ids[:-1]:
            return message_ids
        self._has_temporary = False
        place = message_ids.index(last) + 1
        return [*message_ids[:place], *message_ids[place + 1 :]]
