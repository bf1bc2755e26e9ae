"""One request's part in a turn: it runs the turn, joins it, or gets its recorded answer again."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from threading import Thread

from bridge.errors import IdempotencyKeyReused, RequestConflict, StoreUnavailable, TurnLost
from bridge.journal.batches import End
from bridge.journal.claims import Claim, Claims, Identity
from bridge.journal.follower import Follower, is_followed
from bridge.store.heartbeat import Heartbeat
from bridge.store.port import Store
from bridge.turn import AgentEvent
from bridge.turns.life import PART_MOVES, Life, Mover, PartState
from bridge.turns.live import LiveTurn, LiveTurns, as_failure
from bridge.turns.stream import SHOWN, Reader, TurnStream

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Journal:
    """Where turns are known to all workers, and for how many seconds an answer waits for a client that missed it."""

    store: Store
    keep: float
    heartbeat: Heartbeat
    live: LiveTurns

    @classmethod
    def of(cls, store: Store, keep: float, heartbeat: Heartbeat) -> Journal:
        return cls(store, keep, heartbeat, LiveTurns(store, keep, heartbeat))


class Part:
    """Used by the thread of its request alone.

    `run` starts a thread that runs the turn, and is given whether there was an attempt before. `cancel` ends the
    agent's run, which is named if its name is known.
    """

    def __init__(
        self,
        journal: Journal,
        identity: Identity,
        run: Callable[[LiveTurn, bool], None],
        cancel: Callable[[str], None],
    ) -> None:
        self._journal = journal
        self._identity = identity
        self._claims = Claims(journal.store, identity, journal.keep)
        self._run = run
        self._cancel = cancel
        self._claim: Claim | None = None
        self._live: LiveTurn | None = None
        self._life: Life[PartState] | None = None
        self._stream = TurnStream()
        self._reader: Reader | None = None

    # --- begin, join or repeat ------------------------------------------------------------------------

    def begin(self, lost: Claim | None = None) -> None:
        """Take part in the turn, in whichever way is possible now. `lost` is an attempt of which nothing will come."""
        while True:
            mine = Claim.of(self._identity.body, self._journal.heartbeat.id)
            there = self._claims.take(mine)
            if there is None:
                return self._run_it(mine, repeated=False)
            if there.body != mine.body:
                raise IdempotencyKeyReused("This Idempotency-Key came before with another request body.")
            if there != lost and self._take_part(there):
                return None
            again = Claim.of(mine.body, mine.worker, there.turn)
            if self._claims.take_over(there, again):
                return self._run_it(again, repeated=True)

    def _run_it(self, claim: Claim, *, repeated: bool) -> None:
        live = self._journal.live.begin(self._identity, claim)
        self._enter(PartState.BEGUN, claim, live, live.stream)
        try:
            self._run(live, repeated)
        except BaseException as fault:  # no thread is left
            self.end(live, fault, repeated=repeated)
            raise

    def end(self, live: LiveTurn, fault: BaseException | None, *, repeated: bool) -> None:
        """Called by the turn's thread, at last."""
        never_began = fault is not None and not repeated and not live.has_begun
        forget = partial(self._claims.forget, live.claim)
        self._journal.live.end(live, fault, forget if never_began else lambda: None)

    def _take_part(self, other: Claim) -> bool:
        """Joins an attempt that runs, or repeats one that is over; False when a new attempt has to be made."""
        follower = Follower(self._journal.store, other)
        end = follower.ended()
        if end is None:
            self._join(other, follower)
            return True
        if end.how != "well" or not self._is_to_be_repeated(other, follower):
            return False
        self._enter(PartState.REPEATED, other, None, TurnStream(follower.recorded, end))
        return True

    def _join(self, other: Claim, follower: Follower) -> None:
        live = self._journal.live.join(other.token)
        self._enter(PartState.JOINED, other, live, live.stream if live else TurnStream())
        if live is None:
            Thread(target=_follow, args=(follower, self._stream), name="follower", daemon=True).start()

    def _is_to_be_repeated(self, other: Claim, follower: Follower) -> bool:
        """Whether a repeat is given the answer that is there."""
        if self._identity.kept:
            return self._identity.keyed or not follower.is_empty
        return not self._claims.is_delivered_now(other)

    def _enter(self, state: PartState, claim: Claim, live: LiveTurn | None, stream: TurnStream) -> None:
        if self._life is None:
            self._life = Life(state, PART_MOVES)
        else:
            self._life.move(state, Mover.REPEAT)
        if self._reader is not None:
            self._reader.close()
        self._claim, self._live, self._stream, self._reader = claim, live, stream, stream.reader()

    # --- read -----------------------------------------------------------------------------------------

    @property
    def method(self) -> str:
        """The method of the turn, "" while none is chosen."""
        return self._stream.method

    def wait_for_first(self, seconds: float) -> bool:
        """Whether there is something to send, or the end, within `seconds`. Raises a failure that came before it."""
        deadline = time.monotonic() + seconds
        while True:
            self._open.wait_for_sign(deadline - time.monotonic())
            if self._stream.has_sign or self._stream.end is None:
                return self._stream.has_sign
            if not self._begin_again(self._stream.end):
                return True

    def read(self, tick: float) -> Iterator[AgentEvent | None]:
        """Every event from the first on, and None whenever `tick` seconds pass without one."""
        while True:
            reader = self._open
            events = reader.read(tick)
            for event in events:
                if isinstance(event, SHOWN):
                    self._move(PartState.SHOWN, Mover.CLIENT)
                yield event
            if events:
                continue
            if not reader.at_end:
                yield None
            elif self._stream.end is not None and not self._begin_again(self._stream.end):
                return

    def _begin_again(self, end: End) -> bool:
        """Whether the turn is attempted again; False when this request has all that it will get.

        Raises the failure of the attempt.
        """
        if end.how == "well":
            return False
        if (end.how == "lost" or end.abandoned) and self._move(PartState.LOST, Mover.REPEAT):
            self.begin(lost=self._claim)
            return True
        self._move(PartState.REFUSED, Mover.REPEAT)
        if end.how == "lost":
            raise TurnLost("The worker that ran this turn is gone. Send the request again to get its answer.")
        raise end.failure or RequestConflict(
            "This turn ran elsewhere, and its answer is too large to be had from there."
        )

    @property
    def _open(self) -> Reader:
        assert self._reader is not None
        return self._reader

    def _move(self, to: PartState, mover: Mover) -> bool:
        assert self._life is not None
        return self._life.move(to, mover)

    # --- the client's end -----------------------------------------------------------------------------

    def delivered(self) -> None:
        """The client has the whole answer."""
        if not self._move(PartState.DELIVERED, Mover.CLIENT) or self._claim is None or self._identity.kept:
            return
        try:
            self._claims.delivered(self._claim, is_followed(self._journal.store, self._claim.token))
        except StoreUnavailable as fault:
            log.warning("that an answer reached its client could not be kept: %s", fault.message)

    def send_away(self) -> None:
        """The client is told to come again. The turn goes on."""
        if self._move(PartState.SENT_AWAY, Mover.CLIENT):
            self._leave()

    def give_up(self) -> None:
        """The client left before the end. When no other client waits for the turn, the agent's run is ended."""
        if not self._move(PartState.GIVEN_UP, Mover.CLIENT) or not self._leave() or self._live is None:
            return
        self._live.gone.set()
        if self._live.is_running:
            self._cancel(self._live.stream.run_id)

    def _leave(self) -> bool:
        """Whether no client waits for the turn any more, as far as this worker can decide it."""
        self._open.close()
        if self._live is None:
            self._stream.gone.set()  # the follower's thread ends
            return False
        if not self._journal.live.leave(self._live):
            return False
        return not is_followed(self._journal.store, self._live.claim.token)


def _follow(follower: Follower, stream: TurnStream) -> None:
    try:
        end = follower.follow(stream.write, stream.gone)
    except Exception as fault:
        end = End("failed", as_failure(fault))
    stream.finish(end)
