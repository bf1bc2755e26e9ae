"""Slow clients, more than there are threads, do not disturb others."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
import requests

from testbed.service import Service
from tests.faults.scale import FULL, scaled
from tests.faults.table import Cases
from tests.letta_server import AGENT, LettaServerStub
from tests.services import BODY, connected, environment, rest_of
from tests.waiting import SOON

pytestmark = [pytest.mark.servers, pytest.mark.fault("clients that never finish their request")]

CLIENTS = scaled(120, 500)
REQUESTS = scaled(50, 200)
PACE = 0.5
# Parameters of a service that waits for slow clients during the whole test.
PATIENT = {"read_timeout": 600.0}
HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
BEGUN = {
    "nothing": b"",
    "some of a head": HEAD,
    "some of a body": HEAD + b"Content-Length: 100000\r\n\r\n{",
    "some of a body in chunks": HEAD + b"Transfer-Encoding: chunked\r\n\r\nFFFF\r\n{",
    "some behind a whole request": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" + HEAD,
    "a length with many zeros": HEAD + b"Content-Length: " + b"0" * 18 + b"100000\r\n\r\n{",
    "a chunk's size with many zeros": HEAD + b"Transfer-Encoding: chunked\r\n\r\n000000000000FFFF\r\n{",
    "codings in two lines": HEAD + b"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\nFFFF\r\n{",
    "a trailer": HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX-A: ",
}
# These are answered at once. Then they send more, or never close.
ANSWERED = {
    "more than may come": HEAD + b"Content-Length: 30000000\r\n\r\n{",
    "a body that is not read": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 30000000\r\n\r\n",
    "no request": b"garbage\r\n\r\n",
    "a request that ends the connection": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
}


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    settings = {"WEB_CONCURRENCY": "2" if FULL else "1"}
    folder = tmp_path_factory.mktemp("bridge")
    with (
        LettaServerStub() as letta,
        Service(environment(letta.url, folder, **settings), folder / "log", PATIENT) as service,
    ):
        yield service


@pytest.mark.parametrize("begun", [*BEGUN, *ANSWERED])
def test_slow_clients_do_not_delay_others(bridge: Service, begun: str, cases: Cases) -> None:
    alone = milliseconds(bridge)
    with slow_clients(bridge, (BEGUN | ANSWERED)[begun]) as slow:
        beside = milliseconds(bridge)
        answer = requests.post(f"{bridge.url}/v1/chat/completions", json=BODY, timeout=SOON)
        assert b"data: [DONE]" in answer.content
        assert len(slow) == CLIENTS or begun in ANSWERED, "clients that were cut off do not count"
    for name, times in (("alone", alone), (f"beside {CLIENTS} with {begun}", beside)):
        cases.figure(
            f"/healthz {name}, median and 99 %", f"{times[REQUESTS // 2]:.1f} ms, {times[REQUESTS * 197 // 200]:.1f} ms"
        )
    cases.passed(CLIENTS)


def test_large_unfinished_requests_do_not_make_another_request_fail(tmp_path: Path) -> None:
    """Each has sent nearly all of the largest possible body. Together they are more than a worker keeps."""
    with LettaServerStub() as letta, ExitStack() as stack:
        settings = environment(letta.url, tmp_path, WEB_CONCURRENCY="1")
        bridge = stack.enter_context(Service(settings, tmp_path / "log", PATIENT))
        slow = []
        for _ in range(7):
            slow.append(stack.enter_context(connected(bridge, HEAD + b"Content-Length: 20000000\r\n\r\n")))
            slow[-1].sendall(b"x" * 19_900_000)
        large = BODY | {"user": "x" * 18_000_000}
        answer = requests.post(f"{bridge.url}/v1/chat/completions", json=large, timeout=SOON)
        assert b"data: [DONE]" in answer.content
        assert slow[0].recv(1000).startswith(b"HTTP/1.1 503 ")


def test_clients_that_never_read_their_replies_do_not_delay_others(tmp_path: Path) -> None:
    """They are more than there are threads, and each asks for more than the buffers of its connection hold."""
    with LettaServerStub() as letta, ExitStack() as stack:
        letta.answer = [AGENT | {"id": f"agent-{number}", "name": f"agent {number}"} for number in range(500)]
        settings = environment(letta.url, tmp_path, WEB_CONCURRENCY="1")
        bridge = stack.enter_context(Service(settings, tmp_path / "log", {"least_threads": 8}))
        for _ in range(12):
            stack.enter_context(connected(bridge, b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n" * 200))
        for _ in range(50):
            assert requests.get(f"{bridge.url}/healthz", timeout=SOON).ok
            time.sleep(0.1)


def test_a_client_that_reads_late_gets_all_replies(bridge: Service) -> None:
    asks = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1500
    with connected(bridge, asks + ANSWERED["a request that ends the connection"]) as late:
        time.sleep(3)
        got = rest_of(late)
    assert got.count(b"HTTP/1.1 200 OK") == 1501


def milliseconds(bridge: Service) -> list[float]:
    """Measures requests with a connection each; returns the sorted times."""
    taken = []
    for _ in range(REQUESTS):
        started = time.perf_counter()
        assert requests.get(f"{bridge.url}/healthz", timeout=SOON).ok
        taken.append((time.perf_counter() - started) * 1000)
    return sorted(taken)


@contextmanager
def slow_clients(bridge: Service, begun: bytes) -> Iterator[list[socket.socket]]:
    """Opens connections. Those that have begun a request send one more byte at a time."""
    with ExitStack() as stack:
        slow = [stack.enter_context(connected(bridge, begun)) for _ in range(CLIENTS)]
        ended = threading.Event()

        def drip() -> None:
            while begun and not ended.wait(PACE):
                for connection in list(slow):
                    with suppress(OSError):
                        connection.sendall(b"x")
                        continue
                    slow.remove(connection)

        dripping = threading.Thread(target=drip)
        dripping.start()
        try:
            yield slow
        finally:
            ended.set()
            dripping.join()
