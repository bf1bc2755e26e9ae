"""The agent's context, kept clean of what the methods for older loops have to put into it."""

from __future__ import annotations

from collections.abc import Sequence

from bridge.interception.method import NO_RESULT, Scene
from bridge.letta.gateway import AgentChange


class Context:
    """`nudged` is the return after which a message of ours made the agent go on, "" for none."""

    def __init__(self, scene: Scene, nudged: str = "") -> None:
        self._scene = scene
        self._nudged = nudged

    def close(self, request_id: str) -> str:
        """Deny a held call and cut all but its return; the id of that return.

        Killed before the cut, the denial's own heartbeat message stays in the context: the agent goes on all the same.
        """
        scene = self._scene
        before = self._message_ids()
        return_id = scene.gateway.deny(scene.agent.id, request_id, NO_RESULT).id
        self.keep([*self._without_nudge(before), return_id])
        return return_id

    def keep(self, message_ids: Sequence[str]) -> None:
        self._scene.gateway.change_agent(self._scene.agent.id, AgentChange(message_ids=message_ids))

    def drop_nudge(self) -> None:
        """The message that made the agent go on is nobody's: it leaves when the run is over."""
        if not self._nudged:
            return
        before = self._message_ids()
        kept = self._without_nudge(before)
        if len(kept) < len(before):
            self.keep(kept)

    def _message_ids(self) -> Sequence[str]:
        return self._scene.gateway.agent(self._scene.agent.id).message_ids

    def _without_nudge(self, message_ids: Sequence[str]) -> list[str]:
        """The nudge is what stands right after the return that it followed."""
        ids = [*message_ids]
        if self._nudged and self._nudged in ids[:-1]:
            del ids[ids.index(self._nudged) + 1]
        self._nudged = ""
        return ids
