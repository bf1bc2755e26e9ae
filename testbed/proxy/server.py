"""A proxy between the bridge and Letta that counts every call and injects faults.

    with FaultProxy(letta.base_url) as proxy:
        bridge = start_bridge(letta_url=proxy.url)
        rule = proxy.inject(Cut(after_events=2), "POST", "/v1/agents/*/messages/stream", nth=1)
        ...
        assert rule.applied == 1
        assert proxy.count("PATCH", "/v1/agents/*") == 1

In a path * matches within one segment and ** anything. `faults` describes the faults. Requests and answers are passed
on unchanged, in the pieces in which they arrive. The client's Host header is passed on, too, so that redirects of the
target lead back to the proxy.
"""

import random
import socket
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Self
from urllib.parse import unquote, urlsplit

from testbed.proxy.calls import Outcome, ProxiedCall
from testbed.proxy.connection import ProxiedConnection
from testbed.proxy.faults import Fault
from testbed.proxy.framing import Head
from testbed.proxy.rules import Condition, Rule, matches

ACCEPT_SECONDS = 0.05
CLOSE_SECONDS = 20.0
CALL_SECONDS = 20.0
KEPT_BYTES = 1_000_000
BACKLOG = 512


class FaultProxy:
    """An HTTP/1.1 proxy for one target, in the process of a test. Safe between threads."""

    def __init__(self, target_url: str, host: str = "127.0.0.1", port: int = 0) -> None:
        parts = urlsplit(target_url)
        if parts.scheme != "http" or parts.hostname is None or parts.path.strip("/"):
            raise ValueError(f"the target must be http://HOST:PORT, not {target_url!r}")
        self._target = (parts.hostname, parts.port or 80)
        self.closing = threading.Event()
        self._changed = threading.Condition()
        self._calls: list[ProxiedCall] = []
        self._numbers = 0
        self._connections = 0
        self._rules: list[Rule] = []
        self._open: dict[int, tuple[socket.socket, threading.Thread]] = {}
        self._broken_off: set[int] = set()
        self._random = random.Random(0)
        self._socket = _bound(host, port)
        self._host, self._port = self._socket.getsockname()[:2]
        self._is_down = threading.Event()
        self._acceptor: threading.Thread | None = None
        self.up()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def url(self) -> str:
        """The address that the bridge gets as its Letta server."""
        return f"http://{self._host}:{self._port}"

    # Faults

    def inject(
        self,
        fault: Fault,
        method: str = "*",
        path: str = "**",
        *,
        nth: int | None = None,
        times: int | None = None,
        where: Condition | None = None,
    ) -> Rule:
        """Applies a fault to the calls that match: all of them, only the nth from now on, or the first so many.

        `where` gets the ProxiedCall and must also agree. `rule.remove()` or the end of a `with` removes the rule.
        """
        rule = Rule(fault, method, path, nth, times, where)
        with self._changed:
            self._rules.append(rule)
        return rule

    def heal(self) -> None:
        """Removes all rules, and listens again."""
        with self._changed:
            rules, self._rules = self._rules, []
        for rule in rules:
            rule.remove()
        self.up()

    def down(self) -> None:
        """Acts as a server that is gone: refuses connections, and closes the open ones."""
        if self._acceptor is None:
            return
        self._is_down.set()
        self._acceptor.join()
        self._acceptor = None
        # The port remains ours: a socket that is bound but does not listen refuses connections.
        waiting = _bound(self._host, self._port)
        self._socket.close()
        self._socket = waiting
        self._end_connections()

    def up(self) -> None:
        """Listens again."""
        if self._acceptor is not None:
            return
        self._is_down.clear()
        self._socket.listen(BACKLOG)
        self._socket.settimeout(ACCEPT_SECONDS)
        self._acceptor = threading.Thread(target=self._accept, name="fault-proxy", daemon=True)
        self._acceptor.start()

    def close(self) -> None:
        """Stops listening and ends every connection."""
        if self.closing.is_set():
            return
        self.closing.set()
        if self._acceptor is not None:
            self._acceptor.join()
        self._socket.close()
        with self._changed:
            rules = list(self._rules)
        for rule in rules:
            rule.remove()
        self._end_connections()

    # Calls

    def calls(self, method: str = "*", path: str = "**") -> list[ProxiedCall]:
        """Returns the calls that match, in their order."""
        with self._changed:
            return [call for call in self._calls if matches(call, method, path)]

    def count(self, method: str = "*", path: str = "**") -> int:
        """Returns how many calls match."""
        return len(self.calls(method, path))

    def clear(self) -> None:
        """Forgets the calls. The rules and their counts remain."""
        with self._changed:
            self._calls.clear()

    def wait_for_calls(
        self, count: int = 1, method: str = "*", path: str = "**", seconds: float = CALL_SECONDS, ended: bool = False
    ) -> list[ProxiedCall]:
        """Waits until that many calls match (and have ended); TimeoutError if they do not."""

        def found() -> list[ProxiedCall]:
            return [
                call for call in self._calls if matches(call, method, path) and (not ended or call.ended is not None)
            ]

        with self._changed:
            if not self._changed.wait_for(lambda: len(found()) >= count, seconds):
                raise TimeoutError(f"{len(found())} of {count} calls {method} {path} came in {seconds} s")
            return found()

    @property
    def open_connections(self) -> int:
        """The number of open connections of clients."""
        with self._changed:
            return len(self._open)

    def wait_until_idle(self, seconds: float = CALL_SECONDS) -> None:
        """Waits until no call is in progress; TimeoutError if one remains."""
        with self._changed:
            if not self._changed.wait_for(lambda: all(call.ended for call in self._calls), seconds):
                raise TimeoutError(f"{[call for call in self._calls if not call.ended]} still run")

    # For the connections

    def connect(self) -> socket.socket:
        """Opens a connection to the target."""
        connection = socket.create_connection(self._target)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def begin(self, connection: int, head: Head, raw: bytes, size: int) -> tuple[ProxiedCall, list[Rule]]:
        """Records a call and finds the rules that apply to it."""
        path, _, query = head.first[1].partition("?")
        with self._changed:
            self._numbers += 1
            call = ProxiedCall(
                self._numbers, connection, head.first[0], unquote(path), query, dict(head.headers), raw, size
            )
            rules = [rule for rule in self._rules if rule.applies_to(call)]
            call.faults = tuple(type(rule.fault).__name__ for rule in rules)
            self._calls.append(call)
            self._changed.notify_all()
        return call, rules

    def finish(self, call: ProxiedCall, outcome: Outcome) -> None:
        """Records how a call ended."""
        with self._changed:
            call.outcome = "proxy closed" if call.connection in self._broken_off else outcome
            call.ended = time.time()
            self._changed.notify_all()

    def spread(self, jitter: float) -> float:
        """Returns a random number between minus and plus the jitter, the same sequence in every run."""
        with self._changed:
            return self._random.uniform(-jitter, jitter)

    # Connections

    def _accept(self) -> None:
        while not self._is_down.is_set() and not self.closing.is_set():
            try:
                client, _ = self._socket.accept()
            except TimeoutError:
                continue
            client.settimeout(None)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._changed:
                self._connections += 1
                number = self._connections
                thread = threading.Thread(
                    target=self._serve, args=(client, number), name=f"fault-proxy {number}", daemon=True
                )
                self._open[number] = (client, thread)
            thread.start()

    def _serve(self, client: socket.socket, number: int) -> None:
        try:
            ProxiedConnection(self, client, number, KEPT_BYTES).run()
        finally:
            with self._changed:
                del self._open[number]
                self._broken_off.discard(number)
                self._changed.notify_all()

    def _end_connections(self) -> None:
        with self._changed:
            ending = dict(self._open)
            self._broken_off.update(ending)
            for client, _ in ending.values():
                with suppress(OSError):  # it is closing by itself
                    client.shutdown(socket.SHUT_RDWR)
        for _, thread in ending.values():
            if thread is not threading.current_thread():
                thread.join(CLOSE_SECONDS)


def _bound(host: str, port: int) -> socket.socket:
    one = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    one.bind((host, port))
    return one
