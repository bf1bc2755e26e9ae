"""A small stand-in for Letta over HTTP, with one agent, Ada, that says its words one by one.

It serves tests that run the whole service as a process. Tests of Letta's behaviour use real servers.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self, cast

AGENT_ID = "agent-00000000-0000-4000-8000-000000000001"
NOTHING = object()
AGENT = {"id": AGENT_ID, "name": "Ada", "agent_type": "letta_v1_agent", "created_at": "2026-01-01T00:00:00Z"}


class LettaServerStub(ThreadingHTTPServer):
    """Says `words` with `pause` seconds before each. `asked` lists the requests.

    `refusal` (status, words) is the answer to every message. `redirect` (verb, status, address) redirects every call of
    that verb. `answer` replaces the JSON of every answer but a stream. `cancels` counts the calls that cancel runs,
    which end all streams.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, words: Sequence[str] = ("Hello",), pause: float = 0.0) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.words = words
        self.pause = pause
        self.refusal: tuple[int, str] | None = None
        self.redirect: tuple[str, int, str] | None = None
        self.answer: Any = NOTHING
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        self.cancels = 0
        self.over = threading.Event()
        self._thread = threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.over.set()
        self.shutdown()
        self._thread.join()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores clients that have closed their connection."""


class _Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    @property
    def letta(self) -> LettaServerStub:
        return cast(LettaServerStub, self.server)

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing."""

    def do_GET(self) -> None:
        self._note()
        path, _, _ = self.path.partition("?")
        if path == "/v1/agents/":
            self._send([AGENT])
        elif path == f"/v1/agents/{AGENT_ID}":
            self._send(AGENT)
        elif path == "/v1/health/":
            self._send({"version": "0.16.1", "status": "ok"})
        else:
            self._send({} if path == "/openapi.json" else [])

    def do_PATCH(self) -> None:
        self._note()
        self._send(AGENT)

    def do_POST(self) -> None:
        self._note()
        if self.letta.refusal is not None:
            status, words = self.letta.refusal
            self._send({"detail": words}, status)
        elif self.path.endswith("/messages/cancel"):
            self.letta.cancels += 1
            self._send({})
        elif self.path.endswith("/messages/stream") and self.letta.redirect is None:
            self._stream()
        else:
            self._send({})

    def _note(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.letta.asked.append((self.command, self.path, dict(self.headers)))

    def _send(self, value: Any, status: int = 200) -> None:
        redirect = self.letta.redirect
        if redirect is not None and self.command == redirect[0]:
            status = redirect[1]
        body = json.dumps(value if self.letta.answer is NOTHING else self.letta.answer).encode()
        self.send_response(status)
        if redirect is not None:
            self.send_header("Location", redirect[2])
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        cancels = self.letta.cancels
        for number, word in enumerate(self.letta.words):
            if self._is_ended_in(self.letta.pause, cancels):
                return
            self._event({"message_type": "assistant_message", "id": f"message-{number}", "content": word})
        self._event({"message_type": "stop_reason", "stop_reason": "end_turn"})
        self.wfile.write(b"data: [DONE]\n\n")

    def _is_ended_in(self, pause: float, cancels: int) -> bool:
        """Waits for `pause` seconds. Returns whether the server ends or the run was cancelled meanwhile."""
        until = time.monotonic() + pause
        while self.letta.cancels == cancels and (left := until - time.monotonic()) > 0:
            if self.letta.over.wait(min(left, 0.1)):
                return True
        return self.letta.cancels != cancels or self.letta.over.is_set()

    def _event(self, value: Any) -> None:
        self.wfile.write(f"data: {json.dumps(value)}\n\n".encode())
        self.wfile.flush()
