"""A turn and the client that waits for it: frames as they come, signs of life meanwhile, and an ear for its going."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from logging import Logger
from typing import Any, NoReturn

from bridge import sse
from bridge.dialects.chat_completions.frames import Frames
from bridge.dialects.chat_completions.reply import Envelope, Reply, completion
from bridge.dialects.openai.errors import error_object
from bridge.errors import BridgeError, ClientGone, ShuttingDown, StillRunning
from bridge.journal.stream import TurnStream
from bridge.turn import AgentEvent, Turn
from bridge.web.faults import as_told
from bridge.web.hangup import client_is_gone, cut
from bridge.web.shutdown import Closing

TICK = 0.5


@dataclass(frozen=True, slots=True)
class Listener:
    """The connected client.

    `delivered` is called when it was given all, `give_up` when it has gone before that, and `step_back` when it is
    sent away while the turn goes on.
    """

    feed: TurnStream
    turn: Turn
    environ: Mapping[str, Any]
    log: Logger
    delivered: Callable[[], None]
    give_up: Callable[[], None]
    step_back: Callable[[], None]
    closing: Closing

    def wait_for_first(self, seconds: float) -> None:
        """Headers wait for the first sign, so that an early failure has its true status; but not for ever."""
        deadline = time.monotonic() + seconds
        while not self.feed.wait_for_first(min(TICK, max(0.0, deadline - time.monotonic()))):
            if client_is_gone(self.environ):
                self._leave()
            self._check_closing()
            if time.monotonic() >= deadline:
                return

    def whole(self, seconds: float) -> bytes:
        """The unstreamed reply, unless it takes longer than that."""
        reply = completion(self._events_until(time.monotonic() + seconds), Envelope(self.turn.model))
        if client_is_gone(self.environ):
            self._leave()
        return json.dumps(reply).encode()

    def sent(self, body: bytes) -> Iterator[bytes]:
        """The body as it is; what comes after it is done when the client has been given it."""
        try:
            yield body
        except GeneratorExit:
            self.give_up()
            raise
        self.delivered()

    def frames(self, ping_interval: float) -> Iterator[bytes]:
        """The streamed reply, with a comment whenever it was quiet for `ping_interval` seconds."""
        try:
            yield from self._frames(ping_interval)
        except ClientGone:
            return
        except GeneratorExit:
            self.give_up()
            raise
        except Exception as fault:  # the status is sent; what is left is to end as a failure
            yield from self._failure(as_told(fault, self.log))

    def _frames(self, ping_interval: float) -> Iterator[bytes]:
        frames = Frames(Reply(Envelope(self.turn.model), include_usage=self.turn.include_usage))
        # The status leaves with the first byte, so the first silence has its comment at once.
        quiet_since = time.monotonic() - ping_interval
        for event in self._events():
            if event is not None:
                for frame in frames.of(event):
                    yield frame
                    quiet_since = time.monotonic()
            elif time.monotonic() - quiet_since >= ping_interval:
                yield sse.PING
                quiet_since = time.monotonic()
        if client_is_gone(self.environ):  # it closed since the last silence, and writing to it may not fail yet
            self._leave()
        yield from frames.end()
        self.delivered()

    def _failure(self, failure: BridgeError) -> Iterator[bytes]:
        """Coding clients try again after a broken connection and give up after an error event: each where it helps."""
        if failure.is_temporary and cut(self.environ):
            return
        yield sse.encode(error_object(failure))

    def _events(self) -> Iterator[AgentEvent | None]:
        """The turn's events, and None in every moment of silence in which the client is still there."""
        for event in self.feed.read(TICK):
            if event is None and client_is_gone(self.environ):
                self._leave()
            self._check_closing()
            yield event

    def _check_closing(self) -> None:
        try:
            self.closing.check()
        except ShuttingDown:
            self.give_up()
            raise

    def _events_until(self, deadline: float) -> Iterator[AgentEvent]:
        for event in self._events():
            if event is not None:
                yield event
            elif time.monotonic() >= deadline:
                self.step_back()
                raise StillRunning(
                    "The agent takes longer than an unstreamed reply may (BRIDGE_REPLY_WAIT). It goes on: send the same"
                    " request again to get its answer, or ask for a stream."
                )

    def _leave(self) -> NoReturn:
        self.give_up()
        raise ClientGone("The client closed the connection before the agent had finished.")
