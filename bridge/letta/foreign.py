"""The parts of an answer that is passed on to a client as it is: its headers and its body."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

# Headers about one connection, which end where the connection ends.
HOP_BY_HOP = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection"),
        *("te", "trailer", "transfer-encoding", "upgrade"),
    }
)


def end_to_end_headers(fields: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Returns the headers without those of the connection. Leaves out a header of several lines."""
    found = [(name, text) for name, text in fields if text.isprintable()]
    named = {word.strip().lower() for name, text in found if name.lower() == "connection" for word in text.split(",")}
    return [(name, text) for name, text in found if name.lower() not in HOP_BY_HOP | named]


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
