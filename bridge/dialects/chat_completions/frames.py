"""A reply's chunks as frames. Deltas of text differ in their text alone: what is around it is encoded once."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from json.encoder import encode_basestring

from bridge import sse
from bridge.dialects.chat_completions.reply import Reply
from bridge.turn import AgentEvent, Reasoning, Text


class Frames:
    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self._around: dict[type[AgentEvent], tuple[bytes, bytes]] = {}

    def of(self, event: AgentEvent) -> Iterator[bytes]:
        """What the client is sent for `event`."""
        around = self._around.get(type(event))
        if around is not None and isinstance(event, Text | Reasoning):
            yield around[0] + encode_basestring(event.text).encode("utf-8", "replace") + around[1]
            return
        for chunk in self._reply.chunks(event):
            yield sse.encode(chunk)
        if isinstance(event, Text | Reasoning):  # the role has gone out with it: from now on all of its kind are alike
            self._around[type(event)] = self._without_text(type(event))

    def end(self) -> Iterator[bytes]:
        for chunk in self._reply.end():
            yield sse.encode(chunk)
        yield sse.END

    def _without_text(self, kind: type[Text | Reasoning]) -> tuple[bytes, bytes]:
        hole = secrets.token_hex(16)
        (frame,) = (sse.encode(chunk) for chunk in self._reply.chunks(kind(hole)))
        before, _, after = frame.partition(f'"{hole}"'.encode())
        return before, after
