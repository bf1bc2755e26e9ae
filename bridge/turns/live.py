"""The turns that this worker runs: their threads write them, clients of this worker read them, the store keeps them."""

from __future__ import annotations

import threading
from collections.abc import Callable

from bridge.errors import BridgeError, InternalFailure
from bridge.journal.batches import End
from bridge.journal.claims import Claim, Identity, claim_key
from bridge.journal.recording import Recording
from bridge.store.heartbeat import Heartbeat
from bridge.store.port import Store
from bridge.turn import AgentEvent, MethodChosen
from bridge.turns.life import TURN_MOVES, Life, Mover, TurnState
from bridge.turns.stream import TurnStream


class LiveTurn:
    """One attempt at a turn. `parts` counts the requests of this worker that wait for it."""

    def __init__(self, claim: Claim, recording: Recording) -> None:
        self.claim = claim
        self.stream = TurnStream()
        self.life = Life(TurnState.WAITING, TURN_MOVES)
        self.parts = 1
        self._recording = recording

    @property
    def gone(self) -> threading.Event:
        """Set when no client waits for this turn any more."""
        return self.stream.gone

    @property
    def has_begun(self) -> bool:
        """Whether the agent may have heard of it."""
        return self.life.state is not TurnState.WAITING

    @property
    def is_running(self) -> bool:
        return self.life.state is TurnState.RUNNING

    def write(self, event: AgentEvent) -> None:
        if isinstance(event, MethodChosen):
            self.life.move(TurnState.RUNNING, Mover.TURN)
        self._recording.count(event)
        self.stream.write(event)

    def flush(self) -> None:
        """Write to the store what has happened since the last time."""
        self._recording.flush(self.stream.events)

    def end(self, fault: BaseException | None) -> End:
        """Writes to the store how the turn ended, before any client knows it: a client may ask again at once."""
        self.life.move(TurnState.FAILED if fault else TurnState.ENDED, Mover.TURN)
        failure = None if fault is None else as_failure(fault)
        end = End("failed" if fault else "well", failure, self.gone.is_set())
        self._recording.end(self.stream.events, end)
        return end


class LiveTurns:
    """The turns of this worker by the token of their attempt. The heartbeat names them, and writes them down."""

    def __init__(self, store: Store, keep: float, heartbeat: Heartbeat) -> None:
        self._store = store
        self._keep = keep
        self._heartbeat = heartbeat
        self._live: dict[str, LiveTurn] = {}
        self._guard = threading.Lock()
        heartbeat.carry(lambda: [*self._live], self.flush)

    def begin(self, identity: Identity, claim: Claim) -> LiveTurn:
        recording = Recording(self._store, claim.token, (claim_key(identity), claim.text()), self._keep)
        live = LiveTurn(claim, recording)
        with self._guard:
            self._live[claim.token] = live
        self._heartbeat.hurry()
        return live

    def end(self, live: LiveTurn, fault: BaseException | None, before: Callable[[], None]) -> None:
        """`before` is called before the clients of this worker see the end."""
        end = live.end(fault)
        with self._guard:
            self._live.pop(live.claim.token, None)
        before()
        live.stream.finish(end)

    def join(self, token: str) -> LiveTurn | None:
        """The turn, if it runs here, with one more part."""
        with self._guard:
            live = self._live.get(token)
            if live is not None:
                live.parts += 1
            return live

    def leave(self, live: LiveTurn) -> bool:
        """One part less; whether it was the last."""
        with self._guard:
            live.parts -= 1
            return live.parts <= 0

    def flush(self) -> None:
        with self._guard:
            live = [*self._live.values()]
        for turn in live:
            turn.flush()


def as_failure(fault: BaseException) -> BridgeError:
    """What clients are told of it. A fault of the bridge is described in the log of the worker that had it."""
    return fault if isinstance(fault, BridgeError) else InternalFailure("The bridge failed; its log says why.")
