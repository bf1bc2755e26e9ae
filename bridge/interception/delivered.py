"""Finds out which messages of a turn an earlier attempt has delivered to the agent.

A client repeats a turn if the reply was lost or the bridge was killed. The bridge itself repeats a turn once if Letta
lost the run before its first event.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace

from bridge.errors import RunBrokenOff
from bridge.interception.method import Interception, PreparedTurn, is_of_turn
from bridge.interception.runs_under_way import wait_for_runs, wait_for_unchanged_context
from bridge.interception.stored_messages import LOOK_FURTHER, StoredMessages
from bridge.letta.capabilities import keeps_context_by_step
from bridge.letta.gateway import Agent, Gateway, StoredMessage
from bridge.sync.ownership import names_of_our_tools
from bridge.turn import AgentEvent, Notice, RunStarted, Stopped, Turn, Used

# The events by which a run ends.
_OF_THE_END = (Used, Stopped)


def run_method(
    method: Interception, turn: PreparedTurn, gone: threading.Event, *, repeated: bool
) -> Iterator[AgentEvent]:
    """Yields the events of the turn. `repeated`: an earlier attempt may have delivered the messages. If Letta lost the
    run before its first event, or all that it said, looks up what the agent did, as for a repeat; without a turn id,
    nothing can be found. Sends nothing again when `gone` is set: no client waits any more.
    """
    begun = has_spoken = False
    end: list[AgentEvent] = []  # of a run that has said nothing
    try:
        undelivered = (yield from without_delivered_messages(turn)) if repeated else turn
        for event in method.run(undelivered):
            begun = True
            if not has_spoken and isinstance(event, _OF_THE_END):
                end.append(event)
                continue
            if not has_spoken and not isinstance(event, RunStarted):
                has_spoken = True
                yield from end
                end.clear()
            yield event
    except RunBrokenOff:
        if begun or not turn.turn_id or gone.is_set():
            raise
    else:
        if gone.is_set() or not _is_lost(undelivered, end):
            yield from end
            return
    agent = turn.gateway.agent(turn.agent.id)
    turn = replace(turn, agent=agent, unfinished_stubs=names_of_our_tools(agent))
    yield from method.run((yield from without_delivered_messages(turn)))


def without_delivered_messages(turn: PreparedTurn) -> Generator[Notice, None, PreparedTurn]:
    """Waits for the runs of earlier attempts if need be. Returns the turn, without its messages if one was delivered:
    all are sent in one request. `approval` and `native` still check the results; the other methods gave them earlier.
    """
    features = turn.features
    if not features.lists_active_runs:
        turn = replace(turn, agent=(yield from wait_for_unchanged_context(turn.gateway, turn.agent.id)))
    stored = StoredMessages(turn, LOOK_FURTHER)
    if features.lists_active_runs and _has_sent_any(turn, stored.newest_rows):
        # The message may have arrived after the agent was fetched from Letta.
        yield from wait_for_runs(turn.gateway, turn.agent.id, threading.Event())
        turn = replace(turn, agent=turn.gateway.agent(turn.agent.id))
        stored = StoredMessages(turn, LOOK_FURTHER)
    # On some Letta versions the messages enter the context only when the run has ended well. A run that fails, or that
    # loses its client before Letta 0.11, may then leave its messages out of the context.
    by_step = keeps_context_by_step(features.version, turn.loop)
    if not _has_sent_any(turn, stored.newest_rows if by_step else stored.context_rows):
        return turn
    return replace(turn, new_input=replace(turn.new_input, unheard=(), user_messages=()), opening=(), delivered=True)


def has_arrived(gateway: Gateway, agent: Agent, turn: Turn) -> bool:
    """Returns whether a message of an earlier attempt at the turn is stored."""
    if not (turn.repeated and turn.id):
        return False
    rows = gateway.newest_messages(agent.id, LOOK_FURTHER, including=agent.message_ids[-1] if agent.message_ids else "")
    return any(is_of_turn(row.otid, turn.id) for row in rows)


def _is_lost(turn: PreparedTurn, end: Sequence[AgentEvent]) -> bool:
    """Returns whether the turn's messages are not stored, or its results not taken, though the run has come to a good
    end without a word. So it is if Letta 0.16 loses its database in the run: it says "end_turn", and stores nothing.
    """
    if not turn.turn_id or Stopped("end_turn") not in end:
        return False
    if turn.messages:
        return not _has_sent_any(turn, StoredMessages(turn, LOOK_FURTHER).newest_rows)
    if not turn.new_input.results:
        return False
    turn = replace(turn, agent=turn.gateway.agent(turn.agent.id))
    return StoredMessages(turn, LOOK_FURTHER).held_request() is not None  # the call still waits for its result


def _has_sent_any(turn: PreparedTurn, rows: Sequence[StoredMessage]) -> bool:
    return any(turn.has_sent(row.otid) for row in rows)
