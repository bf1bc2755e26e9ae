"""Connects one request with a turn: the request begins the turn, joins it, or gets its recorded answer."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from threading import Thread

from bridge.errors import BridgeError, IdempotencyKeyReused, RequestConflict, TurnLost
from bridge.journal.batches import End, failure_from_fault
from bridge.journal.claims import Claim, Identity
from bridge.journal.follower import Follower
from bridge.turn import AgentEvent, FormatOutcome, MethodChosen
from bridge.turns.attempts import Attempt, Attempts
from bridge.turns.life import PART_MOVES, Life, Mover, PartState
from bridge.turns.lingering import Lingering, Runner
from bridge.turns.stream import SHOWN, Kinds, Reader, TurnStream

log = logging.getLogger(__name__)


class Part:
    """One request's part in a turn. Only the thread of the request uses it.
    Its methods that read raise the failure that ended the turn. If the attempt was lost before the client saw anything,
    they begin the turn again.
    """

    def __init__(self, attempts: Attempts, identity: Identity, runner: Runner) -> None:
        self._attempts = attempts
        self._identity = identity
        self._claims = attempts.claims(identity)
        self._runner = runner
        self._lingering = Lingering(attempts, runner)
        self._claim: Claim | None = None
        self._attempt: Attempt | None = None  # None if another worker makes it
        self._life: Life[PartState] | None = None
        self._stream = TurnStream()
        self._reader: Reader | None = None

    # --- begin, join or repeat ------------------------------------------------------------------------

    def begin(self, lost: Claim | None = None) -> None:
        """Begins the turn, joins its running attempt, or takes its recorded answer, whichever is possible now.
        If the earlier attempt failed or is `lost` (joined, but without an answer), makes a new attempt.
        """
        while True:
            mine = Claim.new(self._identity.body, self._attempts.heartbeat.id)
            there = self._take(mine)
            if there is None:
                return self._make_attempt(mine, repeated=False)
            if there.body != mine.body:
                raise IdempotencyKeyReused("This Idempotency-Key came before with another request body.")
            if there != lost and self._join_or_repeat(there):
                return None
            again = Claim.new(mine.body, mine.worker, there.turn)
            if self._claims.take_over(there, again):
                return self._make_attempt(again, repeated=True)

    def _take(self, mine: Claim) -> Claim | None:
        """Stores our claim if the turn has none, and returns None. Otherwise returns the claim that is there. If the
        store has just lost its data, waits for that of the other workers first: one may run the turn.
        """
        heartbeat = self._attempts.heartbeat
        kept = heartbeat.sign_of_kept_data()
        if kept is not None and self._claims.take_if_free(mine, kept):  # the usual case
            return None
        heartbeat.wait_for_lost_data(self._claims.is_claimed)
        return self._claims.take(mine)

    def _make_attempt(self, claim: Claim, *, repeated: bool) -> None:
        attempt = self._attempts.begin(claim, self._claims, repeated=repeated)
        self._enter(PartState.BEGUN, claim, attempt, attempt.stream)
        try:
            self._runner.start(attempt)
        except BaseException as fault:  # no thread can be started
            self._attempts.end(attempt, fault)
            raise

    def _join_or_repeat(self, other: Claim) -> bool:
        """Joins the attempt of `other`, or takes its recorded answer. Returns False if a new attempt has to be made."""
        follower = Follower(self._attempts.store, other)
        end = follower.read_end()
        if end is None:
            self._join(other, follower)
            return True
        if end.how != "well" or not self._gets_recorded_answer(other, follower):
            return False
        self._enter(PartState.REPEATED, other, None, TurnStream(follower.recorded, end))
        return True

    def _join(self, other: Claim, follower: Follower) -> None:
        """Reads the events of a running attempt: directly if this worker makes it, otherwise from the store."""
        attempt = self._attempts.join(other.token)
        self._enter(PartState.JOINED, other, attempt, attempt.stream if attempt else TurnStream())
        if attempt is None:
            Thread(target=_follow_attempt, args=(follower, self._stream), name="follower", daemon=True).start()

    def _gets_recorded_answer(self, other: Claim, follower: Follower) -> bool:
        """Returns whether this request gets the recorded answer: it is kept, or its client did not get it."""
        if self._identity.kept:
            return self._identity.keyed or not follower.is_empty
        return not self._claims.is_just_delivered(other)

    def _enter(self, state: PartState, claim: Claim, attempt: Attempt | None, stream: TurnStream) -> None:
        """Sets the state and claim of this part, and reads `stream` from its first event on."""
        if self._life is None:
            self._life = Life(state, PART_MOVES)
        else:
            self._life.move(state, Mover.REPEAT)
        if self._reader is not None:
            self._reader.close()
        self._claim, self._attempt, self._stream, self._reader = claim, attempt, stream, stream.reader()

    @property
    def turn_id(self) -> str:
        """The id of the turn, the same for each request that has a part in it."""
        assert self._claim is not None
        return self._claim.turn

    # --- read -----------------------------------------------------------------------------------------

    @property
    def will_be_shown(self) -> bool:
        """Whether the beginning of the answer was read, and the client has nothing of it yet."""
        return self._life is not None and self._life.state is PartState.READ

    def note_shown(self) -> None:
        """Notes that the client gets the beginning of the answer now. If it leaves after that, it has stopped it."""
        self._move(PartState.SHOWN, Mover.CLIENT)

    def let_others_send(self, send: Callable[[Sequence[AgentEvent]], bool]) -> None:
        """Lets the thread of the turn send pieces of text while the thread of the request waits in `read`."""
        self._current_reader.let_others_send(send)

    @property
    def chosen(self) -> MethodChosen | None:
        """The event that begins the turn, None until its interception method is chosen."""
        return self._stream.chosen

    @property
    def format_outcome(self) -> FormatOutcome | None:
        """What the check of the agent's final text found; None if it is not checked yet, or not at all."""
        return self._stream.format_outcome

    def wait_for_first_event(self, seconds: float, kinds: Kinds = SHOWN) -> bool:
        """Waits at most `seconds` for an event of these `kinds` or a good end. Returns whether one came."""
        deadline = time.monotonic() + seconds
        while True:
            self._current_reader.wait_for_any(kinds, deadline - time.monotonic())
            if self._stream.has_any(kinds) or self._stream.end is None:
                return self._stream.has_any(kinds)
            if not self._begin_again(self._stream.end):
                return True

    def read(self, tick: float, *, whole: bool = False) -> Iterator[AgentEvent | None]:
        """Yields all events until a good end. Yields None after `tick` seconds without one, to check the client. With
        `whole`, yields the events at the end only: so the thread is not woken for each of them.
        """
        while True:
            reader = self._current_reader
            events = reader.read_whole(tick) if whole else reader.read(tick)
            for event in events:
                if isinstance(event, SHOWN):
                    self._move(PartState.READ, Mover.CLIENT)
                yield event
            if events:
                continue
            if not reader.at_end:
                yield None
            elif self._stream.end is not None and not self._begin_again(self._stream.end):
                return

    def _begin_again(self, end: End) -> bool:
        """Begins the turn again if the joined attempt was lost: its worker died, or its last client left.
        Returns False if the attempt ended well. Raises its failure if it failed, or if this part may not begin again:
        it began the turn itself, or its client got the beginning of the answer.
        """
        if end.how == "well":
            return False
        if (end.how == "lost" or end.gone) and self._move(PartState.LOST, Mover.REPEAT):
            self.begin(lost=self._claim)
            return True
        self._move(PartState.REFUSED, Mover.REPEAT)
        if end.how == "lost":
            raise TurnLost("The worker that ran this turn is gone. Send the request again to get its answer.")
        raise end.failure or RequestConflict(
            "This turn ran elsewhere, and its answer is too large to be had from there."
        )

    @property
    def _current_reader(self) -> Reader:
        assert self._reader is not None
        return self._reader

    def _move(self, to: PartState, mover: Mover) -> bool:
        assert self._life is not None
        return self._life.move(to, mover)

    # --- the client's end -----------------------------------------------------------------------------

    def note_delivery(self) -> None:
        """Notes that the client has the whole answer. Without `Identity.kept`, the same request is a new turn then."""
        if self._move(PartState.DELIVERED, Mover.CLIENT) and self._claim is not None and not self._identity.kept:
            self._claims.note_delivery(self._claim)

    def note_sent_away(self) -> None:
        """Notes that the client was asked to repeat its request later. Stops reading; the turn goes on."""
        if self._move(PartState.SENT_AWAY, Mover.CLIENT):
            self._stop_reading()
            if self._attempt is not None:
                self._attempts.send_away(self._attempt)

    def give_up(self) -> None:
        """Notes that the client left before the end. If it got nothing of the answer, the turn goes on for a while, for
        a repeat of the request. Otherwise cancels the agent's run. Both only if no other client waits for the turn.
        """
        if self._move(PartState.LEFT_EARLY, Mover.CLIENT):
            self._leave(may_come_back=True)
        elif self._move(PartState.GIVEN_UP, Mover.CLIENT):
            self._leave(may_come_back=False)

    def break_off(self) -> None:
        """Notes that this worker has to end. Cancels the agent's run, unless another worker makes the attempt or
        another client waits for it.
        """
        if self._move(PartState.GIVEN_UP, Mover.CLIENT):
            self._leave(may_come_back=self._attempt is None)

    def _leave(self, *, may_come_back: bool) -> None:
        self._stop_reading()
        if self._attempt is not None:
            self._lingering.leave(self._attempt, may_come_back=may_come_back)
        elif self._claim is not None:
            self._lingering.leave_elsewhere(self._claim.token, may_come_back=may_come_back)

    def _stop_reading(self) -> None:
        self._current_reader.close()
        if self._attempt is None:
            self._stream.gone.set()  # ends the follower's thread


def _follow_attempt(follower: Follower, stream: TurnStream) -> None:
    """Copies the events of another worker's attempt from the store to `stream`, in a thread of its own."""
    try:
        end = follower.follow(stream.write, stream.gone)
    except Exception as fault:
        if not isinstance(fault, BridgeError):
            log.exception("a turn of another worker could not be followed")
        end = End("failed", failure_from_fault(fault))
    stream.finish(end)
