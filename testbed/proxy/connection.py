"""One connection of a client, and its connection to the target.

When one side closes, the proxy closes the other, as if client and target were connected directly. So a client sees the
target's keep-alive, and the target sees that a client leaves.
"""

import select
import socket
import struct
import threading
import time
from typing import NoReturn, Protocol

from testbed.proxy.bodies import ConnectionCut
from testbed.proxy.calls import ConnectionEnds, Outcome, ProxiedCall
from testbed.proxy.faulty_call import FaultyCall
from testbed.proxy.framing import LAST_CHUNK, BrokenMessage, Head, MessageReader, chunk, request_framing
from testbed.proxy.rules import Rule

LOOK_SECONDS = 0.02


class ProxyOwner(Protocol):
    """The parts of the proxy that a connection uses."""

    closing: threading.Event

    def connect(self) -> socket.socket:
        """Opens a connection to the target."""

    def begin(self, connection: int, head: Head, raw: bytes, size: int) -> tuple[ProxiedCall, list[Rule]]:
        """Records a call and finds the rules that apply to it."""

    def finish(self, call: ProxiedCall, outcome: Outcome) -> None:
        """Records how a call ended."""

    def spread(self, jitter: float) -> float:
        """Returns a random number between minus and plus the jitter."""


def reset(connection: socket.socket) -> None:
    """Makes the connection close with RST."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _at_end(connection: socket.socket) -> bool | None:
    """Whether the other side has closed; None if there is nothing to read."""
    poller = select.poll()
    poller.register(connection, select.POLLIN)
    if not poller.poll(0):
        return None
    try:
        return not connection.recv(1, socket.MSG_PEEK)
    except OSError:
        return True


class ProxiedConnection:
    """One connection of a client. `run` is the function of its thread."""

    def __init__(self, proxy: ProxyOwner, client: socket.socket, number: int, keep_bytes: int) -> None:
        self._proxy = proxy
        self._client = client
        self._number = number
        self._keep_bytes = keep_bytes
        self._target: socket.socket | None = None
        self._requests = MessageReader(client, self._wait_for_client)
        self._answers: MessageReader | None = None

    def run(self) -> None:
        """Passes calls on until one side closes."""
        try:
            while self._call():
                """Continues with the next call."""
        except ConnectionEnds as end:
            if end.reset:
                reset(self._client)
        except (BrokenMessage, OSError):
            # The client or the target broke off between two calls, or does not speak HTTP.
            reset(self._client)
        finally:
            self._client.close()
            if self._target is not None:
                self._target.close()

    def _call(self) -> bool:
        head = self._requests.head()
        if head is None:
            return False
        if head.header("expect") == "100-continue":
            self._client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        body, size, framed = self._request_body(head)
        call, rules = self._proxy.begin(self._number, head, body, size)
        outcome: Outcome = "target left"
        try:
            keep = FaultyCall(self, call, rules).run(head, framed)
            outcome = "answered"
            return keep and not head.closes
        except ConnectionEnds as end:
            outcome = end.outcome
            raise
        except ConnectionCut as cut:
            outcome = "cut"
            raise ConnectionEnds(outcome, cut.reset) from None
        except OSError as error:
            outcome = "proxy closed" if self._proxy.closing.is_set() else "client left"
            raise ConnectionEnds(outcome, reset=True) from error
        finally:
            self._proxy.finish(call, outcome)

    def _request_body(self, head: Head) -> tuple[bytes, int, bytes]:
        """Returns the body (empty if it is too large to keep), its size, and the bytes to pass on."""
        framing = request_framing(head)
        pieces = list(self._requests.body(head, framing))
        whole = b"".join(pieces)
        framed = b"".join(map(chunk, pieces)) + LAST_CHUNK if framing == "chunked" else whole
        return (whole if len(whole) <= self._keep_bytes else b""), len(whole), framed

    # Waiting

    def _wait_for_client(self) -> None:
        """Waits between two calls until the client sends, unless the target closes."""
        watched = select.poll()
        watched.register(self._client, select.POLLIN)
        if self._target is not None:
            watched.register(self._target, select.POLLIN)
        while not (ready := [descriptor for descriptor, _ in watched.poll(1000)]):
            self.check_open()
        if self._client.fileno() not in ready and self._target is not None:
            raise ConnectionEnds("target left")

    def _wait_for_target(self) -> None:
        """Waits within a call until the target sends, unless the client leaves."""
        assert self._target is not None
        watched = select.poll()
        watched.register(self._target, select.POLLIN)
        watched.register(self._client, select.POLLIN)
        while True:
            ready = [descriptor for descriptor, _ in watched.poll(1000)]
            if self._target.fileno() in ready:
                return
            self.check_open()
            if self._client.fileno() in ready:
                # The client sends its next request early. That can wait.
                watched.unregister(self._client)

    def check_open(self) -> None:
        """Ends the call if the proxy closes or the client has left."""
        if self._proxy.closing.is_set():
            raise ConnectionEnds("proxy closed")
        if _at_end(self._client):
            raise ConnectionEnds("client left")

    def pause(self, seconds: float | None, released: threading.Event) -> None:
        """Waits that long (None: until released), unless the client leaves or the proxy closes."""
        end = None if seconds is None else time.monotonic() + seconds
        while not released.is_set():
            left = LOOK_SECONDS if end is None else min(LOOK_SECONDS, end - time.monotonic())
            if left <= 0:
                return
            self.check_open()
            released.wait(left)

    # The target

    def ask(self, head: Head, framed: bytes) -> Head:
        """Passes a request on and returns the head of its answer."""
        if self._target is None:
            try:
                self._target = self._proxy.connect()
            except OSError:
                raise ConnectionEnds("target refused", reset=True) from None
            self._answers = MessageReader(self._target, self._wait_for_target)
        try:
            self._target.sendall(head.raw + framed)
            answer = self.answers.head()
            while answer is not None and answer.first[1].startswith("1"):
                answer = self.answers.head()
        except OSError:
            self.target_left()
        if answer is None:
            raise ConnectionEnds("target left")
        return answer

    def target_left(self) -> NoReturn:
        """Ends the connection in the same way as the target, which broke off."""
        raise ConnectionEnds("target left", reset=True) from None

    @property
    def answers(self) -> MessageReader:
        assert self._answers is not None
        return self._answers

    def send(self, data: bytes) -> None:
        """Sends to the client."""
        self._client.sendall(data)

    def spread(self, jitter: float) -> float:
        return self._proxy.spread(jitter)
