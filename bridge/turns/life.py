"""The states of an attempt at a turn and of the requests that wait for it: every move, and which thread makes it.

A thread runs the attempt. One or more requests have a part in the turn: the one that began it, and those that came
again with the same content. Each part has a client that listens.

Rules:

1. Every state and every move is in the two tables below. No other module keeps a flag about it.
2. A move that is not in the table does not happen, and `move` then returns False. So if two threads end a part at the
   same moment, one of them wins, and a part that has ended does not come back.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from enum import Enum, auto
from typing import Generic, TypeVar


class Mover(Enum):
    """What makes a move."""

    ATTEMPT = auto()  # the thread that runs the attempt
    CLIENT = auto()  # the thread that serves the connected client
    REPEAT = auto()  # the part's own work for a request that came again


class AttemptState(Enum):
    """The state of an attempt, in the worker that makes it."""

    WAITING = auto()  # waits for its agent, which has not heard of it
    RUNNING = auto()  # the method is chosen, and the agent may have heard of it
    ENDED = auto()
    FAILED = auto()


class PartState(Enum):
    """The state of one request's part in a turn."""

    BEGUN = auto()  # this request claimed the turn and runs it
    JOINED = auto()  # another request runs it, here or in another worker, and this one reads along
    REPEATED = auto()  # the turn is over, and its recorded answer is given again
    SHOWN = auto()  # the client was given something of the answer
    LOST = auto()  # the attempt that it joined ended without an answer: its worker died, or its last client left
    DELIVERED = auto()  # the client was given the whole answer
    GIVEN_UP = auto()  # the client left before the end
    SENT_AWAY = auto()  # the client was asked to come again, and the turn goes on
    REFUSED = auto()  # the client got an error instead of the answer


State = TypeVar("State", bound=Enum)
Moves = Mapping[State, Mapping[State, Mover]]

ATTEMPT_MOVES: Moves[AttemptState] = {
    AttemptState.WAITING: {
        AttemptState.RUNNING: Mover.ATTEMPT,
        AttemptState.ENDED: Mover.ATTEMPT,
        AttemptState.FAILED: Mover.ATTEMPT,
    },
    AttemptState.RUNNING: {AttemptState.ENDED: Mover.ATTEMPT, AttemptState.FAILED: Mover.ATTEMPT},
    AttemptState.ENDED: {},
    AttemptState.FAILED: {},
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
    """The current state of one attempt or one part. Used by many threads."""

    def __init__(self, first: State, moves: Moves[State]) -> None:
        self.state = first
        self._moves = moves
        self._lock = threading.Lock()

    def move(self, to: State, mover: Mover) -> bool:
        """Goes to a state. Returns False if the table has no such move for this mover."""
        with self._lock:
            if self._moves[self.state].get(to) is not mover:
                return False
            self.state = to
            return True
