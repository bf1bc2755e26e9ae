"""Asks the agent for its reply again, within the same turn, if the reply does not have the form that was asked for."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from dataclasses import replace

from bridge.interception.answered_calls import run_turn
from bridge.interception.method import Interception, PreparedTurn
from bridge.interception.stored_messages import LOOK_FURTHER, StoredMessages
from bridge.letta.gateway import Say
from bridge.turn import NewInput, TurnEvent

# Follows the turn's id in the ids (otid) of the messages, before the number of the correction.
_KIND = "format"
_WORDS = (
    "[Your reply was not passed on to the user's application, because {fault}. Write the whole reply again, in the form"
    " that the application asked for: the JSON and nothing else.]"
)


class Corrections:
    """Asks at most `most` times in a turn, and not any more when `gone` is set: no client waits then. `repeated`: an
    earlier attempt at the turn may have asked already.
    """

    def __init__(
        self, method: Interception, turn: PreparedTurn, most: int, gone: threading.Event, *, repeated: bool
    ) -> None:
        self._method = method
        self._turn = turn
        self._most = most
        self._gone = gone
        self._asked: int | None = None if repeated else 0

    def ask_again(self, fault: str) -> Iterator[TurnEvent] | None:
        """Returns the events of the agent's next run, in which it is told the fault; None if it was asked enough."""
        if self._gone.is_set():
            return None
        turn = replace(self._turn, agent=self._turn.gateway.agent(self._turn.agent.id)) if self._most else self._turn
        asked = _number_asked(turn) if self._asked is None else self._asked
        if asked >= self._most:
            return None
        self._asked = asked + 1
        return run_turn(self._method, _correcting_turn(turn, fault, self._asked), self._gone, repeated=False)


def _number_asked(turn: PreparedTurn) -> int:
    """Returns how often the agent was asked again in this turn, by the messages in its context: a run that failed may
    have left out its message, which is stored nevertheless.
    """
    ours = re.compile(re.escape(f"{turn.turn_id}-{_KIND}") + r"(\d+)-")
    found = filter(None, (ours.match(row.otid) for row in StoredMessages(turn, LOOK_FURTHER).context_rows))
    return max((int(one[1]) for one in found), default=0)


def _correcting_turn(turn: PreparedTurn, fault: str, number: int) -> PreparedTurn:
    """Returns the turn in which the agent gets only the correction, with an id (otid) of its own."""
    return replace(
        turn,
        new_input=NewInput(()),
        opening=(Say("system", _WORDS.format(fault=fault)),),
        turn_id=f"{turn.turn_id}-{_KIND}{number}" if turn.turn_id else "",
        unfinished_stubs=None,
        delivered=False,
    )
