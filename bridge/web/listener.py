"""Serves the client that waits for a turn: sends frames as they come, comments between them, and sees it leave."""

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
from bridge.web.faults import log_fault
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

    def wait_before_headers(self, seconds: float) -> None:
        """Waits for the first sign, at most `seconds`. So a failure before it has its true status in the headers."""
        deadline = time.monotonic() + seconds
        while not self.part.wait_for_first(min(TICK, max(0.0, deadline - time.monotonic()))):
            self._check_client()
            self._check_shutdown()
            if time.monotonic() >= deadline:
                return

    def whole_reply(self, seconds: float) -> bytes:
        """Returns the unstreamed reply. Raises StillRunning if it takes longer than `seconds`."""
        body = self.reply.body(self._events_until(time.monotonic() + seconds))
        self._check_client()
        return json.dumps(body).encode()

    def send_whole(self, body: bytes) -> Iterator[bytes]:
        """Yields the body. The code after `yield` runs when the body was sent to the client."""
        try:
            yield body
        except GeneratorExit:
            self.part.give_up()
            raise
        self.part.delivered()

    def stream_frames(self, ping_interval: float) -> Iterator[bytes]:
        """Yields the streamed reply, with a comment after every `ping_interval` seconds of silence."""
        try:
            yield from self._event_frames(ping_interval)
        except ClientGone:
            return
        except GeneratorExit:
            self.part.give_up()
            raise
        except Exception as fault:  # the status was sent, so the failure goes into the stream
            yield from self._failure_frames(log_fault(fault, self.log))

    def _event_frames(self, ping_interval: float) -> Iterator[bytes]:
        # The status is sent with the first byte. So the first silence has its comment at once.
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
        self._check_client()  # it may have left since the last silence, and writes may still succeed
        yield from self.reply.end()
        self.part.delivered()

    def _failure_frames(self, failure: BridgeError) -> Iterator[bytes]:
        """Ends the stream as a failure. Breaks the connection if trying again may help: coding clients then do so.

        After an error event they give up.
        """
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
