"""A small HTTP server behind the fault proxy, for the tests of the proxy."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

EVENTS = [f'data: {{"n": {number}, "text": "é"}}\n\n'.encode() for number in range(4)] + [b"data: [DONE]\n\n"]


class Target(ThreadingHTTPServer):
    """A server with answers that are easy to check. /steps sends its next event when `go_on` is released."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.asked: list[tuple[str, str, str, bytes]] = []
        self.left = threading.Event()
        self.go_on = threading.Semaphore(0)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


@contextmanager
def started_target() -> Iterator[Target]:
    """Serves until the end of the block."""
    with Target() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.go_on.release(1000)
            server.shutdown()
            thread.join()


class _Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing."""

    def do_GET(self) -> None:
        target = cast(Target, self.server)
        body = self._body()
        target.asked.append((self.command, self.path, self.headers.get("Host", ""), body))
        {
            "/stream": self._stream,
            "/steps": self._steps,
            "/old": self._until_closed,
            "/empty": self._empty,
            "/last": self._last,
            "/redirect": self._redirect,
        }.get(self.path.partition("?")[0], self._echo)(body)

    do_POST = do_PATCH = do_PUT = do_DELETE = do_HEAD = do_GET

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _whole(self, body: bytes, **headers: str) -> None:
        self.send_response(200)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _echo(self, body: bytes) -> None:
        self._whole(json.dumps({"path": self.path, "body": body.decode()}).encode())

    def _empty(self, body: bytes) -> None:
        self.send_response(204)
        self.end_headers()

    def _last(self, body: bytes) -> None:
        self._whole(b"bye", Connection="close")

    def _redirect(self, body: bytes) -> None:
        self.send_response(307)
        self.send_header("Location", f"http://{self.headers['Host']}/landed")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _until_closed(self, body: bytes) -> None:
        self.close_connection = True
        self.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n")
        self.wfile.write(b"old style")

    def _stream(self, body: bytes) -> None:
        self._events(lambda: None)

    def _steps(self, body: bytes) -> None:
        self._events(cast(Target, self.server).go_on.acquire)

    def _events(self, wait: Any) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for event in EVENTS:
                wait()
                self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True
            cast(Target, self.server).left.set()
