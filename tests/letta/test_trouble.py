"""What is said about a wrong LETTA_BASE_URL, with servers that really behave so."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, get_args

import pytest

from bridge import errors
from bridge.config import read_settings
from bridge.letta import trouble
from bridge.letta.client import LettaServer
from bridge.letta.connection import Connection
from tests.raw_server import WAIT, RawServer
from tests.tls import TlsProxy

Start = Callable[[ExitStack], str]

AGENT_ID = "agent-00000000-0000-4000-8000-000000000001"


def raw(*pieces: Any, scheme: str = "http") -> Start:
    return lambda stack: stack.enter_context(RawServer(pieces)).url.replace("http:", f"{scheme}:")


def answer(status: str, body: str = "", content_type: str = "text/html", **headers: str) -> bytes:
    fields = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n{fields}"
    return f"{head}Connection: close\r\n\r\n{body}".encode()


def closed_port(stack: ExitStack) -> str:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return f"http://127.0.0.1:{listening.getsockname()[1]}"


def full_port(stack: ExitStack) -> str:
    """A port whose queue of connections is full, as that of a host behind a firewall."""
    listening = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
    stack.enter_context(socket.create_connection(listening.getsockname()))
    return f"http://127.0.0.1:{listening.getsockname()[1]}"


def tls_server(scheme: str) -> Start:
    def start(stack: ExitStack) -> str:
        target = stack.enter_context(RawServer([answer("200 OK", "{}", "application/json")]))
        proxy = stack.enter_context(TlsProxy(int(target.url.rpartition(":")[2])))
        return f"{scheme}://127.0.0.1:{proxy.port}"

    return start


class _NotLetta(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing."""


def other_service(stack: ExitStack) -> str:
    """A web server of Python's library, whose page about an unknown address is HTML."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _NotLetta)
    thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    stack.callback(server.server_close)
    stack.callback(server.shutdown)
    return f"http://127.0.0.1:{server.server_address[1]}"


LOGIN_PAGE = "<!DOCTYPE html><html><title>Welcome</title><form><input type='password' name=p></form></html>"
REFUSED = answer("401 Unauthorized", '{"detail": "Unauthorized"}', "application/json")

# What listens, and the words that say what is wrong and what to do.
TROUBLES: dict[str, tuple[Start, type[errors.LettaError], tuple[str, ...]]] = {
    "a closed port": (closed_port, errors.LettaUnreachable, ("refused", "Start Letta", "In a container, localhost")),
    "no such host": (
        lambda stack: "http://no-such-host.invalid:8283",
        errors.LettaUnreachable,
        ("no host of that name", "Correct the name"),
    ),
    "a host that does not answer": (full_port, errors.LettaTimeout, ("no connection was made in time", "firewall")),
    "https to a plain server": (
        raw(answer("400 Bad Request"), scheme="https"),
        errors.LettaTimeout,
        ("TLS", "write http:// instead of https://"),
    ),
    "https to a plain server that replies at once": (
        lambda stack: talkative_server(stack, b"HTTP/1.1 400 Bad Request\r\n\r\n").replace("http:", "https:"),
        errors.LettaUnreachable,
        ("does not speak TLS", "Write http:// instead of https://"),
    ),
    "http to a TLS server": (tls_server("http"), errors.LettaUnreachable, ("speaks TLS", "Write https:// instead")),
    "http to nginx's TLS port": (
        raw(answer("400 Bad Request", "<html><h1>The plain HTTP request was sent to HTTPS port</h1></html>")),
        errors.LettaUnreachable,
        ("speaks TLS", "Write https:// instead"),
    ),
    "http to a server that sends a TLS alert": (
        raw(b"\x15\x03\x01\x00\x02\x02\x46\r\n"),
        errors.LettaUnreachable,
        ("speaks TLS", "Write https:// instead"),
    ),
    "a certificate of no known authority": (
        tls_server("https"),
        errors.LettaUnreachable,
        ("certificate is not trusted", "authority"),
    ),
    "a port of another protocol": (
        raw(b"-ERR unknown command\r\n"),
        errors.LettaUnreachable,
        ("does not speak HTTP", "Correct the port"),
    ),
    "a server that closes the connection": (raw(), errors.LettaUnreachable, ("closed the connection", "log")),
    "a server that says nothing": (raw(WAIT), errors.LettaTimeout, ("did not answer in time", "log")),
    "another web server": (other_service, errors.LettaError, ("a web page", "Set LETTA_BASE_URL")),
    "another API": (
        raw(answer("404 Not Found", '{"error": "no route"}', "application/json")),
        errors.LettaError,
        ("is not Letta", "Set LETTA_BASE_URL"),
    ),
    "a bridge": (
        raw(answer("404 Not Found", '{"error": {}}', "application/json", **{"X-Bridge-Letta-Calls": "0"})),
        errors.LettaError,
        ("leads to a bridge, not to Letta", "Set LETTA_BASE_URL"),
    ),
    "another API that takes everything": (
        raw(answer("200 OK", '{"hello": "world"}', "application/json")),
        errors.LettaError,
        ("is not Letta", "Set LETTA_BASE_URL"),
    ),
    "a page for people": (
        raw(answer("200 OK", "<!doctype html><html><title>Hello</title></html>")),
        errors.LettaError,
        ("a web page", "Set LETTA_BASE_URL"),
    ),
    "a login page": (
        raw(answer("200 OK", LOGIN_PAGE)),
        errors.LettaUnreachable,
        ("a login page", "without that login"),
    ),
    "a proxy that asks for a password": (
        raw(answer("401 Unauthorized", "<html>401</html>", **{"WWW-Authenticate": "Basic"})),
        errors.LettaUnreachable,
        ("a login page", "without that login"),
    ),
    "a redirect to a login page": (
        raw(answer("302 Found", Location="/login?next=/v1/health/")),
        errors.LettaUnreachable,
        ("a login page", "without that login"),
    ),
    "a redirect to the login page of another host": (
        raw(answer("302 Found", Location="https://sso.example.com/oauth2/authorize?state=canary")),
        errors.LettaUnreachable,
        ("a login page", "without that login"),
    ),
    "a redirect to https": (
        raw(answer("301 Moved", Location="https://letta.example.com/v1/health/?canary")),
        errors.LettaUnreachable,
        ("redirect to https://letta.example.com", "Set LETTA_BASE_URL"),
    ),
    "a proxy without a Letta": (
        raw(answer("502 Bad Gateway", "<html><title>502 Bad Gateway</title></html>")),
        errors.LettaUnavailable,
        ("proxy", "Is Letta running?"),
    ),
    "a wrong password": (raw(REFUSED), errors.LettaRefusedCredentials, ("refused the password", "Set LETTA_API_KEY")),
}


def talkative_server(stack: ExitStack, words: bytes) -> str:
    """Sends `words` to each client before it has read anything."""
    listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection:
                connection.sendall(words)
                connection.recv(65536)

    Thread(target=serve, daemon=True).start()
    stack.callback(listening.shutdown, socket.SHUT_RDWR)
    return f"http://127.0.0.1:{listening.getsockname()[1]}"


@contextmanager
def letta_at(url: str, password: str = "canary-secret") -> Iterator[LettaServer]:
    settings = read_settings({"LETTA_BASE_URL": url, "BRIDGE_ALLOW_ANONYMOUS": "1", "LETTA_API_KEY": password})
    connection = Connection(replace(settings, connect_timeout=0.5, letta_timeout=0.5))
    try:
        yield LettaServer(settings, connection)
    finally:
        connection.close()


def failure_of(call: Callable[[], object]) -> errors.LettaError:
    with pytest.raises(errors.LettaError) as caught:
        call()
    return caught.value


@pytest.mark.servers
@pytest.mark.fault("LETTA_BASE_URL leads elsewhere")
@pytest.mark.parametrize("case", TROUBLES)
def test_what_is_wrong_with_the_address_is_said_with_what_to_do(case: str) -> None:
    start, kind, words = TROUBLES[case]
    with ExitStack() as stack:
        url = start(stack)
        with letta_at(url) as server:
            for call in (server.check_server, server.features, server.agents):
                failure = failure_of(call)
                assert type(failure) is kind
                for one in words:
                    assert one in failure.message
                    assert one in failure.reason or "example.com" in one
                assert "canary" not in failure.message
                assert url not in failure.reason
                assert "LETTA_" in failure.reason or "log" in failure.reason


@pytest.mark.servers
def test_a_missing_password_is_not_called_a_wrong_one() -> None:
    with RawServer([REFUSED]) as listening, letta_at(listening.url, password="") as server:
        failure = failure_of(server.check_server)
    assert isinstance(failure, errors.LettaRefusedCredentials)
    assert "asks for a password, and LETTA_API_KEY is not set" in failure.message


@pytest.mark.servers
def test_a_wrong_password_is_noticed_although_the_version_needs_none() -> None:
    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            healthy = self.path == "/v1/health/"
            self.wfile.write(answer("200 OK", '{"version": "0.16.1"}', "application/json") if healthy else REFUSED)

        def log_message(self, format: str, *args: Any) -> None:
            """Logs nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as listening:
        Thread(target=listening.serve_forever, args=(0.02,), daemon=True).start()
        with letta_at(f"http://127.0.0.1:{listening.server_address[1]}") as server:
            assert isinstance(failure_of(server.check_server), errors.LettaRefusedCredentials)
        listening.shutdown()


@pytest.mark.servers
def test_a_server_that_has_answered_is_not_taken_for_one_with_tls() -> None:
    """A connection that breaks later has another reason, so nobody tries TLS then."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        begins: list[bytes] = []

        def serve() -> None:
            for reply in (answer("200 OK", "[]", "application/json"), b"", b""):
                connection, _ = listening.accept()
                with connection:
                    begins.append(connection.recv(65536)[:3])
                    connection.sendall(reply)

        thread = Thread(target=serve, daemon=True)
        thread.start()
        with letta_at(f"http://127.0.0.1:{listening.getsockname()[1]}") as server:
            assert server.agents() == []
            assert "closed the connection" in failure_of(server.agents).message
        thread.join()
    assert begins == [b"GET"] * 3


def test_the_fault_of_a_certificate_is_named() -> None:
    found = {}
    for number in (10, 18, 19, 62, 99):
        fault = ssl.SSLCertVerificationError("canary")
        fault.verify_code = number
        cause = trouble.cause_of_fault(fault)
        found[number] = trouble.error_for_fault(cause, fault, "https://letta.test").message
        assert "canary" not in found[number]
    assert "it has expired" in found[10]
    assert "it is self-signed" in found[18]
    assert "its authority is unknown here" in found[19]
    assert "it is for another host name" in found[62]
    assert "it can't be verified" in found[99]


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        (OSError(101, "Network is unreachable"), "no way"),
        (OSError(24, "Too many open files"), "unreachable"),
        (TimeoutError("_ssl.c:989: The handshake operation timed out"), "TLS hangs"),
        (ConnectionResetError(104, "reset"), "closed"),
        (ssl.SSLError(1, "canary"), "TLS fails"),
        (RuntimeError(), "unreachable"),
    ],
)
def test_a_fault_of_the_system_has_a_cause_however_deep_it_is(fault: BaseException, cause: str) -> None:
    outer = RuntimeError("of a library")
    outer.__context__ = RuntimeError("between")
    outer.__context__.__cause__ = fault
    assert trouble.cause_of_fault(outer) == trouble.cause_of_fault(fault) == cause


@pytest.mark.parametrize("status", [200, 400, 404, 409, 422, 500])
def test_an_answer_in_json_is_no_page(status: int) -> None:
    headers = {"content-type": "application/json"}
    assert trouble.error_for_page(status, headers, '{"detail": "<html> login"}', "http://letta.test") is None


@pytest.mark.parametrize("cause", get_args(trouble.Cause))
def test_every_cause_says_first_what_is_wrong_and_then_what_to_do(cause: trouble.Cause) -> None:
    failure = trouble.make_error(cause, "http://canary.test", "more", " to https://canary.test")
    assert failure.message.endswith(failure.advice)
    assert failure.advice
    assert failure.reason
    assert "canary" not in failure.reason
