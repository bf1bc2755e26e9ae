"""The parts of an answer that is passed on to a client as it is: its headers and its body."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

# Headers about one connection, which end where the connection ends.
HOP_BY_HOP = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection"),
        *("te", "trailer", "transfer-encoding", "upgrade"),
    }
)

# Names the bridge in its calls to Letta, so that a bridge that calls itself notices it (RFC 9110, 7.6.3).
VIA = "1.1 letta-tool-bridge"

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def end_to_end_headers(fields: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Returns the headers without those of the connection. Leaves out malformed ones and uncertain lengths."""
    found = [(name, text) for name, text in fields if _TOKEN.fullmatch(name) and text.isprintable()]
    named = {word.strip().lower() for name, text in found if name.lower() == "connection" for word in text.split(",")}
    dropped = HOP_BY_HOP | named | (set() if _has_certain_length(found) else {"content-length"})
    return [(name, text) for name, text in found if name.lower() not in dropped]


def _has_certain_length(fields: Iterable[tuple[str, str]]) -> bool:
    """Returns whether the body has the length that its header says: a body in chunks may have another."""
    texts = {name.lower(): text for name, text in fields}
    return "transfer-encoding" not in texts and re.fullmatch("[0-9]+", texts.get("content-length", "")) is not None


class ForeignBody:
    """A body as it arrives. `close` also works before the first piece was read, which a generator's does not. `abort`
    is for other threads than the one that reads.
    """

    def __init__(
        self,
        pieces: Iterable[bytes],
        close: Callable[[], object] = lambda: None,
        abort: Callable[[], object] = lambda: None,
    ) -> None:
        self._pieces = iter(pieces)
        self._close = close
        self._abort = abort

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        return next(self._pieces)

    def close(self) -> None:
        self._close()

    def abort(self) -> None:
        self._abort()
