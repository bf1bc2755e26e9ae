"""The control calls of a Letta server, as far as a test lays them down: over httpx, without a socket."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx

Answer = httpx.Response | Exception | Callable[[httpx.Request], httpx.Response]

HEALTH = ("GET", "/v1/health/")
OPENAPI = ("GET", "/openapi.json")


class LettaHttp(httpx.BaseTransport):
    """Answers a call with what `on` laid down for it, the last answer again and again. `calls` lists what came."""

    def __init__(self, version: str = "0.16.1") -> None:
        self.requests: list[httpx.Request] = []
        self._answers: dict[tuple[str, str], list[Answer]] = {}
        self.on(*HEALTH, {"version": version, "status": "ok"})
        self.on(*OPENAPI, {})

    def on(self, method: str, path: str, *answers: Any) -> None:
        """Each answer is a value to send as JSON, a whole response, an exception to raise, or a function."""
        self._answers[method, path] = [
            answer
            if isinstance(answer, httpx.Response | Exception) or callable(answer)
            else httpx.Response(200, json=answer)
            for answer in answers
        ]

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.read()
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
