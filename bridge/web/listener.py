"""The client that waits for a turn: it gets frames as they come and signs of life between them, and it may leave."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from logging import Logger
from typing import Any, NoReturn

from bridge import sse
from bridge.dialects.base import Reply
from bridge.errors import BridgeError, ClientGone, ShuttingDown, StillRunning
from bridge.turn import AgentEvent
from bridge.turns.part import Part
from bridge.web.faults import logged_failure
from bridge.web.hangup import break_connection, client_is_gone
from bridge.web.shutdown import Shutdown

TICK = 0.5


@dataclass(frozen=True, slots=True)
class Listener:
    """One connected client and its part in a turn."""

    part: Part
    reply: Reply
    environ: Mapping[str, Any]
    log: Logger
    shutdown: Shutdown

    def wait_for_first(self, seconds: float) -> None:
        """Headers wait for the first sign, so that an early failure has its true status; but not for ever."""
        deadline = time.monotonic() + seconds
        while not self.part.wait_for_first(min(TICK, max(0.0, deadline - time.monotonic()))):
            self._check_client()
            self._check_shutdown()
            if time.monotonic() >= deadline:
                return

    def whole(self, seconds: float) -> bytes:
        """The unstreamed reply, unless it takes longer than that."""
        body = self.reply.body(self._events_until(time.monotonic() + seconds))
        self._check_client()
        return json.dumps(body).encode()

    def sent(self, body: bytes) -> Iterator[bytes]:
        """The body as it is. The code after `yield` runs when the client was given it."""
        try:
            yield body
        except GeneratorExit:
            self.part.give_up()
            raise
        self.part.delivered()

    def frames(self, ping_interval: float) -> Iterator[bytes]:
        """The streamed reply, with a comment after every `ping_interval` seconds of silence."""
        try:
            yield from self._frames(ping_interval)
        except ClientGone:
            return
        except GeneratorExit:
            self.part.give_up()
            raise
        except Exception as fault:  # the status is sent; all that is left is to end as a failure
            yield from self._failure(logged_failure(fault, self.log))

    def _frames(self, ping_interval: float) -> Iterator[bytes]:
        # The status leaves with the first byte, so the first silence has its comment at once.
        quiet_since = time.monotonic() - ping_interval
        for event in self.part.read(TICK):
            self._check_shutdown()
            if event is None:
                self._check_client()
                if time.monotonic() - quiet_since >= ping_interval:
                    yield sse.PING
                    quiet_since = time.monotonic()
            else:
                for frame in self.reply.frames(event):
                    yield frame
                    quiet_since = time.monotonic()
        self._check_client()  # it may have closed since the last silence, and writing to it need not fail yet
        yield from self.reply.end()
        self.part.delivered()

    def _failure(self, failure: BridgeError) -> Iterator[bytes]:
        """Coding clients try again after a broken connection and give up after an error event: each where it helps."""
        if failure.is_temporary and break_connection(self.environ):
            return
        yield from self.reply.failure(failure)

    def _events_until(self, deadline: float) -> Iterator[AgentEvent]:
        for event in self.part.read(TICK):
            self._check_shutdown()
            if event is not None:
                yield event
                continue
            self._check_client()
            if time.monotonic() >= deadline:
                self.part.send_away()
                raise StillRunning(
                    "The agent takes longer than an unstreamed reply may (BRIDGE_REPLY_WAIT). It goes on: send the same"
                    " request again to get its answer, or ask for a stream."
                )

    def _check_shutdown(self) -> None:
        try:
            self.shutdown.check()
        except ShuttingDown:
            self.part.give_up()
            raise

    def _check_client(self) -> None:
        if client_is_gone(self.environ):
            self._leave()

    def _leave(self) -> NoReturn:
        self.part.give_up()
        raise ClientGone("The client closed the connection before the agent had finished.")
