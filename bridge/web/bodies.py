"""Reads the body of a request, and decompresses it: some clients and proxies send it compressed."""

from __future__ import annotations

import zlib

from flask import Request
from werkzeug.exceptions import ClientDisconnected, RequestEntityTooLarge

from bridge.errors import BodyTooLarge, InvalidRequest, TooSlow

# The `wbits` by which zlib chooses the format: 31 is gzip, 15 is zlib's own format.
_WINDOWS = {"gzip": 31, "x-gzip": 31, "deflate": 15}
_TOO_SLOW = "The request body did not come whole, did not come in time, or came in too many small chunks."


def read_body(request: Request, limit: int) -> bytes:
    """Returns the body of the request, decompressed. Raises BodyTooLarge if it has more than `limit` bytes then."""
    packed = _receive_body(request)
    encoding = request.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding in ("", "identity"):
        return packed
    if encoding not in _WINDOWS:
        raise InvalidRequest(f"The Content-Encoding {encoding!r:.40} is not supported; send gzip, deflate or none.")
    unpacker = zlib.decompressobj(_WINDOWS[encoding])
    try:
        body = unpacker.decompress(packed, limit + 1)
    except zlib.error:
        raise InvalidRequest(f"The request body is not valid {encoding}.", code="invalid_encoding") from None
    if len(body) > limit:
        raise BodyTooLarge(f"The request body is larger than {limit} bytes when unpacked.")
    if not unpacker.eof:
        raise InvalidRequest(f"The request body ends in the middle of its {encoding}.", code="invalid_encoding")
    return body


def _receive_body(request: Request) -> bytes:
    try:
        received = request.get_data(cache=False)
        # Of a body in chunks, Flask returns only as much as is allowed. One more byte shows that the body is too large.
        more = "wsgi.input_terminated" in request.environ and request.environ["wsgi.input"].read(1)
    except (ClientDisconnected, OSError):
        raise TooSlow(_TOO_SLOW) from None
    if more:
        raise RequestEntityTooLarge
    if len(received) < (request.content_length or 0):  # gunicorn ends a body where the client stops sending
        raise TooSlow(_TOO_SLOW)
    return received
