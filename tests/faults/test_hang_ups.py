"""Many clients that hang up at every moment of their request leave nothing behind."""

from __future__ import annotations

import os
import socket
import struct
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests

from testbed.service import Service
from tests.faults.scale import scaled
from tests.faults.table import Cases
from tests.letta_server import AGENT_ID, LettaServerStub
from tests.services import PROMPT, environment, samples
from tests.waiting import SOON, until

pytestmark = [pytest.mark.servers, pytest.mark.strict, pytest.mark.fault("clients that hang up")]

CLIENTS = scaled(120, 10_000)
AT_ONCE = 6
# Chat Completions, and a message of Letta's own API, which is passed on.
CHAT = b"/v1/chat/completions"
LETTA = f"/letta/v1/agents/{AGENT_ID}/messages/stream".encode()
BODY = b'{"model":"Ada","stream":%s,"messages":[{"role":"user","content":"Number %d"}]}'
HEAD = b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
# How much of the request a client sends, and how many bytes of the answer it reads, before it hangs up.
MOMENTS = (("head", 0), ("body", 0), ("all", 0), ("all", 1), ("all", 600), ("all", 1200))
RESET = struct.pack("ii", 1, 0)


@pytest.fixture
def bridge(tmp_path: Path) -> Iterator[Service]:
    with LettaServerStub(["word "] * 20, pause=0.002) as letta:
        settings = environment(letta.url, tmp_path, WEB_CONCURRENCY="1", BRIDGE_LETTA_API="all")
        with Service(settings, tmp_path / "log", {**PROMPT, "read_timeout": 2.0}) as service:
            yield service


@pytest.mark.timeout(1800)
def test_clients_that_hang_up_leave_nothing_behind(bridge: Service, cases: Cases) -> None:
    hang_up(bridge, 3 * AT_ONCE)
    until(lambda: at_rest(bridge))
    files, threads = state(bridge)
    hang_up(bridge, CLIENTS)
    until(lambda: at_rest(bridge))
    until(lambda: state(bridge)[0] <= files + AT_ONCE)
    until(lambda: state(bridge)[1] <= threads + AT_ONCE)
    cases.figure("open files before and after", f"{files}, {state(bridge)[0]}")
    cases.figure("threads before and after", f"{threads}, {state(bridge)[1]}")
    whole = {"model": "Ada", "messages": [{"role": "user", "content": "Anybody there?"}]}
    answer = requests.post(f"{bridge.url}/v1/chat/completions", json=whole, timeout=SOON)
    assert answer.json()["choices"][0]["message"]["content"].count("word") == 20
    cases.passed(CLIENTS)


def hang_up(bridge: Service, count: int) -> None:
    place = urlsplit(bridge.url)
    numbers = iter(range(count))
    guard = threading.Lock()

    def clients() -> None:
        while True:
            with guard:
                number = next(numbers, None)
            if number is None:
                return
            one(str(place.hostname), int(place.port or 0), number)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        for done in [pool.submit(clients) for _ in range(AT_ONCE)]:
            done.result()


def one(host: str, port: int, number: int) -> None:
    sent, read = next(islice(cycle(MOMENTS), number % len(MOMENTS), None))
    body = BODY % (b"true" if number % 4 else b"false", number)
    head = HEAD % (LETTA if number % 5 == 0 else CHAT, len(body))
    with socket.create_connection((host, port), timeout=SOON) as connection:
        connection.sendall({"head": head[:40], "body": head + body[:20], "all": head + body}[sent])
        got = 0
        while got < read and (piece := connection.recv(read - got)):
            got += len(piece)
        if number % 2:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)


def at_rest(bridge: Service) -> bool:
    return samples(bridge, "bridge_streams_open") == 0


def state(bridge: Service) -> tuple[int, int]:
    """Counts the open files and the threads of the worker."""
    (worker,) = bridge.workers
    return len(os.listdir(f"/proc/{worker}/fd")), len(os.listdir(f"/proc/{worker}/task"))
