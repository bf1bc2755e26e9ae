"""A Letta server without a socket: a test sets its answers to reads and changes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import httpx
import requests
import responses

Answer = httpx.Response | Exception | Callable[[httpx.Request], httpx.Response]

HEALTH = ("GET", "/v1/health/")
OPENAPI = ("GET", "/openapi.json")


class LettaHttp:
    """Answers each call with what `on` set for it, and repeats the last of several answers.

    Reads are caught within the block (`requests`), changes by `transport` (httpx). `requests` lists all of them.
    """

    def __init__(self, version: str = "0.16.1") -> None:
        self.requests: list[httpx.Request] = []
        self.transport = httpx.MockTransport(self._answer)
        self._answers: dict[tuple[str, str], list[Answer]] = {}
        self._reads = responses.RequestsMock(assert_all_requests_are_fired=False)
        self._reads.add_callback("GET", re.compile(""), self._read, content_type=None)
        self.on(*HEALTH, {"version": version, "status": "ok"})
        self.on(*OPENAPI, {})

    def __enter__(self) -> Self:
        self._reads.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._reads.stop()

    def on(self, method: str, path: str, *answers: Any) -> None:
        """Each answer is a value to send as JSON, a whole response, an exception to raise, or a function."""
        self._answers[method, path] = [
            answer
            if isinstance(answer, httpx.Response | Exception) or callable(answer)
            else httpx.Response(200, json=answer)
            for answer in answers
        ]

    def _read(self, request: requests.PreparedRequest) -> tuple[int, dict[str, str], bytes]:
        answer = self._answer(httpx.Request("GET", str(request.url), headers=dict(request.headers)))
        return answer.status_code, dict(answer.headers), answer.content

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answers = self._answers.get((request.method, request.url.path))
        if answers is None:
            return httpx.Response(404, json={"detail": "Not Found"})
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, httpx.Response) else answer(request)

    @property
    def calls(self) -> list[str]:
        return [f"{request.method} {request.url.path}" for request in self.requests]

    @property
    def queries(self) -> list[dict[str, list[str]]]:
        return [
            {name: request.url.params.get_list(name) for name in request.url.params.keys()}  # noqa: SIM118
            for request in self.requests
        ]

    @property
    def bodies(self) -> list[Any]:
        return [json.loads(request.content) if request.content else None for request in self.requests]
