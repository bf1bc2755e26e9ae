"""What became of an attempt at this turn whose end nobody saw: its answer was lost, or its bridge was killed."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

from bridge.interception.method import PreparedTurn
from bridge.interception.stored_messages import StoredMessages
from bridge.interception.underway import agent_at_rest, wait_for_its_runs
from bridge.letta.capabilities import keeps_context_by_step
from bridge.letta.gateway import StoredMessage


def without_delivered(turn: PreparedTurn) -> PreparedTurn:
    """The turn without messages that have reached the agent: they are not sent again.

    Results are recognised by their calls, so nothing has to be done about them, unless they are messages themselves.
    All messages of a turn go out in one request, so one that arrived stands for all.
    """
    tells_runs = turn.features.tells_runs
    if not tells_runs:
        turn = replace(turn, agent=agent_at_rest(turn.gateway, turn.agent.id))
    past = StoredMessages(turn)
    if tells_runs and _brought(turn, past.stored):  # it may have arrived late, after the agent was last looked at
        wait_for_its_runs(turn.gateway, turn.agent.id, threading.Event())
        turn = replace(turn, agent=turn.gateway.agent(turn.agent.id))
        past = StoredMessages(turn)
    # Where the context is kept by the run, one that fails, or loses its client before 0.11, may leave its messages out.
    by_step = keeps_context_by_step(turn.features.version, turn.loop)
    if not _brought(turn, past.stored if by_step else past.rows):
        return turn
    return replace(turn, news=replace(turn.news, said=()), opening=(), arrived=True)


def _brought(turn: PreparedTurn, rows: Sequence[StoredMessage]) -> bool:
    return any(turn.is_ours(row.otid) for row in rows)
