"""Reads the JSON body of a request, and decompresses it: some clients and proxies send it compressed."""

from __future__ import annotations

import threading
import zlib
from contextlib import ExitStack, nullcontext

from flask import Request
from werkzeug.exceptions import ClientDisconnected, RequestEntityTooLarge

from bridge.config import Settings
from bridge.errors import BodyTooLarge, InvalidRequest, TooSlow
from bridge.quick_json import RememberedValues
from bridge.turn import JsonObject
from bridge.web.json_body import (
    MOST_REMEMBERED,
    Arrays,
    UnparsedBody,
    count_values,
    find_known_arrays,
    parse_rest,
    parsed_size,
)
from bridge.web.known_beginnings import KnownBeginnings
from bridge.web.room import LARGE, SMALL, Room

# Levels of nesting that a request has around the schema of a tool.
LEVELS_AROUND_SCHEMA = 8
# How many times larger than its compressed form a body may be. Transcripts reach 30, one repeated letter 1,000.
MOST_UNPACKED = 100
# The `wbits` by which zlib chooses the format: 31 is gzip, 15 is zlib's own format.
_WINDOWS = {"gzip": 31, "x-gzip": 31, "deflate": 15}
_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
_TOO_SLOW = "The request body did not come whole, did not come in time, or came in too many small chunks."


class Bodies:
    """Reads the bodies of all requests of a worker.
    Bodies that may be large are decompressed and parsed one after the other: that takes several times their size.
    """

    def __init__(self, settings: Settings, room: Room) -> None:
        self._room = room
        self._largest = settings.max_body
        self._deepest = settings.max_depth + LEVELS_AROUND_SCHEMA
        self._lock = threading.Lock()
        self._arrays: Arrays = RememberedValues(MOST_REMEMBERED)
        self._beginnings = KnownBeginnings()

    def read(self, request: Request, until_sent: ExitStack, until_over: ExitStack) -> JsonObject:
        """Returns the body's JSON object. It counts as held until `until_over` is closed: a turn keeps much of it, also
        when its reply was sent or its client has left. What was received is counted by the worker until `until_sent`
        is closed.
        """
        return self.read_with_bytes(request, until_sent, until_over)[0]

    def read_with_bytes(
        self, request: Request, until_sent: ExitStack, until_over: ExitStack
    ) -> tuple[JsonObject, bytes]:
        """Returns the body's JSON object as `read` does, and the unpacked body itself."""
        received = _receive_body(request)
        encoding = _encoding_of(request)
        with self._lock if encoding or len(received) > SMALL else nullcontext():
            body = self._unpack(received, encoding) if encoding else received
            parsed = self._parse(body, len(received), request.mimetype, until_over)
        until_over.callback(self._room.remove, len(received))
        until_sent.callback(self._room.add, len(received))
        return parsed, body

    def read_bytes(self, request: Request, until_sent: ExitStack) -> bytes:
        """Returns the body unpacked. What it is larger than what was received counts until `until_sent` is closed."""
        received = _receive_body(request)
        encoding = _encoding_of(request)
        if not (encoding and received):
            return received
        with self._lock:
            body = self._unpack(received, encoding)
            self._hold(body, max(0, len(body) - len(received)), until_sent)
        return body

    def _parse(self, body: bytes, received: int, declared: str, until_over: ExitStack) -> JsonObject:
        """Returns the JSON object of a body. It counts as held until `until_over` is closed, but for the bytes
        that were `received`, which are counted elsewhere.
        """
        known, text = self._beginnings.find(body)
        unparsed = find_known_arrays(text, self._arrays)
        values = count_values(unparsed.text)
        size = parsed_size(unparsed.text, values) + (known.size if known else 0)
        self._hold(body, max(0, size - received), until_over)
        if known is not None:
            try:
                value = self._parse_rest(unparsed, known.values + values, declared)
            except InvalidRequest:  # the whole body is parsed, for an error with the right place
                known, text = None, body
                unparsed, values = UnparsedBody(body), count_values(body)
            else:
                value = {**value, known.name: [*known.items, *value[known.name]]}
        if known is None:
            value = self._parse_rest(unparsed, values, declared)
        self._beginnings.add(body, known, text, value)
        return value

    def _parse_rest(self, unparsed: UnparsedBody, values: int, declared: str) -> JsonObject:
        """Returns the JSON object of a body. The type that the client declares does not matter, except in the error."""
        try:
            return parse_rest(unparsed, values, self._deepest, self._arrays)
        except InvalidRequest as fault:
            if fault.code != "invalid_json" or declared not in _FORMS:
                raise
            raise InvalidRequest(
                f"The request body is a form ({declared}), and must be JSON: send the header"
                " `Content-Type: application/json` and a JSON object.",
                code=fault.code,
            ) from fault

    def _hold(self, body: bytes, added: int, until_over: ExitStack) -> None:
        """Counts the bytes by which a parsed body is larger than what the worker received. Small ones are accepted."""
        if len(body) > SMALL:
            self._room.take(added)
        else:
            self._room.add(added)
        until_over.callback(self._room.remove, added)

    def _unpack(self, packed: bytes, encoding: str) -> bytes:
        if encoding not in _WINDOWS:
            raise InvalidRequest(f"The Content-Encoding {encoding!r:.40} is not supported; send gzip, deflate or none.")
        most = min(self._largest, max(LARGE, MOST_UNPACKED * len(packed)))
        unpacker = zlib.decompressobj(_WINDOWS[encoding])
        try:
            body = unpacker.decompress(packed, most + 1)
        except zlib.error:
            raise InvalidRequest(f"The request body is not valid {encoding}.", code="invalid_encoding") from None
        if len(body) > most:
            reason = "" if most == self._largest else f": {MOST_UNPACKED} times its size, or {LARGE} bytes"
            raise BodyTooLarge(f"The request body is larger than {most} bytes when unpacked{reason}.")
        if not unpacker.eof:
            raise InvalidRequest(f"The request body ends in the middle of its {encoding}.", code="invalid_encoding")
        return body


def _encoding_of(request: Request) -> str:
    """Returns how the body is compressed, "" if it is not."""
    encoding = request.headers.get("Content-Encoding", "").strip().lower()
    return "" if encoding == "identity" else encoding


def _receive_body(request: Request) -> bytes:
    """Returns the body as it was sent, maybe compressed."""
    try:
        received = _read_input(request)
        # Of a body in chunks, Flask returns only as much as is allowed. One more byte shows that the body is too large.
        more = "wsgi.input_terminated" in request.environ and request.environ["wsgi.input"].read(1)
    except (ClientDisconnected, OSError):
        raise TooSlow(_TOO_SLOW) from None
    if more:
        raise RequestEntityTooLarge
    if len(received) < (request.content_length or 0):  # gunicorn ends a body where the client stops sending
        raise TooSlow(_TOO_SLOW)
    return received


def _read_input(request: Request) -> bytes:
    """Returns what was sent. A body of known length is read without werkzeug's buffers, which copy it several times."""
    length = request.content_length
    if length is None:
        return request.get_data(cache=False)
    if request.max_content_length is not None and length > request.max_content_length:
        raise RequestEntityTooLarge
    received: bytes = request.environ["wsgi.input"].read(length)
    return received
