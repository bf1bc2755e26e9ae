"""gunicorn in front of the app, started as the Procfile does; the tests send it bytes."""

from __future__ import annotations

import gzip
import json
import re
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
import requests

from testbed.service import Service
from tests.letta_server import LettaServerStub
from tests.services import BODY, connected, environment, rest_of
from tests.waiting import SOON, until

pytestmark = [pytest.mark.servers, pytest.mark.strict]

KEY = "key-of-the-only-client"
LARGEST = 1_000_000
ALLOWED = b"Authorization: Bearer " + KEY.encode() + b"\r\n"
LAST = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
SMUGGLED = b"GET /v1/models HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + KEY.encode() + b"\r\n\r\n"


@pytest.fixture(scope="module")
def letta() -> Iterator[LettaServerStub]:
    with LettaServerStub() as server:
        yield server


@pytest.fixture(scope="module")
def bridge(letta: LettaServerStub, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("wire")
    settings = environment(letta.url, folder, WEB_CONCURRENCY="1", BRIDGE_API_KEYS=KEY)
    parameters = {"max_body": LARGEST, "least_threads": 8, "read_timeout": 1.0}
    with Service(settings, folder / "log", parameters) as service:
        # A bridge checks Letta when it starts. These tests say what a request makes the bridge ask Letta.
        assert requests.get(f"{service.url}/readyz", timeout=SOON).status_code == 200
        yield service


@pytest.fixture(scope="module")
def patient(letta: LettaServerStub, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """It has the usual limits, one worker with few threads, and waits for slow clients during the whole test."""
    folder = tmp_path_factory.mktemp("patient")
    settings = environment(letta.url, folder, WEB_CONCURRENCY="1", BRIDGE_API_KEYS=KEY, BRIDGE_ADMIN_PASSWORD="x" * 20)
    with Service(settings, folder / "log", {"least_threads": 8, "read_timeout": 600.0}) as service:
        yield service


def replies(bridge: Service, sent: bytes) -> list[int]:
    """Returns the statuses of all replies. A plain request is sent last, so that no request is left in a buffer."""
    got = b""
    with connected(bridge, sent) as connection, suppress(ConnectionError):
        got += connection.recv(65536)
        connection.sendall(LAST)
        while piece := connection.recv(65536):  # replies before a reset count
            got += piece
    return [int(status) for status in re.findall(rb"HTTP/1\.[01] (\d{3}) ", got)]


def post(*headers: bytes) -> bytes:
    head = b"POST /healthz HTTP/1.1\r\nHost: x\r\n" + b"".join(header + b"\r\n" for header in headers)
    return head + b"\r\n"


CHUNKS = b"0\r\n\r\n"
AMBIGUOUS = {
    "length and chunks": post(b"Content-Length: 6", b"Transfer-Encoding: chunked") + CHUNKS + SMUGGLED,
    "chunks and length": post(b"Transfer-Encoding: chunked", b"Content-Length: 6") + CHUNKS + SMUGGLED,
    "two lengths": post(b"Content-Length: 0", b"Content-Length: %d" % len(SMUGGLED)) + SMUGGLED,
    "a list of lengths": post(b"Content-Length: 0, 0") + SMUGGLED,
    "a length with a sign": post(b"Content-Length: +0") + SMUGGLED,
    "a length with a blank": post(b"Content-Length : 0") + SMUGGLED,
    "an unknown coding": post(b"Transfer-Encoding: xchunked") + CHUNKS + SMUGGLED,
    "chunks twice": post(b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked") + CHUNKS + SMUGGLED,
    "chunks not last": post(b"Transfer-Encoding: chunked, identity") + CHUNKS + SMUGGLED,
    "a coding after a tab": post(b"Transfer-Encoding:\tchunked\x0b") + CHUNKS + SMUGGLED,
    "a name with a blank": post(b"Transfer-Encoding : chunked") + CHUNKS + SMUGGLED,
    "a folded header": post(b"X-A: b\r\n Transfer-Encoding: chunked", b"Content-Length: 0") + SMUGGLED,
    "a nul in a header": post(b"X-A: b\x00c", b"Content-Length: 0") + SMUGGLED,
    "a bare carriage return": post(b"X-A: b\rTransfer-Encoding: chunked", b"Content-Length: 0") + SMUGGLED,
    "an underscore for a dash": post(b"Content_Length: 5", b"Transfer_Encoding: chunked") + b"GPOST",
    "a chunk of a wrong size": post(b"Transfer-Encoding: chunked") + b"0x5\r\nhello\r\n0\r\n\r\n" + SMUGGLED,
    "a chunk of a negative size": post(b"Transfer-Encoding: chunked") + b"-5\r\nhello\r\n0\r\n\r\n" + SMUGGLED,
    "an older protocol with chunks": post(b"Transfer-Encoding: chunked").replace(b"1.1", b"1.0") + CHUNKS + SMUGGLED,
}


@pytest.mark.parametrize("case", AMBIGUOUS)
def test_an_ambiguous_request_does_not_hide_a_second_one(bridge: Service, letta: LettaServerStub, case: str) -> None:
    letta.asked.clear()
    assert 200 not in replies(bridge, AMBIGUOUS[case])
    assert letta.asked == []


def test_two_requests_sent_together_are_both_answered(bridge: Service, letta: LettaServerStub) -> None:
    """So the test above would have seen an answer to a hidden request."""
    letta.asked.clear()
    assert replies(bridge, post(b"Content-Length: 0") + SMUGGLED) == [405, 200, 200]
    assert len(letta.asked) == 1


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /" + b"x" * 10_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X-A: b\r\n" * 200 + b"\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX-A: " + b"b" * 20_000 + b"\r\n\r\n",
        b"GET / HTTP/9.9\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 100,
        b"\x00" * 1000,
        b"CONNECT evil.example:443 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET http://169.254.169.254/latest HTTP/1.1\r\nHost: x\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
def test_requests_that_are_too_large_or_invalid_are_refused(
    bridge: Service, letta: LettaServerStub, sent: bytes
) -> None:
    letta.asked.clear()
    assert replies(bridge, sent)[:1] != [200]
    assert letta.asked == []
    assert requests.get(f"{bridge.url}/healthz", timeout=SOON).ok


@pytest.mark.parametrize(
    "field", [b"X-Request-Id", b"traceparent", b"User-Agent", b"Idempotency-Key", b"X-Bridge-Aside"]
)
def test_a_header_of_a_request_cannot_add_a_header_to_the_reply(bridge: Service, field: bytes) -> None:
    said = field + b": a\\r\\nX-Evil: 1%0d%0aX-Evil: 1\r\n"
    with connected(bridge, LAST.replace(b"\r\nConnection", b"\r\n" + said + b"Connection")) as connection:
        got = rest_of(connection)
    assert b"200 OK" in got
    assert not [line for line in got.split(b"\r\n") if line.lower().startswith(b"x-evil")]


BEGUN = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


@pytest.mark.fault("clients that never finish their request")
def test_clients_that_never_finish_their_request_keep_others_out_only_briefly(bridge: Service) -> None:
    """Some send nothing, some stop in the head, some in the body; of each kind more than the worker has threads."""
    unfinished = BEGUN + ALLOWED + b"Content-Length: 1000\r\n\r\n{"
    slow = [connected(bridge, sent) for sent in (b"", BEGUN, unfinished) for _ in range(9)]
    try:
        assert requests.get(f"{bridge.url}/healthz", timeout=3 * SOON).ok
        slow[-1].settimeout(3 * SOON)
        assert slow[-1].recv(1000).startswith(b"HTTP/1.1 408 ")
    finally:
        for connection in slow:
            connection.close()


@pytest.mark.fault("clients that never finish their request")
@pytest.mark.parametrize("sent", [b"", BEGUN], ids=["silent", "in the middle"])
def test_more_slow_clients_than_a_worker_has_places_keep_nobody_out(
    letta: LettaServerStub, tmp_path: Path, sent: bytes
) -> None:
    settings = environment(letta.url, tmp_path, WEB_CONCURRENCY="1")
    parameters = {"least_threads": 8, "read_timeout": 600.0}
    with Service(settings, tmp_path / "log", parameters) as bridge, ExitStack() as stack:
        for _ in range(70):
            stack.enter_context(connected(bridge, sent))
        assert requests.get(f"{bridge.url}/healthz", timeout=SOON).ok


@pytest.mark.fault("clients that never finish their request")
def test_a_client_that_stops_sending_within_its_body_gets_408(bridge: Service) -> None:
    begun = BEGUN + ALLOWED + b"Content-Length: 1000\r\n\r\n{"
    with connected(bridge, begun) as connection:
        connection.shutdown(socket.SHUT_WR)
        got = rest_of(connection)
    assert got.startswith(b"HTTP/1.1 408 ")
    assert b"did not come whole" in got


def test_a_client_that_waits_for_100_continue_gets_it(letta: LettaServerStub, tmp_path: Path) -> None:
    """curl does so with large bodies. The service has its usual timeouts, as the machine may be busy."""
    asks = BEGUN + ALLOWED + b"Content-Length: 2\r\nExpect: 100-continue\r\n"
    with (
        Service(environment(letta.url, tmp_path, WEB_CONCURRENCY="1", BRIDGE_API_KEYS=KEY), tmp_path / "log") as bridge,
        connected(bridge, asks + b"Connection: close\r\n\r\n") as connection,
    ):
        assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b"{}")
        got = rest_of(connection)
    assert got.startswith(b"HTTP/1.1 400 ")
    assert b"the name or id of an agent" in got


def test_a_client_that_would_send_too_much_does_not_get_100_continue(bridge: Service) -> None:
    asks = BEGUN + ALLOWED + b"Content-Length: %d\r\nExpect: 100-continue\r\n\r\n" % (LARGEST + 1)
    with connected(bridge, asks) as connection:
        assert rest_of(connection).startswith(b"HTTP/1.1 413 ")


UNREAD = b"GET /admin/static/admin.css HTTP/1.1\r\nHost: x\r\n\r\n" * 10


def test_clients_that_read_no_reply_take_no_thread(patient: Service) -> None:
    """They are more than there are threads, and their connections have the smallest buffers that are possible."""
    with ExitStack() as stack:
        unread = [stack.enter_context(without_buffer(patient, UNREAD)) for _ in range(20)]
        for _ in range(20):
            assert requests.get(f"{patient.url}/healthz", timeout=SOON).ok
        unread[0].settimeout(SOON)
        unread[0].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        unread[0].sendall(LAST)
        assert rest_of(unread[0]).count(b"HTTP/1.1 200 OK") == 11, "a client that reads late gets everything"


def without_buffer(bridge: Service, sent: bytes) -> socket.socket:
    host, port = bridge.url.removeprefix("http://").split(":")
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1460)  # as in a network; the service buffers less then
    connection.connect((host, int(port)))
    connection.sendall(sent)
    return connection


REFUSED_BY_HEAD = {
    "no key": (BEGUN, 401),
    "a wrong key": (BEGUN + b"Authorization: Bearer wrong\r\n", 401),
    "too large": (BEGUN + ALLOWED, 413),
    "no such path": ((BEGUN + ALLOWED).replace(b"completions", b"nothing"), 404),
    "no such method": ((BEGUN + ALLOWED).replace(b"POST", b"PUT"), 405),
    "a form": (
        b"POST /admin/sign-in HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n",
        413,
    ),
}


@pytest.mark.parametrize("case", REFUSED_BY_HEAD)
@pytest.mark.parametrize("continues", [False, True])
def test_what_the_head_shows_is_answered_before_the_body_is_sent(patient: Service, case: str, continues: bool) -> None:
    head, status = REFUSED_BY_HEAD[case]
    expect = b"Expect: 100-continue\r\n" if continues else b""
    length = b"Content-Length: %d\r\n\r\n" % (20_000_001 if case == "too large" else 6_000_000)
    with connected(patient, head + expect + length) as connection:
        connection.settimeout(SOON)
        got = rest_of(connection)
    assert got.startswith(b"HTTP/1.1 %d " % status)
    assert b"\r\nConnection: close\r\n" in got


@pytest.mark.parametrize("allowed", [b"", ALLOWED], ids=["without a key", "with a key"])
def test_bodies_take_a_limited_share_of_the_memory(patient: Service, allowed: bytes) -> None:
    """Without the limit they would take 180 MB at least."""
    before = private_megabytes(patient)
    with ExitStack() as stack:
        large = []
        for _ in range(30):
            large.append(stack.enter_context(connected(patient, BEGUN + allowed + b"Content-Length: 6000001\r\n\r\n")))
            with suppress(ConnectionError):
                large[-1].sendall(b"x" * 6_000_000)
        assert requests.get(f"{patient.url}/healthz", timeout=SOON).ok
        assert private_megabytes(patient) - before < (80 if allowed else 20)
        small = post(b"Content-Length: 2", b"Connection: close") + b"{}"
        assert rest_of(stack.enter_context(connected(patient, small))).startswith(b"HTTP/1.1 405 ")
        assert large[0].recv(65536).startswith(b"HTTP/1.1 503 " if allowed else b"HTTP/1.1 401 ")


def test_memory_of_large_bodies_is_returned(patient: Service) -> None:
    with ThreadPoolExecutor() as clients:  # so that each of the worker's threads gets large bodies
        list(clients.map(lambda _: ask(patient, 10), range(40)))
    before = private_megabytes(patient)
    for _ in range(16):
        ask(patient, 19_000_000)
    until(lambda: private_megabytes(patient) - before < 60)


def ask(bridge: Service, size: int) -> None:
    body = json.dumps(BODY | {"user": "x" * size})
    headers = {"Authorization": f"Bearer {KEY}"}
    status = 503  # while the turn of the request before has not left its slot
    while status == 503:
        reply = requests.post(f"{bridge.url}/v1/chat/completions", data=body, headers=headers, timeout=3 * SOON)
        status = reply.status_code
    assert b"data: [DONE]" in reply.content


def private_megabytes(bridge: Service) -> float:
    """Returns the memory that only the worker has."""
    (worker,) = bridge.workers
    lines = Path(f"/proc/{worker}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1000


@pytest.mark.parametrize("packed", [False, True])
def test_a_body_of_millions_of_values_is_refused_before_it_takes_memory(patient: Service, packed: bool) -> None:
    body = b'{"model": "Ada", "messages": [' + b"[]," * 6_600_000 + b"[]]}"
    headers = {"Authorization": f"Bearer {KEY}"} | ({"Content-Encoding": "gzip"} if packed else {})
    sent = gzip.compress(body, 1) if packed else body
    highest = peak_megabytes(patient)
    reply = requests.post(f"{patient.url}/v1/chat/completions", data=sent, headers=headers, timeout=3 * SOON)
    assert (reply.status_code, reply.json()["error"]["code"]) in ((400, "too_many_values"), (413, "request_too_large"))
    assert peak_megabytes(patient) - highest < 200, "its values would take 800 MB"


def peak_megabytes(bridge: Service) -> float:
    """Returns the most memory that the worker has ever had."""
    (worker,) = bridge.workers
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{worker}/status").read_text())
    assert found
    return int(found[1]) / 1000


@pytest.mark.parametrize(("length", "status"), [(LARGEST, 200), (LARGEST + 1, 413), (LARGEST + 50_000, 413)])
def test_a_body_in_chunks_may_be_as_large_as_one_with_a_length(bridge: Service, length: int, status: int) -> None:
    """The lines around the chunks have more bytes than the largest body here exceeds the limit by."""
    body = json.dumps(BODY).encode().ljust(length)
    pieces = [body[place : place + 100] for place in range(0, length, 100)]
    with connected(bridge, BEGUN + ALLOWED + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n") as connection:
        for number, piece in enumerate(pieces):
            connection.sendall(b"%X\r\n%s\r\n" % (len(piece), piece))
            if number % 100 == 0:
                time.sleep(0.001)
        connection.sendall(CHUNKS)
        got = rest_of(connection)
    assert got.startswith(b"HTTP/1.1 %d " % status)


@pytest.mark.parametrize(
    "body",
    [b"5\r\nhelloXX0\r\n\r\n", b"5;;\r\nhello\r\n0\r\n\r\n", b"five\r\n", b"0\r\nContent-Length: 5\r\n\r\n"],
    ids=["a chunk that is longer", "a malformed extension", "no size", "a length after the last chunk"],
)
def test_malformed_chunks_are_answered_with_400(bridge: Service, body: bytes) -> None:
    with connected(bridge, BEGUN + ALLOWED + b"Transfer-Encoding: chunked\r\n\r\n" + body) as connection:
        got = rest_of(connection)
    assert got.startswith(b"HTTP/1.1 400 ")
    assert b"invalid_chunks" in got


def test_a_request_cannot_write_a_line_of_the_log(bridge: Service) -> None:
    forged = "a%0a%7B%22level%22%3A%22critical%22%7D"
    requests.get(f"{bridge.url}/v1/models/{forged}", timeout=SOON, headers={"Authorization": f"Bearer {KEY}"})
    requests.get(f"{bridge.url}/{forged}", timeout=SOON)
    log = Path(bridge.environment["TMPDIR"], "log").read_text()
    assert all(line.startswith('{"time": ') and line.endswith("}") for line in log.splitlines())
    assert '"level": "critical"' not in log
