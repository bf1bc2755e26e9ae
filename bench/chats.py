"""Measures chats with contexts of their own: a turn whose chat goes on, and one after a turn of another chat."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median

from bench.client_requests import Json
from bench.processes import MockProcess, bridge, bridge_port, mock, url
from bench.samples import BRIDGE, Samples
from bench.tools import Client, timed

CHATS = 4
TURNS = 40


class ChatClient(Client):
    """A client that goes on with its transcript."""

    def go_on(self) -> None:
        self.messages = [*self.messages, {"role": "user", "content": f"Turn {time.monotonic_ns()}.\n!bench say 1"}]
        answer = self._ask([])
        said: Json = {"role": "assistant", "content": f"{answer['content']}"}
        self.messages = [*self.messages, said]


def measure(samples: Samples, folder: Path) -> None:
    for mode in ("one", "each", "each+main"):
        with mock(folder) as letta:
            letta.control(agents=["chats"])
            with bridge(url(letta.port), folder, WEB_CONCURRENCY="1", BRIDGE_CHATS=mode) as service:
                port = bridge_port(service)
                for chats, words in ((1, "the same chat"), (CHATS, "another chat each time")):
                    figures = _figures(letta, [ChatClient(port, "chats") for _ in range(chats)])
                    samples.add(f"chats: {mode}, {words}", BRIDGE, figures)


def _figures(letta: MockProcess, clients: list[ChatClient]) -> dict[str, float]:
    for client in clients * 2:
        client.go_on()
    found = [timed(letta, clients[turn % len(clients)].go_on) for turn in range(TURNS)]
    return {
        "calls": max(calls for calls, _ in found),
        "ms": median(seconds for _, seconds in found) * 1000,
    }
