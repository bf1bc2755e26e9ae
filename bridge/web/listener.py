"""Sends the reply of a turn to the client that waits for it, as a stream or whole.
While the client waits, the listener checks whether the client has left and whether the worker has to end.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from logging import Logger
from typing import Any

from bridge import sse
from bridge.dialects.base import Reply
from bridge.errors import BridgeError, ClientGone, ShuttingDown, StillRunning
from bridge.turn import AgentEvent, FormatChecked, Notice
from bridge.turns.part import Part
from bridge.turns.stream import SHOWN, Kinds
from bridge.web.faults import log_fault
from bridge.web.hangup import TICK, break_connection, client_is_gone
from bridge.web.piece_sender import PieceSender
from bridge.web.reply_socket import wait_for_client
from bridge.web.shutdown import Shutdown

# Says whether the reply has the form that `response_format` asks for.
FORMAT_HEADER = "X-Bridge-Format"


@dataclass(frozen=True, slots=True)
class Listener:
    """Sends one client the reply to its request. `part` is the part of this request in a turn."""

    part: Part
    reply: Reply
    environ: Mapping[str, Any]
    log: Logger
    shutdown: Shutdown

    def wait_before_headers(self, seconds: float, kinds: Kinds = SHOWN) -> None:
        """Waits for an event of these kinds or the end, at most `seconds`. Raises a failure that happens before that.
        Such a failure gets its own HTTP status. Later, the status 200 has been sent.
        """
        deadline = time.monotonic() + seconds
        while not self.part.wait_for_first_event(min(TICK, max(0.0, deadline - time.monotonic())), kinds):
            self._check_client()
            self._check_shutdown()
            if time.monotonic() >= deadline:
                return

    def whole_reply(self, seconds: float) -> bytes:
        """Returns the unstreamed reply as JSON when the turn has ended. Raises StillRunning after `seconds`."""
        body = self.reply.body(self._events_until(time.monotonic() + seconds))
        self._check_client()
        return json.dumps(body).encode()

    def send_whole(self, body: bytes) -> Iterator[bytes]:
        """Yields the unstreamed reply, then notes that the client got it.
        gunicorn asks for a second item when the first was sent, and closes the generator if the client has left.
        """
        wait_for_client(self.environ)
        try:
            yield body
        except GeneratorExit:
            self.part.give_up()
            raise
        self.part.note_delivery()

    def stream_frames(self, ping_interval: float, *, format_told: bool = False) -> Iterator[bytes]:
        """Yields the streamed reply, with a comment after each `ping_interval` seconds in which nothing was sent.
        `format_told`: the headers say whether the text has the wanted form; otherwise, a comment before the text does.
        gunicorn closes the generator if it can't send a frame.
        """
        wait_for_client(self.environ)
        try:
            yield from self._event_frames(ping_interval, format_told)
        except ClientGone:
            return
        except GeneratorExit:
            self.part.give_up()
            raise
        except Exception as fault:  # the status was sent, so the failure goes into the stream
            yield from self._failure_frames(log_fault(fault, self.log))

    def _event_frames(self, ping_interval: float, format_told: bool) -> Iterator[bytes]:
        # The headers are sent with the first byte. So the first comment comes after one tick without an event.
        quiet_since: float | None = time.monotonic() - ping_interval
        sender = PieceSender(self.reply, self.environ)
        for event in self.part.read(TICK):
            self._check_shutdown()
            if sender.has_sent():
                yield b""  # makes the server wait for a client that did not take everything
                quiet_since = None
            if event is None:
                self._check_client()
                now = time.monotonic()
                quiet_since = now - TICK if quiet_since is None else quiet_since
                if now - quiet_since >= ping_interval:
                    yield from self.reply.ping()
                    quiet_since = time.monotonic()
            else:
                if self.part.will_be_shown:
                    self._check_client()  # a client that timed out just now did not stop the answer
                    self.part.note_shown()
                    sender.begin(self.part)
                if isinstance(event, FormatChecked) and not format_told:
                    yield sse.encode_comment(f"{FORMAT_HEADER}: {event.outcome}")
                for frame in self._frames_for(event):
                    yield frame
                    quiet_since = None  # until the next look at the clock
        sender.has_sent()
        self._check_client()  # the client may have left since the last check: the first write after that still succeeds
        yield from self.reply.end()
        self.part.note_delivery()

    def _frames_for(self, event: AgentEvent) -> Iterable[bytes]:
        return [sse.encode_comment(event.text)] if isinstance(event, Notice) else self.reply.frames(event)

    def _failure_frames(self, failure: BridgeError) -> Iterator[bytes]:
        """Yields the end of a stream that failed, or breaks the connection if the failure is temporary, and the client
        would not send its request again otherwise.
        """
        if failure.is_temporary and self.reply.breaks_connection and break_connection(self.environ):
            return
        yield from self.reply.failure(failure)

    def _events_until(self, deadline: float) -> Iterator[AgentEvent]:
        """Yields the turn's events. Raises StillRunning at the deadline: the turn goes on without this request."""
        for event in self.part.read(TICK, whole=True):
            self._check_shutdown()
            if event is not None:
                yield event
                continue
            self._check_client()
            if time.monotonic() >= deadline:
                self.part.note_sent_away()
                raise StillRunning(
                    "The agent takes longer than an unstreamed reply may (BRIDGE_REPLY_WAIT). It goes on: send the same"
                    " request again to get its answer, or ask for a stream."
                )

    def _check_shutdown(self) -> None:
        if self.shutdown.since is None:
            return
        try:
            self.shutdown.check()
        except ShuttingDown:
            self.part.break_off()
            raise

    def _check_client(self) -> None:
        if client_is_gone(self.environ):
            self.part.give_up()
            raise ClientGone("The client closed the connection before the agent had finished.")
