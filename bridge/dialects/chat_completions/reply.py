"""Writes the reply to one chat request, as a stream of chunks or as one completion."""

from __future__ import annotations

import secrets
from collections.abc import Iterable

from bridge import sse
from bridge.dialects.chat_completions.chunks import Chunks, Envelope, completion_from_events
from bridge.dialects.openai.errors import error_object
from bridge.errors import BridgeError
from bridge.turn import AgentEvent, JsonObject, Reasoning, Text


class ChatReply:
    """Writes chunks. Chunks of text differ only in the text, so the bytes before and after it are encoded once."""

    breaks_connection = True

    def __init__(self, model: str, *, include_usage: bool = False) -> None:
        self._envelope = Envelope(model)
        self._chunks = Chunks(self._envelope, include_usage=include_usage)
        self._around: dict[type[AgentEvent], tuple[bytes, bytes]] = {}

    def begin(self, turn_id: str) -> None:
        """A completion has an id of its own."""

    def frames(self, event: AgentEvent) -> list[bytes]:
        around = self._around.get(type(event))
        if around is not None and isinstance(event, Text | Reasoning):
            text = self._chunks.text_of(event)
            return [around[0] + sse.encode_text(text) + around[1]]
        frames = [sse.encode_event(chunk) for chunk in self._chunks.chunks_for(event)]
        # Only this chunk can have the role. Later chunks of the same kind differ only in their text.
        if isinstance(event, Text | Reasoning):
            self._around[type(event)] = self._bytes_around_text(type(event))
        return frames

    def ping(self) -> list[bytes]:
        return [sse.PING]

    def end(self) -> list[bytes]:
        return [*map(sse.encode_event, self._chunks.last_chunks()), sse.END]

    def failure(self, failure: BridgeError) -> list[bytes]:
        return [sse.encode_event(error_object(failure))]

    def body(self, events: Iterable[AgentEvent]) -> JsonObject:
        return completion_from_events(events, self._envelope)

    def _bytes_around_text(self, kind: type[Text | Reasoning]) -> tuple[bytes, bytes]:
        """Makes a chunk with a random text, and returns the bytes of the chunk before and after that text."""
        hole = secrets.token_hex(16)
        before, _, after = sse.encode_event(self._chunks.text_chunk(kind, hole)).partition(f'"{hole}"'.encode())
        return before, after
