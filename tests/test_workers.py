"""Several workers count correctly, also when one of them is killed. The service runs as its Procfile says."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from testbed.proxy import FaultProxy
from testbed.service import Service
from tests.background_request import BackgroundRequest
from tests.letta_server import AGENT_ID, LettaServerStub
from tests.raw_server import WAIT, RawServer
from tests.services import BODY, PROMPT, environment, samples
from tests.waiting import SOON, until

pytestmark = pytest.mark.servers

# A stream begins only when Letta has said which agent has a name.
BY_ID = BODY | {"model": AGENT_ID}


@pytest.fixture
def letta() -> Iterator[RawServer]:
    """A server that reads every request and answers none."""
    with RawServer([WAIT]) as server:
        yield server


@pytest.fixture
def bridge(letta: RawServer, tmp_path: Path) -> Iterator[Service]:
    with Service(environment(letta.url, tmp_path), tmp_path / "log", PROMPT) as service:
        yield service


def ask_nowhere(bridge: Service, count: int) -> None:
    """Sends each request over a connection of its own, so that all workers get some."""
    for _ in range(count):
        assert requests.get(f"{bridge.url}/nowhere", timeout=SOON, headers={"Connection": "close"}).status_code == 404


@pytest.mark.fault("a worker is killed at a random moment")
def test_the_counters_of_a_killed_worker_stay_and_its_gauges_do_not(bridge: Service) -> None:
    before = samples(bridge, "bridge_errors_total")
    ask_nowhere(bridge, 20)
    assert samples(bridge, "bridge_errors_total") == before + 20
    streams = [
        requests.post(f"{bridge.url}/v1/chat/completions", json=BY_ID, stream=True, timeout=SOON) for _ in range(4)
    ]
    assert samples(bridge, "bridge_streams_open") == 4
    for worker in bridge.workers:
        os.kill(worker, signal.SIGKILL)
        until(lambda worker=worker: worker not in bridge.workers and len(bridge.workers) == 2)  # type: ignore[misc]
    for stream in streams:
        stream.close()
    assert samples(bridge, "bridge_streams_open") == 0
    assert samples(bridge, "bridge_errors_total") == before + 20
    ask_nowhere(bridge, 10)
    assert samples(bridge, "bridge_errors_total") == before + 30


def test_the_folder_with_the_counts_is_removed_when_the_service_ends(bridge: Service, tmp_path: Path) -> None:
    counts = list(tmp_path.glob("letta-tool-bridge-counts-*"))
    assert len(counts) == 1
    assert list(counts[0].glob("*.db"))
    bridge.stop()
    assert not counts[0].exists()


def test_the_gunicorn_settings_of_herokus_buildpack_change_nothing(letta: RawServer, tmp_path: Path) -> None:
    """It sets these two for every app: a second log of requests, and trust in the headers of any client."""
    buildpack = {"GUNICORN_CMD_ARGS": "--access-logfile -", "FORWARDED_ALLOW_IPS": "*"}
    with Service(environment(letta.url, tmp_path, DYNO="web.1", **buildpack), tmp_path / "log") as bridge:
        headers = {"X-Forwarded-For": "192.0.2.7", "X-Forwarded-Proto": "https"}
        answer = requests.get(f"{bridge.url}/nowhere", headers=headers, timeout=SOON)
    assert "Strict-Transport-Security" not in answer.headers
    lines = (tmp_path / "log").read_text().splitlines()
    assert [json.loads(line)["from"] for line in lines if "/nowhere" in line] == ["127.0.0.1"]


# --- the end of the service -------------------------------------------------------------------------------


def stop(bridge: Service) -> None:
    """Ends the service as a platform does."""
    os.kill(bridge.pid, signal.SIGTERM)
    assert bridge.wait(SOON) == 0


@pytest.mark.fault("SIGTERM while streams are open")
def test_streams_that_end_in_time_are_not_cut_by_the_end_of_the_service(tmp_path: Path) -> None:
    with (
        LettaServerStub([f"word{number} " for number in range(20)], pause=0.1) as letta,
        Service(environment(letta.url, tmp_path), tmp_path / "log", PROMPT) as bridge,
    ):
        readers = [BackgroundRequest(bridge.url, BODY) for _ in range(2)]
        assert any(reader.has_received() for reader in readers)
        stop(bridge)
        for reader in readers:
            reader.wait_for_end()
    whole = [reader for reader in readers if b"word19" in reader.body]
    assert whole
    assert all(reader.body.endswith(b"data: [DONE]\n\n") for reader in whole)


@pytest.mark.fault("SIGTERM while streams are open")
@pytest.mark.parametrize("streamed", [True, False])
def test_turns_that_would_outlast_the_service_end_as_failures(tmp_path: Path, streamed: bool) -> None:
    """A stream breaks off, as coding clients try again then. An unstreamed reply is an error."""
    with (
        LettaServerStub(["word "] * 10_000, pause=0.05) as letta,
        Service(environment(letta.url, tmp_path, BRIDGE_DRAIN="1"), tmp_path / "log", PROMPT) as bridge,
    ):
        reader = BackgroundRequest(bridge.url, BODY | {"stream": streamed})
        assert (
            reader.has_received()
            if streamed
            else until(lambda: any(path.endswith("stream") for _, path, _ in letta.asked))
        )
        stop(bridge)
        reader.wait_for_end()
    assert b"[DONE]" not in reader.body
    assert b'finish_reason":"' not in reader.body
    assert reader.broken if streamed else reader.status == 503
    assert "shutting_down" in (tmp_path / "log").read_text()


# --- what they know of Letta ------------------------------------------------------------------------------


def worker_says(bridge: Service, is_down: bool) -> bool:
    """Returns whether /readyz and the pages say the same. Each request may reach another worker."""

    def get(path: str) -> requests.Response:
        headers = {"Connection": "close"}
        return requests.get(f"{bridge.url}/{path}", headers=headers, auth=("", "canary-password"), timeout=SOON)

    ready, health, tools = get("readyz"), get("admin/health.json").json(), get("admin/tools.json").json()
    trouble = "nothing listens at that port"
    said = [trouble in str(part) for part in (ready.json(), health["letta"], tools)]
    return said == [is_down] * 3 and (ready.status_code == 503) == is_down


@pytest.mark.fault("Letta refuses connections, or has no address")
def test_every_worker_notices_soon_that_letta_is_down_or_back(tmp_path: Path) -> None:
    with LettaServerStub() as letta, FaultProxy(letta.url) as proxy:
        fields = environment(proxy.url, tmp_path, BRIDGE_ADMIN_PASSWORD="canary-password")
        with Service(fields, tmp_path / "log") as bridge:
            for is_down in (False, True, False):
                (proxy.down if is_down else proxy.up)()
                until(lambda is_down=is_down: all(worker_says(bridge, is_down) for _ in range(6)))  # type: ignore[misc]


def test_the_log_says_at_the_start_what_is_wrong_with_letta(tmp_path: Path) -> None:
    with Service(environment("http://127.0.0.1:9", tmp_path), tmp_path / "log") as bridge:
        lines = until(lambda: [line for line in (tmp_path / "log").read_text().splitlines() if "not ready" in line])
        assert len(bridge.workers) == 2
    assert len(lines) == 1
    assert "The Letta server at http://127.0.0.1:9 can't be reached: the connection was refused" in lines[0]


def test_https_to_the_http_port_ends_at_once_with_a_hint_in_the_log(bridge: Service, tmp_path: Path) -> None:
    with pytest.raises(requests.exceptions.SSLError):
        requests.get(bridge.url.replace("http://", "https://"), timeout=SOON)
    until(lambda: "a client speaks https to this http port" in (tmp_path / "log").read_text())
