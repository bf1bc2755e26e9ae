"""The life of a turn: all its states, every move from one to another, and who makes it.

A turn is run once, by a thread of its own (`TURN`). One or more requests have a part in it: the one that began it, and
those that came again with the same content (`REPEAT`, the parts' own work). Each part has a client who listens
(`CLIENT`).

Rules:

1. Every state and every move is in the two tables below. No other module keeps a flag about it.
2. A move that is not in the table does not happen; `move` then returns False. So of two threads that end a part at the
   same moment one wins, and a part that has ended does not come back.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from enum import Enum, auto
from typing import Generic, TypeVar


class Mover(Enum):
    """Who makes a move."""

    TURN = auto()  # the thread that runs the turn
    CLIENT = auto()  # the thread that serves the connected client
    REPEAT = auto()  # the journal's work for a request that came again


class TurnState(Enum):
    """The turn itself, in the worker that runs it."""

    WAITING = auto()  # for its agent; the agent has heard nothing
    RUNNING = auto()  # the method is chosen, and the agent may have heard of it
    ENDED = auto()
    FAILED = auto()


class PartState(Enum):
    """One request's part in a turn."""

    BEGUN = auto()  # this request claimed the turn and runs it
    JOINED = auto()  # another request runs it, here or in another worker; this one reads along
    REPEATED = auto()  # the turn is over, and its recorded answer is given again
    SHOWN = auto()  # the client was given something of the answer
    LOST = auto()  # the turn it joined ended without an answer: its worker died, or its last client left
    DELIVERED = auto()  # the client was given the whole answer
    GIVEN_UP = auto()  # the client left before the end
    SENT_AWAY = auto()  # the client was told to come again; the turn goes on
    REFUSED = auto()  # the client was told why it gets no answer


State = TypeVar("State", bound=Enum)
Moves = Mapping[State, Mapping[State, Mover]]

TURN_MOVES: Moves[TurnState] = {
    TurnState.WAITING: {TurnState.RUNNING: Mover.TURN, TurnState.ENDED: Mover.TURN, TurnState.FAILED: Mover.TURN},
    TurnState.RUNNING: {TurnState.ENDED: Mover.TURN, TurnState.FAILED: Mover.TURN},
    TurnState.ENDED: {},
    TurnState.FAILED: {},
}

_ENDS: Mapping[PartState, Mover] = {
    PartState.DELIVERED: Mover.CLIENT,
    PartState.GIVEN_UP: Mover.CLIENT,
    PartState.SENT_AWAY: Mover.CLIENT,
    PartState.REFUSED: Mover.REPEAT,
}
PART_MOVES: Moves[PartState] = {
    PartState.BEGUN: {PartState.SHOWN: Mover.CLIENT, **_ENDS},
    PartState.JOINED: {PartState.SHOWN: Mover.CLIENT, PartState.LOST: Mover.REPEAT, **_ENDS},
    PartState.REPEATED: {PartState.SHOWN: Mover.CLIENT, **_ENDS},
    PartState.LOST: {
        PartState.BEGUN: Mover.REPEAT,
        PartState.JOINED: Mover.REPEAT,
        PartState.REPEATED: Mover.REPEAT,
        **_ENDS,
    },
    PartState.SHOWN: _ENDS,
    PartState.DELIVERED: {},
    PartState.GIVEN_UP: {},
    PartState.SENT_AWAY: {},
    PartState.REFUSED: {},
}


class Life(Generic[State]):
    """Where one turn, or one part, stands. Used by many threads."""

    def __init__(self, first: State, moves: Moves[State]) -> None:
        self.state = first
        self._moves = moves
        self._lock = threading.Lock()

    def move(self, to: State, mover: Mover) -> bool:
        """Go to a state; False when the table has no such move for this mover."""
        with self._lock:
            if self._moves[self.state].get(to) is not mover:
                return False
            self.state = to
            return True
