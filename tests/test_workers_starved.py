"""For a while the system lacks what workers need: file descriptors, or a disk that can be written."""

from __future__ import annotations

import hashlib
import os
import resource
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from testbed.service import Service
from tests.letta_server import LettaServerStub
from tests.services import BODY, PROMPT, environment
from tests.waiting import SOON, until

pytestmark = pytest.mark.servers

KEYED = {"BRIDGE_API_KEYS": f"roo:{hashlib.sha256(b'key-of-roo').hexdigest()}::rate=10000"}


@pytest.fixture
def bridge(tmp_path: Path) -> Iterator[Service]:
    """A service with one worker, which has more threads than the tests have clients at once."""
    with LettaServerStub(["word "] * 3, pause=0.05) as letta:
        settings = environment(letta.url, tmp_path, WEB_CONCURRENCY="1", **KEYED)
        with Service(settings, tmp_path / "log", {**PROMPT, "least_threads": 8}) as service:
            yield service


def ask(bridge: Service) -> tuple[int, str]:
    """Returns the status and the body; status 0 when there was no answer."""
    headers = {"Authorization": "Bearer key-of-roo", "Connection": "close"}
    try:
        answer = requests.post(f"{bridge.url}/v1/chat/completions", json=BODY, timeout=SOON, headers=headers)
    except requests.RequestException:
        return 0, ""
    return answer.status_code, answer.text


def is_whole(answer: tuple[int, str]) -> bool:
    return answer[0] == 200 and answer[1].count("word ") == 3 and answer[1].endswith("data: [DONE]\n\n")


def is_honest(answer: tuple[int, str]) -> bool:
    return is_whole(answer) or ("[DONE]" not in answer[1] and answer[0] in (0, 200, 500, 502, 503))


@contextmanager
def limited(pid: int, what: int, soft: int) -> Iterator[None]:
    before = resource.prlimit(pid, what)
    resource.prlimit(pid, what, (soft, before[1]))
    yield
    resource.prlimit(pid, what, before)


@pytest.mark.fault("too few file descriptors")
@pytest.mark.parametrize("left", [0, 1, 2, 3, 5, 8])
def test_a_worker_with_too_few_file_descriptors_serves_some_clients_and_later_all(bridge: Service, left: int) -> None:
    assert is_whole(ask(bridge))
    (worker,) = bridge.workers
    used = max(int(name) for name in os.listdir(f"/proc/{worker}/fd")) + 1
    with limited(worker, resource.RLIMIT_NOFILE, used + left):
        with ThreadPoolExecutor(12) as pool:
            answers = list(pool.map(lambda _: ask(bridge), range(12)))
        assert all(map(is_honest, answers)), answers
    until(lambda: is_whole(ask(bridge)))
    assert bridge.workers == [worker]


@pytest.mark.fault("the disk is full or can't be written")
def test_on_a_full_disk_turns_are_refused_and_no_worker_ends(bridge: Service) -> None:
    assert is_whole(ask(bridge))
    (worker,) = bridge.workers
    with limited(worker, resource.RLIMIT_FSIZE, 0):
        for _ in range(3):
            refused = ask(bridge)
            assert refused[0] == 503
            assert '"store_unavailable"' in refused[1]
        until(lambda: requests.get(f"{bridge.url}/readyz", timeout=SOON).status_code == 503)
        assert requests.get(f"{bridge.url}/healthz", timeout=SOON).ok
    assert is_whole(ask(bridge))
    until(lambda: requests.get(f"{bridge.url}/readyz", timeout=SOON).status_code == 200)
    assert bridge.workers == [worker]
