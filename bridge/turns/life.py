"""The contract of attempts at turns and of the requests that wait for them: every state, every move, and its mover.

A thread runs the attempt. The request that began the turn, and each later request with the same content, has a part.

1. Every state and every move is in the two tables below. No other module keeps a flag about these states.
2. `move` returns False for a move that is not in the table, and the state stays. So if two threads end a part at the
   same moment, one of the threads wins, and a part that has ended never changes again.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from enum import Enum, auto
from typing import Generic, TypeVar


class Mover(Enum):
    """Which piece of code makes a move from one state to another."""

    ATTEMPT = auto()  # the thread that runs the attempt
    CLIENT = auto()  # the thread that serves the connected client
    REPEAT = auto()  # the part itself, when it joins, repeats or replaces an attempt


class AttemptState(Enum):
    """The state of an attempt at a turn, in the worker that makes the attempt."""

    WAITING = auto()  # the attempt waits for its agent, which has got nothing of the turn
    RUNNING = auto()  # the interception method is chosen, and the agent may have got the turn's messages
    ENDED = auto()  # no exception ended the attempt
    FAILED = auto()  # an exception ended the attempt


class PartState(Enum):
    """The state of one request's part in a turn."""

    BEGUN = auto()  # this request claimed the turn and runs it
    JOINED = auto()  # another request runs the turn, here or in another worker, and this request reads its events
    REPEATED = auto()  # the turn has ended, and this request gets its recorded answer
    SHOWN = auto()  # the client got the beginning of the answer
    LOST = auto()  # the joined attempt ended without an answer: its worker died, or its last client left
    DELIVERED = auto()  # the client got the whole answer
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
    """The current state of one attempt or one part, for many threads. `moves` are ATTEMPT_MOVES or PART_MOVES."""

    def __init__(self, first: State, moves: Moves[State]) -> None:
        self.state = first
        self._moves = moves
        self._lock = threading.Lock()

    def move(self, to: State, mover: Mover) -> bool:
        """Changes the state. Returns False, and keeps the state, if this mover may not make this move now."""
        with self._lock:
            if self._moves[self.state].get(to) is not mover:
                return False
            self.state = to
            return True
