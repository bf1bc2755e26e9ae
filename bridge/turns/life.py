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
    PATIENCE = auto()  # lingering.py, which decides how long an attempt goes on without a client


class AttemptState(Enum):
    """The state of an attempt at a turn, in the worker that makes the attempt. Alone: its last client left, and may
    come back. Clients that were sent away (PartState.SENT_AWAY) count as still there.
    """

    WAITING = auto()  # the attempt waits for its agent, which has got nothing of the turn
    WAITING_ALONE = auto()  # the same without a client: it keeps its place in the queue, but does not run
    WITHDRAWN = auto()  # no client came back before the agent got anything, so the agent gets nothing
    RUNNING = auto()  # the interception method is chosen, and the agent may have got the turn's messages
    RUNNING_ALONE = auto()  # the same without a client: the run lingers, so that a repeat gets its answer
    CANCELLED = auto()  # no client waits for the run any more, and the bridge has it cancelled
    ENDED = auto()  # no exception ended the attempt
    FAILED = auto()  # an exception ended the attempt


class PartState(Enum):
    """The state of one request's part in a turn."""

    BEGUN = auto()  # this request claimed the turn and runs it
    JOINED = auto()  # another request runs the turn, here or in another worker, and this request reads its events
    REPEATED = auto()  # the turn has ended, and this request gets its recorded answer
    READ = auto()  # this request has read the beginning of the answer, and its client has nothing of it yet
    SHOWN = auto()  # the client got the beginning of the streamed answer
    LOST = auto()  # the joined attempt ended without an answer: its worker died, or its last client left
    DELIVERED = auto()  # the client got the whole answer
    LEFT_EARLY = auto()  # the client left before it got anything of the answer, so it may ask again
    GIVEN_UP = auto()  # the client left in the middle of the answer, or this worker had to end
    SENT_AWAY = auto()  # the client was asked to come again, and the turn goes on
    REFUSED = auto()  # the client got an error instead of the answer


State = TypeVar("State", bound=Enum)
Moves = Mapping[State, Mapping[State, Mover]]

_ATTEMPT_ENDS: Mapping[AttemptState, Mover] = {
    AttemptState.ENDED: Mover.ATTEMPT,
    AttemptState.FAILED: Mover.ATTEMPT,
}
ATTEMPT_MOVES: Moves[AttemptState] = {
    AttemptState.WAITING: {
        AttemptState.RUNNING: Mover.ATTEMPT,
        AttemptState.WAITING_ALONE: Mover.CLIENT,
        **_ATTEMPT_ENDS,
    },
    AttemptState.WAITING_ALONE: {
        AttemptState.WAITING: Mover.REPEAT,
        AttemptState.WITHDRAWN: Mover.PATIENCE,
        **_ATTEMPT_ENDS,
    },
    AttemptState.WITHDRAWN: _ATTEMPT_ENDS,
    AttemptState.RUNNING: {AttemptState.RUNNING_ALONE: Mover.CLIENT, **_ATTEMPT_ENDS},
    AttemptState.RUNNING_ALONE: {
        AttemptState.RUNNING: Mover.REPEAT,
        AttemptState.CANCELLED: Mover.PATIENCE,
        **_ATTEMPT_ENDS,
    },
    AttemptState.CANCELLED: _ATTEMPT_ENDS,
    AttemptState.ENDED: {},
    AttemptState.FAILED: {},
}

_ENDS: Mapping[PartState, Mover] = {
    PartState.DELIVERED: Mover.CLIENT,
    PartState.GIVEN_UP: Mover.CLIENT,
    PartState.SENT_AWAY: Mover.CLIENT,
    PartState.REFUSED: Mover.REPEAT,
}
_UNSHOWN: Mapping[PartState, Mover] = {PartState.LEFT_EARLY: Mover.CLIENT, **_ENDS}
_UNREAD: Mapping[PartState, Mover] = {PartState.READ: Mover.CLIENT, **_UNSHOWN}
PART_MOVES: Moves[PartState] = {
    PartState.BEGUN: _UNREAD,
    PartState.JOINED: {PartState.LOST: Mover.REPEAT, **_UNREAD},
    PartState.REPEATED: _UNREAD,
    PartState.LOST: {
        PartState.BEGUN: Mover.REPEAT,
        PartState.JOINED: Mover.REPEAT,
        PartState.REPEATED: Mover.REPEAT,
        **_UNSHOWN,
    },
    PartState.READ: {PartState.SHOWN: Mover.CLIENT, **_UNSHOWN},
    PartState.SHOWN: _ENDS,
    PartState.DELIVERED: {},
    PartState.LEFT_EARLY: {},
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
