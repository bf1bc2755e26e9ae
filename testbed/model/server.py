"""The scripted model as an HTTP server, in the process of a test or in its own.

    with ScriptedModel() as model:
        letta = start_letta(model_url=model.url)       # "http://127.0.0.1:PORT/v1"
        ...
        assert model.last_request(containing="Oslo").story() == [...]
        assert not model.refusals

Another process can ask over HTTP: `GET /_requests?containing=TEXT`, `GET /_refusals`, `DELETE /_requests`.
"""

import socket
import socketserver
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self, cast
from urllib.parse import parse_qs, unquote, urlsplit

from testbed.model.answers import HttpAnswer, chat_answer, embeddings_answer, json_answer, models_answer, refuse
from testbed.model.records import CHAT, RecordedRequest, Records
from testbed.model.refusal import Refusal
from testbed.model.strictness import ModelLimits

OWN_PATHS = ("/", "/_requests", "/_refusals")
CLOSE_SECONDS = 20.0

GREETING = {
    "scripted model": "answers as the messages dictate; see testbed/model/script.py",
    "paths": ["/v1/chat/completions", "/v1/embeddings", "/v1/models", "/_requests", "/_refusals"],
}


class ScriptedModel:
    """An OpenAI endpoint whose answers are dictated by the messages. Its `limits` may be changed at any time."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0, limits: ModelLimits | None = None) -> None:
        self.limits = limits or ModelLimits()
        self._records = Records()
        self._closing = threading.Event()
        self._server = _Server((host, port), self)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), name="scripted-model", daemon=True
        )
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """The base URL for OpenAI clients."""
        return f"http://{self._server.server_address[0]!s}:{self.port}/v1"

    def close(self) -> None:
        """Stops listening and ends every connection, also during an answer."""
        if self._closing.is_set():
            return
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._server.end_connections(CLOSE_SECONDS)
        self._thread.join(CLOSE_SECONDS)

    def requests(self, containing: str | None = None, path: str | None = CHAT) -> list[RecordedRequest]:
        """Returns the recorded requests to a path (None for all paths) that contain a text, oldest first."""
        return self._records.find(containing, path)

    def last_request(self, containing: str | None = None, path: str | None = CHAT) -> RecordedRequest:
        """Returns the newest of them; LookupError without one."""
        found = self.requests(containing, path)
        if not found:
            raise LookupError(f"the model got no request to {path} with {containing!r}")
        return found[-1]

    def wait_for_requests(
        self, count: int = 1, containing: str | None = None, path: str | None = CHAT, seconds: float = 20.0
    ) -> list[RecordedRequest]:
        """Waits until that many of them have arrived; TimeoutError if they do not."""
        return self._records.wait(count, containing, path, seconds)

    @property
    def refusals(self) -> list[RecordedRequest]:
        """The requests that were refused as by OpenAI, and those with a malformed script."""
        return [one for one in self.requests(path=None) if one.refusal is not None and not one.expected]

    def take_refusals(self) -> list[RecordedRequest]:
        """Returns the refused requests and marks them as expected, so that `refusals` does not list them any more."""
        found = self.refusals
        for one in found:
            one.expected = True
        return found

    def clear(self) -> None:
        """Forgets all requests."""
        self._records.clear()

    def answer(
        self, method: str, target: str, headers: dict[str, str], raw: bytes
    ) -> tuple[HttpAnswer, RecordedRequest]:
        """Answers one HTTP request, and records it unless it asks for the records."""
        parts = urlsplit(target)
        path = unquote(parts.path)
        if path in OWN_PATHS:
            return self._own(method, path, parse_qs(parts.query)), RecordedRequest(method, path, headers, b"")
        record = self._records.add(method, path, headers, raw)
        answer = self._openai(method, path, record)
        record.status = answer.status
        return answer, record

    def _openai(self, method: str, path: str, record: RecordedRequest) -> HttpAnswer:
        if method == "POST" and path == CHAT:
            return chat_answer(record, self.limits)
        if method == "POST" and path == "/v1/embeddings":
            return embeddings_answer(record)
        if method == "GET" and path == "/v1/models":
            return models_answer(record, self.limits)
        if method == "GET" and path.startswith("/v1/models/"):
            return models_answer(record, self.limits, path.removeprefix("/v1/models/"))
        return refuse(record, Refusal(f"Invalid URL ({method} {path})", status=404))

    def _own(self, method: str, path: str, query: dict[str, list[str]]) -> HttpAnswer:
        if path == "/":
            return json_answer(GREETING)
        if path == "/_refusals":
            return json_answer([one.to_json() for one in self.refusals])
        if method == "DELETE":
            self.clear()
            return json_answer({})
        containing, of_path = query.get("containing", [None])[0], query.get("path", [CHAT])[0]
        return json_answer([one.to_json() for one in self.requests(containing, of_path)])

    def pause(self, seconds: float) -> bool:
        """Waits, but not after the model is closed; False if it is closed."""
        return not self._closing.wait(seconds) if seconds else not self._closing.is_set()


class _Server(ThreadingHTTPServer):
    """Remembers the open connections, so that closing the model ends them."""

    daemon_threads = True
    request_queue_size = 512

    def __init__(self, address: tuple[str, int], model: ScriptedModel) -> None:
        self.model = model
        self._open: set[socket.socket] = set()
        self._changed = threading.Condition()
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        # HTTPServer.server_bind resolves the host's name, which may take seconds.
        socketserver.TCPServer.server_bind(self)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._changed:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        with self._changed:
            self._open.discard(request)
            self._changed.notify_all()

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    def end_connections(self, seconds: float) -> None:
        """Shuts the open connections down and waits for their threads."""
        with self._changed:
            for one in self._open:
                with suppress(OSError):  # the client has closed it already
                    one.shutdown(socket.SHUT_RDWR)
            self._changed.wait_for(lambda: not self._open, seconds)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._answer()

    do_POST = do_DELETE = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing: the requests are recorded."""

    def _answer(self) -> None:
        model = cast(_Server, self.server).model
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        answer, record = model.answer(self.command, self.path, dict(self.headers.items()), raw)
        if not model.pause(answer.delay):
            self.close_connection = True
            return
        try:
            self._send(answer, record, model.pause)
        except OSError:
            self.close_connection = True

    def _send(self, answer: HttpAnswer, record: RecordedRequest, pause: Callable[[float], bool]) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("x-request-id", f"req_{record.number}")
        if answer.status >= 400:
            # A retry would get the same dictated error, so OpenAI's clients should not try.
            self.send_header("x-should-retry", "false")
        if answer.streamed:
            self.send_header("Cache-Control", "no-store")
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Length", str(sum(map(len, answer.parts))))
        self.end_headers()
        for part in _framed(answer):
            self.wfile.write(part)
            if answer.slow and not pause(answer.slow):
                break
        else:
            record.delivered = not answer.cut
        self.close_connection = not record.delivered


def _framed(answer: HttpAnswer) -> Iterator[bytes]:
    """Yields the bytes after the head. A cut answer stops in the middle, without the end of its framing."""
    parts = answer.parts
    if not answer.streamed:
        whole = b"".join(parts)
        yield whole[: len(whole) // 2] if answer.cut else whole
        return
    for part in parts[: len(parts) // 2] if answer.cut else parts:
        yield b"%x\r\n%s\r\n" % (len(part), part)
    if not answer.cut:
        yield b"0\r\n\r\n"
