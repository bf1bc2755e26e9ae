"""Tests of the fault proxy without faults, of its counts, and of its rules."""

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
import requests

from testbed.proxy import FaultProxy, ProxiedCall, Refuse, Status
from testbed.proxy.rules import matches
from tests.http_target import EVENTS, Target, started_target
from tests.waiting import until

pytestmark = pytest.mark.servers


@pytest.fixture
def target() -> Iterator[Target]:
    with started_target() as made:
        yield made


@pytest.fixture
def proxy(target: Target) -> Iterator[FaultProxy]:
    with FaultProxy(target.url) as made:
        yield made


@pytest.fixture
def session() -> Iterator[requests.Session]:
    with requests.Session() as made:
        yield made


def get(session: requests.Session, proxy: FaultProxy, path: str, **more: Any) -> requests.Response:
    return session.get(f"{proxy.url}{path}", timeout=20, **more)


def connected(proxy: FaultProxy) -> socket.socket:
    """Opens a bare connection to the proxy."""
    host, port = proxy.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=20)


# Passing on


def test_requests_and_answers_are_passed_on_unchanged(
    target: Target, proxy: FaultProxy, session: requests.Session
) -> None:
    body = json.dumps({"text": "é" * 100_000})
    answer = session.post(f"{proxy.url}/v1/agents/a%20b/messages?limit=1", data=body, timeout=20)
    assert answer.json() == {"path": "/v1/agents/a%20b/messages?limit=1", "body": body}
    assert target.asked == [
        ("POST", "/v1/agents/a%20b/messages?limit=1", proxy.url.removeprefix("http://"), body.encode())
    ]


def test_bodies_in_chunks_are_passed_on(proxy: FaultProxy, session: requests.Session) -> None:
    pieces = [b'{"a"', b": ", b"1}"]
    answer = session.post(f"{proxy.url}/x", data=iter(pieces), timeout=20)
    assert answer.json()["body"] == '{"a": 1}'
    (call,) = proxy.calls()
    assert (call.body, call.size) == ({"a": 1}, 8)


def test_a_stream_is_passed_on_piece_by_piece(target: Target, proxy: FaultProxy, session: requests.Session) -> None:
    with get(session, proxy, "/steps", stream=True) as answer:
        for event in EVENTS:
            target.go_on.release()
            assert answer.raw.read1(1000) == event
        assert answer.raw.read() == b""


@pytest.mark.parametrize(("path", "content"), [("/old", b"old style"), ("/empty", b""), ("/last", b"bye")])
def test_every_framing_is_passed_on(proxy: FaultProxy, session: requests.Session, path: str, content: bytes) -> None:
    for _ in range(2):
        assert get(session, proxy, path).content == content


def test_the_answer_to_head_has_no_body(proxy: FaultProxy, session: requests.Session) -> None:
    assert int(session.head(f"{proxy.url}/x", timeout=20).headers["Content-Length"]) > 0
    assert get(session, proxy, "/x").status_code == 200


def test_a_connection_is_kept_and_reused(proxy: FaultProxy, session: requests.Session) -> None:
    for path in ("/a", "/stream", "/empty", "/b"):
        get(session, proxy, path)
    assert {call.connection for call in proxy.calls()} == {1}
    assert proxy.open_connections == 1


def test_a_redirect_leads_back_to_the_proxy(proxy: FaultProxy, session: requests.Session) -> None:
    assert get(session, proxy, "/redirect").json()["path"] == "/landed"
    assert [call.path for call in proxy.calls()] == ["/redirect", "/landed"]


def test_a_client_that_expects_100_continue_gets_it(proxy: FaultProxy) -> None:
    with connected(proxy) as client:
        client.sendall(b"POST /x HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
        assert client.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(b"ok")
        assert b'"body": "ok"' in http_answer(client)


def http_answer(client: socket.socket) -> bytes:
    """Reads one answer with a Content-Length from a socket."""
    answer = http.client.HTTPResponse(client)
    answer.begin()
    return answer.read()


def test_pipelined_requests_are_answered_in_order(proxy: FaultProxy) -> None:
    with connected(proxy) as client:
        client.sendall(b"GET /a HTTP/1.1\r\nHost: h\r\n\r\nGET /last HTTP/1.1\r\nHost: h\r\n\r\n")
        answers = b""
        while piece := client.recv(10_000):
            answers += piece
    assert answers.count(b"HTTP/1.1 200") == 2
    assert answers.endswith(b"bye")


def test_the_target_sees_at_once_that_the_client_left(
    target: Target, proxy: FaultProxy, session: requests.Session
) -> None:
    answer = get(session, proxy, "/steps", stream=True)
    answer.close()
    (call,) = proxy.wait_for_calls(path="/steps", ended=True)
    assert call.outcome == "client left"
    until(lambda: proxy.open_connections == 0)  # both sides close a moment after the call has ended
    target.go_on.release(1000)
    assert target.left.wait(20)


def test_a_missing_target_breaks_the_connection(session: requests.Session) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with FaultProxy(f"http://127.0.0.1:{unused.getsockname()[1]}") as proxy:
            with pytest.raises(requests.ConnectionError):
                get(session, proxy, "/x")
            assert [call.outcome for call in proxy.calls()] == ["target refused"]


def test_a_target_that_breaks_off_breaks_the_answer(session: requests.Session) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer_in_part() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(10_000)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")

        thread = threading.Thread(target=answer_in_part, daemon=True)
        thread.start()
        with FaultProxy(f"http://127.0.0.1:{listening.getsockname()[1]}") as proxy:
            with pytest.raises(requests.exceptions.ChunkedEncodingError):
                get(session, proxy, "/x")
            thread.join()
            assert [(call.outcome, call.received) for call in proxy.calls()] == [("target left", 4)]


@pytest.mark.parametrize("sent", [b"hello\r\n\r\n", b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n", b"GET / HT"])
def test_the_connection_of_a_client_that_does_not_speak_http_is_reset(proxy: FaultProxy, sent: bytes) -> None:
    with connected(proxy) as client:
        client.sendall(sent)
        with suppress(OSError):  # the proxy may have closed it already
            client.shutdown(socket.SHUT_WR)
        with pytest.raises(ConnectionResetError):
            client.recv(100)
    assert proxy.calls() == []


@pytest.mark.parametrize("url", ["https://127.0.0.1:1", "127.0.0.1:1", "http://127.0.0.1:1/v1"])
def test_an_unsupported_target_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="http://HOST:PORT"):
        FaultProxy(url)


# Counting


def test_calls_are_listed_with_their_details(proxy: FaultProxy, session: requests.Session) -> None:
    session.patch(f"{proxy.url}/v1/agents/a1?x=1", json={"tool_ids": ["t"]}, headers={"X-A": "b"}, timeout=20)
    get(session, proxy, "/stream")
    proxy.wait_until_idle()
    patch, stream = proxy.calls()
    assert (patch.number, patch.method, patch.path, patch.query) == (1, "PATCH", "/v1/agents/a1", "x=1")
    assert (patch.body, patch.status, patch.outcome) == ({"tool_ids": ["t"]}, 200, "answered")
    assert patch.headers["X-A"] == "b"
    assert stream.received == len(b"".join(EVENTS))
    assert stream.body is None
    assert stream.seconds is not None
    assert patch.started <= stream.started


def test_a_body_that_is_too_large_is_not_kept(proxy: FaultProxy, session: requests.Session) -> None:
    session.post(f"{proxy.url}/x", data=b'"' + b"x" * 1_000_000 + b'"', timeout=20)
    (call,) = proxy.calls()
    assert (call.body, call.size) == (None, 1_000_002)


def test_calls_are_counted_by_method_and_path(proxy: FaultProxy, session: requests.Session) -> None:
    for path in ("/v1/agents/a", "/v1/agents/b", "/v1/agents/a/messages", "/v1/tools/"):
        get(session, proxy, path)
    session.post(f"{proxy.url}/v1/agents/a", timeout=20)
    assert proxy.count() == 5
    assert proxy.count("GET", "/v1/agents/*") == 2
    assert proxy.count("*", "/v1/agents/*") == 3
    assert proxy.count("GET", "/v1/agents/**") == 3
    proxy.clear()
    assert proxy.count() == 0
    get(session, proxy, "/x")
    assert [call.number for call in proxy.calls()] == [6]


@pytest.mark.parametrize(
    ("glob", "path", "fits"),
    [
        ("**", "/v1/tools/", True),
        ("/v1/agents/*", "/v1/agents/", True),
        ("/v1/agents/*", "/v1/agents/a/tools", False),
        ("/v1/agents/*/tools/*/t-1", "/v1/agents/a/tools/attach/t-1", True),
        ("/v1/**/messages", "/v1/agents/a/messages", True),
        ("/v1/**/messages", "/v1/agents/a/messages/stream", False),
        ("/v1/messages*", "/v1/messages", True),
        ("/v1/tool.", "/v1/tools", False),
        ("/a", "/a\n", False),
    ],
)
def test_a_star_matches_within_a_segment_and_two_stars_match_anything(glob: str, path: str, fits: bool) -> None:
    assert matches(ProxiedCall(1, 1, "GET", path), "*", glob) is fits


def test_a_test_can_wait_for_calls(proxy: FaultProxy, session: requests.Session) -> None:
    timer = threading.Timer(0.05, lambda: requests.get(f"{proxy.url}/late", timeout=20))
    timer.start()
    assert [call.path for call in proxy.wait_for_calls(1, "GET", "/late")] == ["/late"]
    timer.join()
    proxy.wait_until_idle()
    with pytest.raises(TimeoutError, match=r"1 of 2 calls GET /late came in 0\.01 s"):
        proxy.wait_for_calls(2, "GET", "/late", seconds=0.01)


# Rules


def statuses(session: requests.Session, proxy: FaultProxy, *paths: str) -> list[int]:
    return [get(session, proxy, path).status_code for path in paths]


def test_a_rule_applies_to_every_call_that_matches(proxy: FaultProxy, session: requests.Session) -> None:
    rule = proxy.inject(Status(503), "GET", "/v1/*")
    assert statuses(session, proxy, "/v1/a", "/x", "/v1/b", "/v1/a/b") == [503, 200, 503, 200]
    assert (rule.seen, rule.applied) == (2, 2)
    assert [call.faults for call in proxy.calls()] == [("Status",), (), ("Status",), ()]


def test_a_rule_can_apply_to_the_nth_call_only(proxy: FaultProxy, session: requests.Session) -> None:
    get(session, proxy, "/a")
    rule = proxy.inject(Status(503), path="/a", nth=2)
    assert statuses(session, proxy, "/a", "/x", "/a", "/a") == [200, 200, 503, 200]
    assert (rule.seen, rule.applied) == (3, 1)


def test_a_rule_can_apply_to_the_first_calls_only(proxy: FaultProxy, session: requests.Session) -> None:
    proxy.inject(Status(503), times=2)
    assert statuses(session, proxy, "/a", "/b", "/c") == [503, 503, 200]


def test_a_rule_can_depend_on_the_call(proxy: FaultProxy, session: requests.Session) -> None:
    proxy.inject(Status(503), where=lambda call: call.body == {"approve": True})
    codes = [session.post(f"{proxy.url}/x", json={"approve": yes}, timeout=20).status_code for yes in (False, True)]
    assert codes == [200, 503]


def test_a_removed_rule_does_not_apply_any_more(proxy: FaultProxy, session: requests.Session) -> None:
    rule = proxy.inject(Status(503))
    with proxy.inject(Status(500), path="/a"):
        assert statuses(session, proxy, "/a", "/b") == [503, 503]
        rule.remove()
        assert statuses(session, proxy, "/a", "/b") == [500, 200]
    assert statuses(session, proxy, "/a") == [200]


def test_concurrent_calls_are_counted_exactly(proxy: FaultProxy) -> None:
    rule = proxy.inject(Refuse(), nth=7)
    failures: list[Exception] = []

    def call_once(number: int) -> None:
        try:
            requests.get(f"{proxy.url}/{number}", timeout=60)
        except requests.ConnectionError as error:
            failures.append(error)

    threads = [threading.Thread(target=call_once, args=(number,)) for number in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (proxy.count(), len(failures), rule.seen, rule.applied) == (40, 1, 40, 1)


# Down and up


def test_a_proxy_that_is_down_refuses_connections_until_it_is_up(proxy: FaultProxy, session: requests.Session) -> None:
    get(session, proxy, "/a")
    for _ in range(2):
        proxy.down()
        proxy.down()
        with pytest.raises(ConnectionRefusedError):
            connected(proxy)
        assert proxy.open_connections == 0
        proxy.up()
        assert statuses(session, proxy, "/b") == [200]


def test_going_down_ends_the_calls_in_progress(target: Target, proxy: FaultProxy, session: requests.Session) -> None:
    answer = get(session, proxy, "/steps", stream=True)
    proxy.down()
    with pytest.raises(requests.exceptions.ChunkedEncodingError):
        answer.content  # noqa: B018
    assert [call.outcome for call in proxy.calls()] == ["proxy closed"]


def test_healing_removes_every_rule_and_listens_again(proxy: FaultProxy, session: requests.Session) -> None:
    proxy.inject(Status(503))
    proxy.down()
    proxy.heal()
    assert statuses(session, proxy, "/a") == [200]


def test_closing_leaves_no_thread_and_no_connection(target: Target) -> None:
    before = set(threading.enumerate())
    with (
        FaultProxy(target.url) as proxy,
        requests.Session() as session,
        get(session, proxy, "/steps", stream=True),
        connected(proxy) as idle,
    ):
        until(lambda: proxy.open_connections == 2)
        proxy.close()
        assert proxy.open_connections == 0
        assert idle.recv(1) == b""
    target.go_on.release(1000)
    assert target.left.wait(20)
    new = set(threading.enumerate()) - before
    assert [thread.name for thread in new if thread.name.startswith("fault-proxy")] == []
