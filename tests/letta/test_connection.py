"""Reads, changes and message streams over sockets, and the errors for all that a server can do wrong."""

from __future__ import annotations

import gzip
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import responses
from urllib3.util import connection as urllib3_connection

from bridge import errors
from bridge.config import read_settings
from bridge.errors import BridgeError
from bridge.letta import connection as module
from bridge.letta.client import LettaServer
from bridge.letta.connection import Connection
from bridge.letta.gateway import AgentChange, ForeignCall, Say
from bridge.trace import Trace, set_current_trace
from bridge.turn import AgentEvent, Stopped, Text
from tests.letta_server import LettaServerStub
from tests.raw_server import WAIT, RawServer, read_request
from tests.stream_cases import CASES, expected, outcome, stream
from tests.tls import TlsProxy
from tests.waiting import SOON

pytestmark = pytest.mark.servers

ID = "agent-00000000-0000-4000-8000-000000000001"
URL = f"http://letta.test:8283/v1/agents/{ID}/messages/stream"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
CLOSING = HEAD + b"Connection: close\r\n\r\n"
HELLO = b'data: {"message_type":"assistant_message","content":"Hello"}\n\n'
END = b'data: {"message_type":"stop_reason","stop_reason":"end_turn"}\n\ndata: [DONE]\n\n'

AGENT = b'{"id": "%s", "name": "Ada"}' % ID.encode()
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(AGENT), AGENT)

Call = Callable[[LettaServer], object]


def read(server: LettaServer) -> object:
    return server.agent(ID)


def change(server: LettaServer) -> object:
    return server.tag_tool("tool-1", ["mine"])


def ask_all(server: LettaServer) -> object:
    return list(ask(server))


CALLS = [read, change, ask_all]


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def server_at(url: str, calls: list[str] | None = None, **changes: Any) -> LettaServer:
    """Makes the adapter to a server. `calls` gets the calls, also those that do not reach the server."""
    environment = {"LETTA_BASE_URL": url, "BRIDGE_ALLOW_ANONYMOUS": "1", "LETTA_API_KEY": "canary-secret"}
    seen = [] if calls is None else calls
    settings = replace(read_settings(environment), **changes)
    connection = Connection(settings, observe=lambda call, _: seen.append(call))
    OPEN.append(connection)
    return LettaServer(settings, connection)


OPEN: list[Connection] = []


@pytest.fixture(autouse=True)
def _close_connections() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().close()


def ask(server: LettaServer) -> Iterator[AgentEvent]:
    return server.send_messages(ID, [Say("system", "be kind"), Say("user", "Hi \u00e9")], by_token=True)


def events_from(*pieces: bytes) -> list[AgentEvent]:
    with RawServer(pieces) as server:
        return list(ask(server_at(server.url)))


# --- what is sent, and what a refusal means ---------------------------------------------------------------


@responses.activate
def test_messages_are_sent_as_letta_expects_them() -> None:
    responses.post(URL, body=HELLO + END)
    assert list(ask(server_at("http://letta.test:8283"))) == [Text("Hello"), Stopped("end_turn")]
    request = responses.calls[0].request
    assert json.loads(request.body or b"") == {
        "messages": [{"role": "system", "content": "be kind"}, {"role": "user", "content": "Hi \u00e9"}],
        "stream_tokens": True,
    }
    assert request.headers["Authorization"] == "Bearer canary-secret"
    assert request.headers["Content-Type"] == "application/json"
    assert request.headers["Accept"] == "text/event-stream"


@responses.activate
def test_without_a_key_no_authorization_is_sent() -> None:
    responses.post(URL, body=HELLO + END)
    list(ask(server_at("http://letta.test:8283", letta_api_key="")))
    assert "Authorization" not in responses.calls[0].request.headers


REFUSALS: list[tuple[int, str, type[BridgeError]]] = [
    (302, "", errors.LettaUnreachable),
    (400, '{"detail":"no"}', errors.LettaRejected),
    (401, '{"detail":"Unauthorized"}', errors.LettaRefusedCredentials),
    (404, '{"detail":"Agent not found"}', errors.LettaNotFound),
    (404, '{"detail":"StepMetrics not found"}', errors.RunBrokenOff),
    (409, '{"detail":{"code":"PENDING_APPROVAL","message":"CONFLICT"}}', errors.LettaConflict),
    (422, '{"detail":[]}', errors.LettaRejected),
    (500, 'event: error\ndata: {"error": {"message": "Internal Server Error"}}\n\n', errors.LettaError),
    (500, 'data: {"error": "OpenAI API error: Error code: 500"}\n\n', errors.ModelFailed),
    (500, 'data: {"error": "CONTEXT_WINDOW_EXCEEDED: Bad request"}\n\n', errors.ContextOverflow),
    (500, "\udcff" * 50_000, errors.LettaError),
    (502, '{"error":{"type":"llm_error"}}', errors.ModelFailed),
    (503, "", errors.LettaUnavailable),
]


@pytest.mark.fault("Letta answers a message with a status")
@responses.activate
@pytest.mark.parametrize(("status", "body", "kind"), REFUSALS)
def test_a_refused_message_becomes_a_named_error_before_anything_is_iterated(
    status: int, body: str, kind: type[BridgeError]
) -> None:
    responses.post(URL, status=status, body=body.encode("utf-8", "surrogateescape"), headers={"Location": URL})
    with pytest.raises(kind) as caught:
        ask(server_at("http://letta.test:8283"))
    assert type(caught.value) is kind
    assert len(responses.calls) == 1
    assert "canary" not in str(caught.value)
    assert sum(map(len, caught.value.__notes__)) < 2100


# --- how the bytes come -----------------------------------------------------------------------------------


@responses.activate
@pytest.mark.parametrize("case", CASES)
def test_recorded_streams_are_read_the_same_over_http(case: str) -> None:
    responses.post(URL, body=stream(case))
    found: list[AgentEvent] = []
    wanted = expected(case)
    try:
        found.extend(ask(server_at("http://letta.test:8283")))
    except BridgeError as failure:
        assert wanted["failure"] == {"kind": type(failure).__name__, "code": failure.code}  # noqa: PT017
    else:
        assert wanted["failure"] is None
        assert len(found) == len(outcome([stream(case)])["events"])


@pytest.mark.fault("events of Letta in slices, of odd form, or none at all")
def test_chunks_of_one_byte_are_joined() -> None:
    body = 'data: {"message_type":"assistant_message","content":"caf\u00e9 \U0001f600"}\n\n'.encode() + END
    pieces = [chunk(body[at : at + 1]) for at in range(len(body))]
    assert events_from(CHUNKED, *pieces, b"0\r\n\r\n") == [Text("caf\u00e9 \U0001f600"), Stopped("end_turn")]


def test_a_compressed_stream_is_read() -> None:
    body = gzip.compress(HELLO + END)
    head = HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body)
    assert events_from(head, body) == [Text("Hello"), Stopped("end_turn")]


@pytest.mark.parametrize("head", [CHUNKED, CLOSING])
def test_an_event_is_yielded_while_the_stream_continues(head: bytes) -> None:
    with RawServer([head, chunk(HELLO) if head == CHUNKED else HELLO, WAIT]) as server:
        assert next(ask(server_at(server.url))) == Text("Hello")


def test_what_a_reader_of_a_stream_puts_off_is_done_before_it_waits_for_the_next_piece() -> None:
    done, trace = threading.Event(), Trace()
    set_current_trace(trace)
    with RawServer([CLOSING, HELLO, done, END]) as server:  # the end only comes after that
        events = ask(server_at(server.url))
        assert next(events) == Text("Hello")
        assert trace.put_off(done.set)
        assert list(events) == [Stopped("end_turn")]
    assert not trace.put_off(done.set)
    set_current_trace(None)


def test_a_stream_that_is_left_early_is_closed() -> None:
    """The server notices that the connection is closed."""
    left = threading.Event()

    def serve(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(CLOSING + HELLO)
            with suppress(ConnectionResetError):
                while connection.recv(65536):
                    pass
            left.set()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, args=(listening,), daemon=True)
        thread.start()
        events: Any = ask(server_at(f"http://127.0.0.1:{listening.getsockname()[1]}"))
        assert next(events) == Text("Hello")
        events.close()
        assert left.wait(SOON)
        thread.join(SOON)


# --- how the bytes stop -----------------------------------------------------------------------------------


@pytest.mark.fault("the stream of Letta breaks at any place")
@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([CHUNKED, chunk(HELLO)], id="before the next chunk"),
        pytest.param([CHUNKED, chunk(HELLO), b"ff\r\ndata: {"], id="in a chunk"),
        pytest.param([CHUNKED, chunk(HELLO), b"0\r\n\r\n"], id="chunked to its end, without an end of the run"),
        pytest.param([CLOSING, HELLO], id="between two events"),
        pytest.param([CLOSING, HELLO, b'data: {"message_ty'], id="in an event"),
        pytest.param([CLOSING, HELLO, b'data: {"message_type":"x","content":"caf\xc3'], id="in a letter"),
        pytest.param([HEAD + b"Content-Length: 9999\r\n\r\n", HELLO], id="before its announced length"),
    ],
)
def test_a_stream_that_breaks_is_reported_as_broken(pieces: list[bytes]) -> None:
    seen: list[AgentEvent] = []
    with RawServer(pieces) as server, pytest.raises(errors.LettaUnreachable, match="broke before") as caught:
        seen.extend(ask(server_at(server.url)))
    assert seen == [Text("Hello")]
    assert (caught.value.code, caught.value.retry_after) == ("stream_cut", 5)


@pytest.mark.fault("the stream of Letta breaks at any place")
def test_a_server_that_closes_without_an_answer_is_unreachable() -> None:
    with RawServer([]) as server, pytest.raises(errors.LettaUnreachable):
        ask(server_at(server.url))
    assert len(server.requests) == 1


@pytest.mark.fault("Letta refuses connections, or has no address")
def test_messages_that_were_not_sent_are_sent_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second try finds a server that was just starting; there is no third try."""
    with RawServer([CLOSING, HELLO, END]) as server, socket.create_server(("127.0.0.1", 0)) as other:
        closed = other.getsockname()
        other.close()
        places = [closed, None, closed, closed, None]
        real = urllib3_connection.create_connection

        def connect(address: tuple[str, int], *more: Any, **fields: Any) -> socket.socket:
            return real(places.pop(0) or address, *more, **fields)

        monkeypatch.setattr(urllib3_connection, "create_connection", connect)
        monkeypatch.setattr(module, "RETRY_PAUSE", (0, 0))
        assert list(ask(server_at(server.url))) == [Text("Hello"), Stopped("end_turn")]
        with pytest.raises(errors.LettaUnreachable):
            ask(server_at(server.url))
        assert places == [None]


@pytest.mark.fault("Letta takes a request and never answers")
@pytest.mark.parametrize("pieces", [[WAIT], [CHUNKED, WAIT], [CHUNKED, chunk(HELLO), WAIT], [CHUNKED, b"f", WAIT]])
def test_a_silent_stream_ends_in_a_timeout(pieces: list[bytes | threading.Event]) -> None:
    with RawServer(pieces) as server:
        bridge = server_at(server.url, turn_timeout=0.05)
        with pytest.raises(errors.LettaTimeout):
            list(ask(bridge))


@pytest.mark.fault("Letta takes a request and never answers")
def test_pings_do_not_extend_the_time_limit_of_the_agent() -> None:
    ping = chunk(b'data: {"message_type": "ping"}\n\n')
    with RawServer([CHUNKED, chunk(HELLO), *[ping, 0.05] * 500]) as server:
        bridge = server_at(server.url)
        bridge._turn_timeout = 0.2  # of the agent; the pings may come late on a busy machine
        with pytest.raises(errors.LettaTimeout, match="silent for more than"):
            list(ask(bridge))


@pytest.mark.fault("Letta drips bytes and says nothing")
def test_bytes_without_whole_events_do_not_extend_the_time_limit() -> None:
    drips: list[bytes | float | threading.Event] = [CLOSING, HELLO, b"data: "]
    for _ in range(1000):
        drips += [b"x", 0.02]
    with RawServer(drips) as server:
        bridge = server_at(server.url)
        seen = ask(bridge)
        assert next(seen) == Text("Hello")
        bridge._http._turn_timeout = 0.3  # from this event on, and not for a byte
        with pytest.raises(errors.LettaTimeout):
            list(seen)


@pytest.mark.fault("events of Letta in slices, of odd form, or none at all")
@pytest.mark.parametrize(
    "body",
    [
        b"data: {\n\n",
        b"data: not json\n\n",
        b"data: [1]\n\n",
        b"data: null\n\n",
        b"data: NaN\n\n",
        b"data: " + b"[" * 100_000 + b"]" * 100_000 + b"\n\n",
    ],
)
def test_events_that_are_not_lettas_become_a_named_error(body: bytes) -> None:
    with pytest.raises(errors.LettaError, match="LETTA_BASE_URL") as caught:
        events_from(CLOSING, HELLO, body, END)
    assert type(caught.value) is errors.LettaError


@pytest.mark.fault("events of Letta in slices, of odd form, or none at all")
def test_a_page_of_html_counts_as_a_broken_stream() -> None:
    with pytest.raises(errors.LettaUnreachable):
        events_from(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n<html>Please sign in</html>")


@pytest.mark.fault("events of Letta in slices, of odd form, or none at all")
@pytest.mark.parametrize("answer", [b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 999999 what\r\n\r\n", b"\x00" * 100])
def test_a_server_that_does_not_speak_http_is_unreachable(answer: bytes) -> None:
    with pytest.raises(errors.LettaUnreachable):
        events_from(answer)


# --- reads and changes ------------------------------------------------------------------------------------


def head_and_body(server: RawServer) -> tuple[list[bytes], bytes]:
    head, _, body = server.requests[-1].partition(b"\r\n\r\n")
    return head.lower().split(b"\r\n"), body


def test_a_read_is_sent_as_letta_expects_it() -> None:
    with RawServer([OK]) as server:
        assert server_at(server.url).agent(ID).name == "Ada"
    head, body = head_and_body(server)
    relations = b"include_relationships=tools&include_relationships=memory"
    assert head[0] == b"get /v1/agents/%s?%s http/1.1" % (ID.encode(), relations)
    wanted = {b"accept: application/json", b"accept-encoding: identity", b"authorization: bearer canary-secret"}
    assert wanted <= set(head)
    assert body == b""


def test_a_change_is_sent_as_letta_expects_it() -> None:
    with RawServer([OK]) as server:
        server_at(server.url).tag_tool("tool-1", ["mine"])
    head, body = head_and_body(server)
    assert head[0] == b"patch /v1/tools/tool-1 http/1.1"
    assert {b"content-type: application/json", b"authorization: bearer canary-secret"} <= set(head)
    assert json.loads(body) == {"tags": ["mine"]}


def test_a_file_is_sent_as_letta_expects_it() -> None:
    answer = b'HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n{"id": "af-1"}'
    fields = {"append_copy_suffix": "false"}
    with RawServer([answer]) as server:
        server_at(server.url)
        assert OPEN[-1].upload("/v1/agents/import", "ada.af", {"name": "Ada"}, fields) == {"id": "af-1"}
    head, body = head_and_body(server)
    assert head[0] == b"post /v1/agents/import?append_copy_suffix=false http/1.1"
    assert b"authorization: bearer canary-secret" in head
    assert any(line.startswith(b"content-type: multipart/form-data; boundary=") for line in head)
    first, second = (part.partition(b"\r\n\r\n") for part in body.split(b"\r\n--")[:2])
    assert b'name="append_copy_suffix"' in first[0]
    assert first[2] == b"false"
    assert b'name="file"; filename="ada.af"' in second[0]
    assert json.loads(second[2]) == {"name": "Ada"}


def test_a_compressed_answer_is_read() -> None:
    packed = gzip.compress(AGENT)
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
    with RawServer([head + packed]) as server:
        bridge = server_at(server.url)
        assert bridge.agent(ID).name == "Ada"
        assert bridge.change_agent(ID, AgentChange(parallel_calls=True)).name == "Ada"


class CountingLetta(LettaServerStub):
    connections = 0

    def get_request(self) -> tuple[socket.socket, Any]:
        self.connections += 1
        return super().get_request()


@pytest.mark.parametrize("call", [read, change])
def test_a_connection_is_used_again(call: Call) -> None:
    with CountingLetta() as letta:
        bridge = server_at(letta.url)
        call(bridge)
        call(bridge)
        assert (len(letta.asked), letta.connections) == (2, 1)


@pytest.mark.parametrize(("last_chunk", "connections"), [(b"0\r\n\r\n", 1), (b"", 2)], ids=["ended", "left open"])
def test_the_connection_of_a_whole_stream_is_used_again_if_the_server_ends_it(
    last_chunk: bytes, connections: int
) -> None:
    """A server may leave the stream open after its last event: nobody waits for it then."""
    accepted: list[socket.socket] = []

    def serve_all(listening: socket.socket) -> None:
        with suppress(OSError):
            while True:
                accepted.append(listening.accept()[0])
                threading.Thread(target=serve, args=(accepted[-1],), daemon=True).start()

    def serve(connection: socket.socket) -> None:
        with suppress(OSError):
            while read_request(connection):
                connection.sendall(CHUNKED + chunk(HELLO) + chunk(END) + last_chunk)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve_all, args=(listening,), daemon=True).start()
        bridge = server_at(f"http://127.0.0.1:{listening.getsockname()[1]}")
        for _ in range(2):
            assert list(ask(bridge)) == [Text("Hello"), Stopped("end_turn")]
        assert len(accepted) == connections
    for connection in accepted:
        connection.close()


def test_letters_beyond_ascii_in_the_base_url_are_encoded() -> None:
    with RawServer([OK]) as server:
        assert server_at(f"{server.url}/l\u00f6tta/\u65e5").agent(ID).name == "Ada"
    assert server.requests[0].startswith(b"GET /l%C3%B6tta/%E6%97%A5/v1/agents/")


def test_cookies_are_not_kept() -> None:
    with RawServer([OK.replace(b"\r\n", b"\r\nSet-Cookie: canary=1\r\n", 1)]) as server:
        bridge = server_at(server.url)
        read(bridge)
        read(bridge)
    assert b"canary=1" not in server.requests[-1]


@pytest.mark.fault("Letta refuses connections, or has no address")
@pytest.mark.parametrize("call", CALLS)
def test_a_server_that_refuses_connections_is_unreachable_after_two_tries(call: Call) -> None:
    calls: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        bridge = server_at(f"http://127.0.0.1:{listening.getsockname()[1]}", calls)
    with pytest.raises(errors.LettaUnreachable, match="can't be reached"):
        call(bridge)
    assert len(calls) == 2


@pytest.mark.fault("Letta refuses connections, or has no address")
@pytest.mark.parametrize("call", CALLS)
def test_a_host_without_an_address_is_unreachable_after_two_tries(call: Call) -> None:
    calls: list[str] = []
    bridge = server_at("http://no-such-host.invalid", calls)
    with pytest.raises(errors.LettaUnreachable, match="can't be reached"):
        call(bridge)
    assert len(calls) == 2


@pytest.mark.fault("Letta refuses connections, or has no address")
@pytest.mark.parametrize("call", CALLS)
def test_a_certificate_of_an_unknown_authority_is_refused(call: Call) -> None:
    with RawServer([OK]) as server, TlsProxy(int(server.url.rpartition(":")[2])) as proxy:
        with pytest.raises(errors.LettaUnreachable, match="can't be reached"):
            call(server_at(f"https://127.0.0.1:{proxy.port}"))
        assert server.requests == []


@pytest.mark.fault("Letta takes a request and never answers")
@pytest.mark.parametrize("call", CALLS)
def test_a_connection_that_is_not_made_in_time_becomes_a_timeout(call: Call) -> None:
    """Its queue of connections is full: with a length of 0 one fits, and the system lets the next one wait."""
    calls: list[str] = []
    with ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        stack.enter_context(socket.create_connection(listening.getsockname()))
        bridge = server_at(f"http://127.0.0.1:{listening.getsockname()[1]}", calls, connect_timeout=0.05)
        with pytest.raises(errors.LettaTimeout):
            call(bridge)
    assert len(calls) == 1


@pytest.mark.fault("Letta takes a request and never answers")
@pytest.mark.parametrize("call", [read, change])
@pytest.mark.parametrize("pieces", [[WAIT], [OK[:-1], WAIT]], ids=["before the answer", "within the answer"])
def test_silence_becomes_a_timeout(call: Call, pieces: list[bytes | threading.Event]) -> None:
    with RawServer(pieces) as server, pytest.raises(errors.LettaTimeout):
        call(server_at(server.url, letta_timeout=0.05))
    assert len(server.requests) == 1


@pytest.mark.fault("the stream of Letta breaks at any place")
@pytest.mark.parametrize("call", [read, change])
@pytest.mark.parametrize("pieces", [[], [OK[:-1]], [b"no HTTP\r\n\r\n"]], ids=["nothing", "cut off", "not HTTP"])
def test_a_broken_answer_makes_the_server_unreachable(call: Call, pieces: list[bytes]) -> None:
    """A read is tried once more, a change is not: it may have arrived."""
    with RawServer(pieces) as server, pytest.raises(errors.LettaUnreachable, match="can't be reached") as caught:
        call(server_at(server.url))
    assert caught.value.code == "letta_unreachable"
    assert len(server.requests) == (2 if call is read else 1)


@pytest.mark.fault("events of Letta in slices, of odd form, or none at all")
@pytest.mark.parametrize("call", [read, change])
def test_an_answer_that_is_not_compressed_as_it_says_makes_the_server_unreachable(call: Call) -> None:
    answer = OK.replace(b"\r\n", b"\r\nContent-Encoding: gzip\r\n", 1)
    with RawServer([answer]) as server, pytest.raises(errors.LettaUnreachable, match="can't be reached"):
        call(server_at(server.url))


# --- calls of clients that are passed on ------------------------------------------------------------------

HEADERS = {"Content-Type": "multipart/form-data; boundary=x", "Accept": "*/*"}
UPLOAD = ForeignCall("POST", "/v1/sources/source-1/upload", "a=%20b&c", HEADERS, b"--x\r\n\x00\xff")
READ = ForeignCall("GET", f"/v1/agents/{ID}/core-memory/blocks/my%20label")


def forward(server: LettaServer) -> object:
    return server.forward(READ).read(1_000_000)


def test_a_clients_call_is_sent_as_it_is() -> None:
    with RawServer([OK]) as server:
        assert server_at(server.url).forward(UPLOAD).read(1_000_000) == AGENT
    head, body = head_and_body(server)
    assert head[0] == b"post /v1/sources/source-1/upload?a=%20b&c http/1.1"
    assert body == UPLOAD.body
    names = [line.partition(b":")[0] for line in head[1:]]
    own = [b"authorization", b"accept-encoding", b"connection", b"content-length", b"host", b"via", b"x-request-id"]
    assert sorted(names) == sorted([b"accept", b"content-type", *own])
    wanted = {b"accept-encoding: identity", b"authorization: bearer canary-secret", b"accept: */*"}
    assert {*wanted, b"content-type: multipart/form-data; boundary=x"} <= set(head)


def test_the_name_of_the_clients_program_reaches_letta() -> None:
    """Letta answers in the form that this version of its SDK expects."""
    with RawServer([OK]) as server:
        server_at(server.url).forward(replace(READ, headers={"User-Agent": "letta-client/1.2"})).close()
    assert b"user-agent: letta-client/1.2" in head_and_body(server)[0]


@pytest.mark.parametrize(
    "status", [b"204 x", b"302 x\r\nLocation: /v1/agents/", b"401 x", b"404 x", b"500 x", b"503 x"]
)
def test_any_status_of_letta_is_an_answer(status: bytes) -> None:
    with RawServer([b"HTTP/1.1 %s\r\nContent-Length: 0\r\nX-One: 1\r\n\r\n" % status]) as server:
        answer = server_at(server.url).forward(UPLOAD)
        assert (answer.status, answer.read(10)) == (int(status[:3]), b"")
        assert ("X-One", "1") in answer.headers
    assert len(server.requests) == 1


@pytest.mark.parametrize("head", [CHUNKED, CLOSING])
def test_the_answer_to_a_client_is_passed_on_as_it_arrives(head: bytes) -> None:
    with RawServer([head, chunk(HELLO) if head == CHUNKED else HELLO, WAIT]) as server:
        answer = server_at(server.url).forward(READ, patient=True)
        assert next(answer.pieces) == HELLO
        answer.close()


def test_the_answer_to_a_client_is_not_decoded() -> None:
    packed = gzip.compress(AGENT)
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
    with RawServer([head + packed]) as server:
        answer = server_at(server.url).forward(READ)
        assert ("Content-Encoding", "gzip") in answer.headers
        assert answer.read(1_000_000) == packed


@pytest.mark.parametrize("read_first", [False, True])
def test_closing_an_answer_to_a_client_closes_the_connection(read_first: bool) -> None:
    left = threading.Event()

    def serve(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(CHUNKED + chunk(HELLO))
            with suppress(ConnectionResetError):
                while connection.recv(65536):
                    pass
            left.set()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, args=(listening,), daemon=True)
        thread.start()
        answer = server_at(f"http://127.0.0.1:{listening.getsockname()[1]}").forward(READ)
        if read_first:
            next(answer.pieces)
        answer.close()
        assert left.wait(SOON)
        thread.join(SOON)


def test_aborting_an_answer_ends_a_read_in_another_thread() -> None:
    with RawServer([CHUNKED, chunk(HELLO), WAIT]) as server:
        answer = server_at(server.url).forward(READ, patient=True)
        assert next(answer.pieces) == HELLO
        other = threading.Timer(0.05, answer.abort)
        other.start()
        with pytest.raises(errors.LettaUnreachable):
            next(answer.pieces)
        answer.close()
        answer.abort()
        other.join(SOON)


def test_an_answer_that_was_read_leaves_its_connection_for_the_next_call() -> None:
    with CountingLetta() as letta:
        bridge = server_at(letta.url)
        forward(bridge)
        forward(bridge)
        assert letta.connections == 1


@pytest.mark.fault("the stream of Letta breaks at any place")
@pytest.mark.parametrize("pieces", [[CHUNKED, chunk(HELLO)], [HEAD + b"Content-Length: 9999\r\n\r\n", HELLO]])
def test_a_broken_answer_to_a_client_is_reported(pieces: list[bytes]) -> None:
    seen: list[bytes] = []
    with RawServer(pieces) as server, pytest.raises(errors.LettaUnreachable, match="broke before"):
        seen.extend(server_at(server.url).forward(READ).pieces)
    assert seen == [HELLO]


@pytest.mark.fault("the stream of Letta breaks at any place")
@pytest.mark.parametrize("call", [READ, UPLOAD, replace(READ, verb="DELETE"), replace(READ, verb="PUT", body=b"{}")])
def test_only_a_read_of_a_client_is_tried_again(call: ForeignCall) -> None:
    with RawServer([]) as server, pytest.raises(errors.LettaUnreachable):
        server_at(server.url).forward(call)
    assert len(server.requests) == (2 if call is READ else 1)


@pytest.mark.fault("Letta takes a request and never answers")
@pytest.mark.parametrize("pieces", [[WAIT], [CHUNKED, chunk(HELLO), WAIT]])
@pytest.mark.parametrize("patient", [False, True])
def test_silence_after_a_clients_call_becomes_a_timeout(pieces: list[bytes | threading.Event], patient: bool) -> None:
    short: dict[str, Any] = {"turn_timeout" if patient else "letta_timeout": 0.05}
    with RawServer(pieces) as server, pytest.raises(errors.LettaTimeout):
        server_at(server.url, **short).forward(READ, patient=patient).read(1_000_000)


def test_a_clients_calls_are_counted_without_ids() -> None:
    calls: list[str] = []
    with RawServer([OK]) as server:
        server_at(server.url, calls).forward(UPLOAD).close()
    assert calls == ["POST /v1/sources/{id}/{id}"]


# --- the environment --------------------------------------------------------------------------------------


@pytest.fixture
def settings_of_other_programs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Proxies that do not exist, and credentials of others."""
    netrc = tmp_path / "netrc"
    netrc.write_text("default login somebody password canary-of-netrc\n")
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("LETTA_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("LETTA_API_KEY", "a-key-of-another-program")
    monkeypatch.setenv("NETRC", str(netrc))


@pytest.mark.usefixtures("settings_of_other_programs")
def test_proxies_and_credentials_of_the_environment_are_ignored() -> None:
    with RawServer([CLOSING, HELLO, END]) as server:
        assert list(ask(server_at(server.url, letta_api_key=""))) == [Text("Hello"), Stopped("end_turn")]
        assert b"authorization" not in server.requests[0].lower()
    for call in (read, change):
        with RawServer([OK]) as server:
            call(server_at(server.url, letta_api_key=""))
            assert b"a-key-of-another-program" not in server.requests[0]
            assert b"basic" not in server.requests[0].lower()


def test_a_redirect_is_not_followed() -> None:
    with RawServer([CLOSING, HELLO, END]) as elsewhere:
        answer = b"HTTP/1.1 307 x\r\nConnection: close\r\nContent-Length: 0\r\nLocation: %s/\r\n\r\n"
        with RawServer([answer % elsewhere.url.encode()]) as server:
            bridge = server_at(server.url)
            for call in CALLS:
                with pytest.raises(errors.LettaUnreachable, match="redirect"):
                    call(bridge)
    assert elsewhere.requests == []


def test_making_a_connection_opens_no_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("opened")

    monkeypatch.setattr(socket, "create_connection", refuse)
    Connection(read_settings({"LETTA_BASE_URL": "http://letta.test", "BRIDGE_ALLOW_ANONYMOUS": "1"}))


def test_many_turns_at_once_do_not_wait_for_each_other() -> None:
    """Every stream holds a connection of its own, up to the number of threads."""
    everyone = threading.Barrier(9, timeout=SOON)

    def serve(connection: socket.socket) -> None:
        with connection:
            connection.recv(65536)
            everyone.wait()
            connection.sendall(CLOSING + HELLO + END)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        bridge = server_at(f"http://127.0.0.1:{listening.getsockname()[1]}", least_threads=8)
        answers: list[list[AgentEvent]] = []
        clients = [threading.Thread(target=lambda: answers.append(list(ask(bridge)))) for _ in range(8)]
        for one in clients:
            one.start()
        servers = [threading.Thread(target=serve, args=(listening.accept()[0],)) for _ in range(8)]
        for one in servers:
            one.start()
        everyone.wait()
        for one in [*clients, *servers]:
            one.join(SOON)
    assert answers == [[Text("Hello"), Stopped("end_turn")]] * 8
