"""What an earlier attempt at this turn has brought to the agent, if its answer was lost or its bridge was killed."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

from bridge.interception.method import PreparedTurn
from bridge.interception.runs_under_way import wait_for_runs, wait_for_unchanged_context
from bridge.interception.stored_messages import StoredMessages
from bridge.letta.capabilities import keeps_context_by_step
from bridge.letta.gateway import StoredMessage


def without_delivered_messages(turn: PreparedTurn) -> PreparedTurn:
    """The turn without messages that have reached the agent: they are not sent again.

    All messages of a turn go out in one request, so one delivered message means that all were delivered. Results are
    recognised by their calls, so they stay, and a method that sends them as messages does not send them again.
    """
    features = turn.features
    if not features.lists_active_runs:
        turn = replace(turn, agent=wait_for_unchanged_context(turn.gateway, turn.agent.id))
    stored = StoredMessages(turn)
    if features.lists_active_runs and _has_sent_any(turn, stored.newest_rows):
        # The message may have arrived after the agent was read.
        wait_for_runs(turn.gateway, turn.agent.id, threading.Event())
        turn = replace(turn, agent=turn.gateway.agent(turn.agent.id))
        stored = StoredMessages(turn)
    # Where messages enter the context with the run, a run that fails, or loses its client before 0.11, may leave its
    # messages out.
    by_step = keeps_context_by_step(features.version, turn.loop)
    if not _has_sent_any(turn, stored.newest_rows if by_step else stored.context_rows):
        return turn
    return replace(turn, new_input=replace(turn.new_input, user_messages=()), opening=(), delivered=True)


def _has_sent_any(turn: PreparedTurn, rows: Sequence[StoredMessage]) -> bool:
    return any(turn.has_sent(row.otid) for row in rows)
