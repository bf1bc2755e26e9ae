"""Tests of each fault of the proxy, as a client sees it."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
import requests

from testbed.proxy import (
    After,
    Bandwidth,
    Before,
    Between,
    Cut,
    DropResponse,
    FaultProxy,
    Garbage,
    Hang,
    Latency,
    ProxiedCall,
    Refuse,
    Reset,
    Slice,
    SlowClose,
    Stall,
    Status,
    Truncate,
)
from testbed.proxy.faulty_call import throttled
from tests.http_target import EVENTS, Target, started_target
from tests.waiting import until

pytestmark = pytest.mark.servers

WHOLE = b"".join(EVENTS)


@pytest.fixture
def target() -> Iterator[Target]:
    with started_target() as made:
        yield made


@pytest.fixture
def proxy(target: Target) -> Iterator[FaultProxy]:
    with FaultProxy(target.url) as made:
        yield made


def connected(proxy: FaultProxy) -> socket.socket:
    """Opens a bare connection to the proxy."""
    host, port = proxy.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=20)


def exchange(proxy: FaultProxy, path: str) -> tuple[bytes, bool]:
    """Sends a request and returns all bytes until the end, and whether the connection was reset."""
    answer = b""
    with connected(proxy) as client:
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n".encode())
        try:
            while piece := client.recv(10_000):
                answer += piece
        except ConnectionResetError:
            return answer, True
    return answer, False


def body_of(answer: bytes) -> bytes:
    """Returns the body of an answer in chunks, as far as it arrived."""
    rest, body = answer.partition(b"\r\n\r\n")[2], b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        body, rest = body + rest[: int(size, 16)], rest[int(size, 16) + 2 :]
    return body


def outcome(proxy: FaultProxy) -> str:
    (call,) = proxy.wait_for_calls(ended=True)
    return call.outcome


# Before the request is passed on


def test_refuse_closes_without_an_answer(target: Target, proxy: FaultProxy) -> None:
    proxy.inject(Refuse())
    assert exchange(proxy, "/a") == (b"", False)
    assert (outcome(proxy), target.asked) == ("refused", [])


def test_reset_resets_without_an_answer(target: Target, proxy: FaultProxy) -> None:
    proxy.inject(Reset())
    assert exchange(proxy, "/a") == (b"", True)
    assert (outcome(proxy), target.asked) == ("reset", [])


def test_status_answers_instead_of_the_target(target: Target, proxy: FaultProxy) -> None:
    proxy.inject(Status(429, '{"detail": "é"}', {"Retry-After": "7"}), times=1)
    with requests.Session() as session:
        answer = session.get(f"{proxy.url}/a", timeout=20)
        assert (answer.status_code, answer.json(), answer.headers["Retry-After"]) == (429, {"detail": "é"}, "7")
        assert target.asked == []
        assert session.get(f"{proxy.url}/a", timeout=20).status_code == 200
    assert {call.connection for call in proxy.calls()} == {1}
    assert [call.status for call in proxy.calls()] == [429, 200]


def test_latency_delays_the_request(proxy: FaultProxy, target: Target) -> None:
    proxy.inject(Latency(0.2))
    started = time.monotonic()
    requests.get(f"{proxy.url}/a", timeout=20)
    assert time.monotonic() - started >= 0.2
    assert len(target.asked) == 1


def test_jitter_spreads_the_latency_the_same_way_in_every_run(target: Target) -> None:
    runs = []
    for _ in range(2):
        with FaultProxy(target.url) as proxy:
            runs.append([proxy.spread(0.5) for _ in range(20)])
    assert runs[0] == runs[1]
    assert len(set(runs[0])) == 20
    assert all(-0.5 <= one <= 0.5 for one in runs[0])


def test_a_hanging_call_continues_when_it_is_released(target: Target, proxy: FaultProxy) -> None:
    rule = proxy.inject(Hang())
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(requests.get, f"{proxy.url}/a", timeout=20)
        proxy.wait_for_calls()
        assert target.asked == []
        assert not answer.done()
        rule.release()
        assert answer.result().status_code == 200
    assert requests.get(f"{proxy.url}/b", timeout=20).status_code == 200


def test_a_hanging_call_ends_when_the_client_gives_up(target: Target, proxy: FaultProxy) -> None:
    proxy.inject(Hang())
    with pytest.raises(requests.ReadTimeout):
        requests.get(f"{proxy.url}/a", timeout=0.1)
    assert (outcome(proxy), target.asked) == ("client left", [])


def test_a_hanging_call_ends_when_the_proxy_closes(proxy: FaultProxy) -> None:
    proxy.inject(Hang())
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(requests.get, f"{proxy.url}/a", timeout=20)
        proxy.wait_for_calls()
        proxy.close()
        with pytest.raises(requests.ConnectionError):
            answer.result()
    assert outcome(proxy) == "proxy closed"


def test_before_is_called_before_the_target_gets_the_request(target: Target, proxy: FaultProxy) -> None:
    seen: list[tuple[str, int]] = []

    def look(call: ProxiedCall) -> None:
        seen.append((call.path, len(target.asked)))

    proxy.inject(Before(look), nth=2)
    for path in ("/a", "/b", "/c"):
        requests.get(f"{proxy.url}{path}", timeout=20)
    assert seen == [("/b", 1)]


def test_the_request_of_a_client_killed_by_before_does_not_reach_the_target(target: Target, proxy: FaultProxy) -> None:
    script = f"import urllib.request as u\nfor n in range(9): u.urlopen('{proxy.url}/' + str(n)).read()"
    with subprocess.Popen([sys.executable, "-c", script]) as client:

        def kill(call: ProxiedCall) -> None:
            os.kill(client.pid, signal.SIGKILL)
            client.wait(20)

        proxy.inject(Before(kill), nth=3)
        client.wait(20)
        proxy.wait_until_idle()
    assert [path for _, path, _, _ in target.asked] == ["/0", "/1"]
    assert [call.outcome for call in proxy.calls()] == ["answered", "answered", "client left"]


# When the target has answered


def test_between_is_called_when_the_target_has_done_its_work(target: Target, proxy: FaultProxy) -> None:
    seen: list[tuple[int | None, int, int]] = []

    def look(call: ProxiedCall) -> None:
        seen.append((call.status, call.received, len(target.asked)))

    proxy.inject(Between(look))
    assert requests.get(f"{proxy.url}/a", timeout=20).status_code == 200
    assert seen == [(200, 0, 1)]


def test_an_answer_can_be_held_when_the_target_has_done_its_work(target: Target, proxy: FaultProxy) -> None:
    reached = threading.Event()
    proxy.inject(Between(lambda call: reached.set()))
    rule = proxy.inject(Hang(answered=True))
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(requests.get, f"{proxy.url}/a", timeout=20)
        assert reached.wait(20)
        assert (len(target.asked), answer.done()) == (1, False)
        rule.release()
        assert answer.result().status_code == 200


@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("path", ["/a", "/stream"])
def test_a_dropped_response_is_lost_after_the_work_is_done(
    target: Target, proxy: FaultProxy, path: str, reset: bool
) -> None:
    proxy.inject(DropResponse(reset=reset))
    assert exchange(proxy, path) == (b"", reset)
    assert (outcome(proxy), len(target.asked)) == ("dropped", 1)


def test_a_status_can_replace_the_answer_after_the_work_is_done(target: Target, proxy: FaultProxy) -> None:
    proxy.inject(Status(502, b"{}", answered=True), times=1)
    with requests.Session() as session:
        assert [session.get(f"{proxy.url}/stream", timeout=20).status_code for _ in range(2)] == [502, 200]
    assert len(target.asked) == 2
    assert {call.connection for call in proxy.calls()} == {1}


# While the answer is passed on


@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("events", [0, 1, 3, 5])
def test_a_cut_after_events_comes_after_exactly_that_many(proxy: FaultProxy, events: int, reset: bool) -> None:
    proxy.inject(Cut(after_events=events, reset=reset))
    answer, was_reset = exchange(proxy, "/stream")
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert body_of(answer) == b"".join(EVENTS[:events])
    assert not answer.endswith(b"0\r\n\r\n")
    assert (outcome(proxy), was_reset) == ("cut", reset)


@pytest.mark.parametrize("size", [0, 1, 20, 21, len(EVENTS[0]), len(WHOLE) - 1])
def test_a_cut_after_bytes_can_come_anywhere(proxy: FaultProxy, size: int) -> None:
    proxy.inject(Cut(after_bytes=size))
    answer, _ = exchange(proxy, "/stream")
    assert body_of(answer) == WHOLE[:size]
    assert not answer.endswith(b"0\r\n\r\n")


def test_a_cut_in_a_body_of_known_length_leaves_it_short(proxy: FaultProxy) -> None:
    proxy.inject(Cut(after_bytes=5))
    answer, _ = exchange(proxy, "/a")
    assert answer.endswith(b'\r\n\r\n{"pat')
    with pytest.raises(requests.exceptions.ChunkedEncodingError):
        requests.get(f"{proxy.url}/a", timeout=20)


def test_an_answer_that_ends_before_the_place_is_unchanged(proxy: FaultProxy) -> None:
    proxy.inject(Cut(after_events=6))
    proxy.inject(Truncate(after_bytes=10_000))
    assert requests.get(f"{proxy.url}/stream", timeout=20).content == WHOLE
    assert outcome(proxy) == "answered"


def test_events_with_carriage_returns_are_counted_too() -> None:
    events = b"data: a\r\n\r\ndata: b\r\n\r\n"
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(10_000)
                head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(events)
                with suppress(OSError):  # the proxy closes the connection when it has cut the answer
                    for byte in head + events:
                        connection.sendall(bytes([byte]))

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        with FaultProxy(f"http://127.0.0.1:{listening.getsockname()[1]}") as proxy:
            proxy.inject(Cut(after_events=1))
            assert exchange(proxy, "/")[0].endswith(b"\r\n\r\ndata: a\r\n\r\n")
        thread.join()


@pytest.mark.parametrize(
    ("path", "fault", "content"),
    [
        ("/stream", Truncate(after_events=2), b"".join(EVENTS[:2])),
        ("/stream", Truncate(after_bytes=3), WHOLE[:3]),
        ("/a", Truncate(after_bytes=5), b'{"pat'),
        ("/a", Truncate(after_bytes=0), b""),
        ("/stream", Garbage(b"<html>"), b"<html>"),
        ("/a", Garbage(b""), b""),
        ("/a", Garbage(b"\xff\x00"), b"\xff\x00"),
        ("/stream", Garbage(b"data: {\n\n", after_events=1), EVENTS[0] + b"data: {\n\n" + b"".join(EVENTS[1:])),
        ("/a", Garbage(b"!", after_bytes=1), b'{!"path": "/a", "body": ""}'),
    ],
)
def test_a_complete_answer_can_have_a_wrong_body(proxy: FaultProxy, path: str, fault: Any, content: bytes) -> None:
    with proxy.inject(fault), requests.Session() as session:
        assert session.get(f"{proxy.url}{path}", timeout=20).content == content
        assert outcome(proxy) == "answered"
        proxy.heal()
        assert session.get(f"{proxy.url}/b", timeout=20).json()["path"] == "/b"


def test_a_stall_stops_a_stream_until_it_is_released(proxy: FaultProxy) -> None:
    rule = proxy.inject(Stall(None, after_events=2))
    with requests.get(f"{proxy.url}/stream", stream=True, timeout=20) as answer:
        got = b""
        while len(got) < len(EVENTS[0] + EVENTS[1]):
            got += answer.raw.read1(1000)
        assert got == EVENTS[0] + EVENTS[1]
        rule.release()
        assert answer.raw.read() == b"".join(EVENTS[2:])


def test_a_stall_can_have_an_end(proxy: FaultProxy) -> None:
    proxy.inject(Stall(0.2, after_events=1))
    started = time.monotonic()
    assert requests.get(f"{proxy.url}/stream", timeout=20).content == WHOLE
    assert time.monotonic() - started >= 0.2


# How the answer is sent


@pytest.mark.parametrize("path", ["/stream", "/a"])
def test_the_joined_slices_are_the_same_answer(proxy: FaultProxy, path: str) -> None:
    whole = exchange(proxy, path)
    with proxy.inject(Slice(1)):
        sliced = exchange(proxy, path)
    assert sliced[0].partition(b"\r\n\r\n")[2] == whole[0].partition(b"\r\n\r\n")[2]


def test_slices_and_bandwidth_set_the_parts_and_the_pauses() -> None:
    assert list(throttled(b"abcde", [])) == [(b"abcde", 0.0)]
    assert list(throttled(b"", [Slice()])) == []
    assert list(throttled(b"abcde", [Slice(2, 0.5)])) == [(b"ab", 0.5), (b"cd", 0.5), (b"e", 0.5)]
    assert list(throttled(b"abc", [Bandwidth(10)])) == [(b"a", 0.1), (b"b", 0.1), (b"c", 0.1)]
    assert list(throttled(b"abc", [Slice(2), Bandwidth(100)])) == [(b"ab", 0.02), (b"c", 0.01)]


def test_bandwidth_limits_the_bytes_a_second(proxy: FaultProxy) -> None:
    proxy.inject(Bandwidth(1000))
    started = time.monotonic()
    answer, _ = exchange(proxy, "/a")
    assert time.monotonic() - started >= len(answer) / 1000 * 0.9


def test_a_slow_close_closes_the_connection_later(proxy: FaultProxy) -> None:
    rule = proxy.inject(SlowClose(60))
    with connected(proxy) as client:
        client.sendall(b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n")
        answer = client.recv(10_000)
        while b'"body"' not in answer:
            answer += client.recv(10_000)
        client.settimeout(0.1)
        with pytest.raises(TimeoutError):
            client.recv(100)
        rule.release()
        client.settimeout(20)
        assert client.recv(100) == b""
    assert outcome(proxy) == "answered"


def test_after_is_called_when_the_answer_has_been_passed_on(proxy: FaultProxy) -> None:
    seen: list[int] = []
    proxy.inject(After(lambda call: seen.append(call.received)))
    requests.get(f"{proxy.url}/stream", timeout=20)
    proxy.wait_until_idle()
    assert seen == [len(WHOLE)]


# Together


def test_several_faults_apply_to_the_same_call(proxy: FaultProxy) -> None:
    seen: list[str] = []
    proxy.inject(Before(lambda call: seen.append("before")))
    proxy.inject(Latency(0.01))
    proxy.inject(Slice(7))
    proxy.inject(Garbage(b"data: x\n\n", after_events=1))
    proxy.inject(Cut(after_events=3))
    answer, _ = exchange(proxy, "/stream")
    assert body_of(answer) == EVENTS[0] + b"data: x\n\n" + EVENTS[1]
    assert seen == ["before"]
    assert proxy.calls()[0].faults == ("Before", "Latency", "Slice", "Garbage", "Cut")


def test_the_answer_of_the_first_injected_fault_wins(proxy: FaultProxy) -> None:
    proxy.inject(Status(500))
    proxy.inject(Refuse())
    assert requests.get(f"{proxy.url}/a", timeout=20).status_code == 500


def test_a_callback_that_fails_ends_the_call_and_is_reported(proxy: FaultProxy) -> None:
    reported: list[str] = []
    hook, threading.excepthook = threading.excepthook, lambda failed: reported.append(str(failed.exc_value))
    try:
        proxy.inject(Before(lambda call: 1 // 0))
        assert exchange(proxy, "/a")[0] == b""
        until(lambda: reported)  # the thread reports it after it has closed its connection
    finally:
        threading.excepthook = hook
    assert proxy.open_connections == 0
    assert len(reported) == 1
    assert "the callback of a fault failed on ProxiedCall(number=1" in reported[0]
