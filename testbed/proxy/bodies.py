"""Applies faults to a body while it is passed on. Pure, apart from the pauses, which the caller provides."""

from collections.abc import Callable, Iterator

from testbed.proxy.faults import BodyPlace, Cut, Fault, Garbage, Stall, Truncate

Pieces = Iterator[bytes]
Pause = Callable[[float | None], None]


class ConnectionCut(Exception):
    """A fault cuts the connection here."""

    def __init__(self, reset: bool) -> None:
        super().__init__("the connection is cut here")
        self.reset = reset


class BodyEnds(Exception):
    """A fault ends the body here."""


class _PlaceFinder:
    """Finds a place in a body that arrives in pieces."""

    def __init__(self, place: BodyPlace) -> None:
        self._bytes = place.after_bytes
        self._events = place.after_events
        self._line_is_empty = False
        self.reached = not place.given or 0 in (place.after_bytes, place.after_events)

    def find(self, piece: bytes) -> int | None:
        """Returns the position of the place in this piece, or None if it comes later."""
        if self._bytes is not None:
            if len(piece) < self._bytes:
                self._bytes -= len(piece)
                return None
            return self._bytes
        return self._find_event(piece)

    def _find_event(self, piece: bytes) -> int | None:
        for index, byte in enumerate(piece):
            if byte == 0x0A and self._line_is_empty:
                self._line_is_empty = False
                self._events = (self._events or 0) - 1
                if self._events == 0:
                    return index + 1
            elif byte == 0x0A:
                self._line_is_empty = True
            elif byte != 0x0D:
                self._line_is_empty = False
        return None


def at_place(pieces: Pieces, place: BodyPlace, there: Callable[[], bytes]) -> Pieces:
    """Yields the pieces and calls `there` at the place. Its result is inserted; it may raise instead."""
    finder = _PlaceFinder(place)
    done = finder.reached
    if done:
        yield there()
    for piece in pieces:
        index = None if done else finder.find(piece)
        if index is None:
            yield piece
            continue
        done = True
        yield piece[:index]
        yield there()
        yield piece[index:]


def altered(pieces: Pieces, fault: Fault, pause: Pause) -> Pieces:
    """Returns the pieces after a fault was applied to them."""
    if isinstance(fault, Garbage) and not fault.given:
        return _replaced(pieces, fault.data)
    if isinstance(fault, Cut | Truncate | Garbage | Stall):
        return at_place(pieces, fault, lambda: _at_the_place(fault, pause))
    return pieces


def _at_the_place(fault: Cut | Truncate | Garbage | Stall, pause: Pause) -> bytes:
    if isinstance(fault, Cut):
        raise ConnectionCut(fault.reset)
    if isinstance(fault, Truncate):
        raise BodyEnds
    if isinstance(fault, Garbage):
        return fault.data
    pause(fault.seconds)
    return b""


def _replaced(pieces: Pieces, data: bytes) -> Pieces:
    yield data
    for _ in pieces:
        """Reads the target's own body to its end and drops it."""
