"""Sends pieces of text to a client from the thread of the turn, which has them first. The thread of the request, which
would have to be woken for each, sleeps on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from bridge.dialects.base import Reply
from bridge.turn import AgentEvent
from bridge.turns.part import Part
from bridge.web.reply_writer import ReplyWriter

# Where the worker puts the writer of a reply, for this class. Over TLS and under another server there is none.
WRITER = "bridge.writer"


class PieceSender:
    """Makes the frames of pieces and writes them, for one reply. Does nothing if `environ` has no writer."""

    def __init__(self, reply: Reply, environ: Mapping[str, Any]) -> None:
        self._reply = reply
        self._writer: ReplyWriter | None = environ.get(WRITER)
        self._has_sent = False
        self._fault: Exception | None = None

    def begin(self, part: Part) -> None:
        """Has the turn's thread send from now on, while the thread of the request waits for the part's events."""
        if self._writer is not None:
            part.let_others_send(self._send)

    def has_sent(self) -> bool:
        """Whether anything was sent since the last look. Raises the fault that happened when frames were made. Faults
        of writing are raised by the writer.
        """
        if self._fault is not None:
            raise self._fault
        has_sent, self._has_sent = self._has_sent, False
        return has_sent

    def _send(self, pieces: Sequence[AgentEvent]) -> bool:
        """Sends the pieces without waiting. Returns False if the thread of the request has to do the rest: to wait for
        the client, or to end the reply after a fault. A fault must not reach the turn, which may have other clients.
        """
        assert self._writer is not None
        if self._fault is not None:
            return False
        try:
            frames = b"".join(chain.from_iterable(map(self._reply.frames, pieces)))
            self._has_sent = self._has_sent or bool(frames)  # whole messages have no frames for their pieces
            return self._writer.write_at_once(frames)
        except Exception as fault:
            self._fault = fault
            return False
