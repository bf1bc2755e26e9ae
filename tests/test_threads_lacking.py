"""A container may have no thread left for a moment: what could not begin one then begins it later."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from bridge.history.activity import Activity
from bridge.history.recorder import Recorder
from bridge.journal.recording import Worker
from bridge.locks.leases import LeaseLocker
from bridge.operation.background import Background
from bridge.operation.snapshots import FRESH, Snapshots
from bridge.store.redis import RedisServer
from bridge.store.sqlite import LocalStore
from bridge.turn import Text, Turn
from bridge.web.health import Readiness
from testbed.redis import Redis
from tests.clock import Clock
from tests.fakes import FakeGateway
from tests.waiting import SOON, until

pytestmark = pytest.mark.fault("no thread left for a moment")

Lack = Callable[[], None]


@pytest.fixture
def lack(monkeypatch: pytest.MonkeyPatch) -> Lack:
    """The next thread can't be started."""
    start = threading.Thread.start

    def refused(thread: threading.Thread) -> None:
        monkeypatch.setattr(threading.Thread, "start", start)
        raise RuntimeError("can't start new thread")

    return lambda: monkeypatch.setattr(threading.Thread, "start", refused)


def begun(name: str) -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == name}


def test_readiness_is_told_again(lack: Lack) -> None:
    readiness = Readiness({"letta": lambda: None}, longest=SOON)
    lack()
    with pytest.raises(RuntimeError):
        readiness.states()
    assert readiness.states() == {"letta": "ok"}


def test_the_admin_page_is_told_again_what_stands_on_the_server(tmp_path: Path, lack: Lack) -> None:
    clock, letta = Clock(1_700_000_000.0), FakeGateway()
    snapshots = Snapshots(letta, LocalStore(tmp_path / "store"), clock)
    snapshots.view()
    clock.now += FRESH + 1
    lack()
    with pytest.raises(RuntimeError):
        snapshots.view()
    snapshots.view()
    until(lambda: letta.calls.count("tools") == 2)


def test_a_worker_gives_signs_of_life(tmp_path: Path, lack: Lack) -> None:
    worker, before = Worker(LocalStore(tmp_path / "store"), 60), begun("pulse")
    lack()
    with pytest.raises(RuntimeError):
        _ = worker.id
    assert worker.id
    assert len(begun("pulse") - before) == 1


def test_turns_are_written_down_and_no_request_fails_by_it(tmp_path: Path, lack: Lack) -> None:
    recorder = Recorder(activity := Activity(LocalStore(tmp_path / "store")))
    lack()
    assert list(recorder.watch(Turn("Ada", ()), [Text("Hi")])) == [Text("Hi")]
    recorder.start()
    recorder.stop()
    assert [turn.outcome for turn in activity.turns()] == ["answer"]


def test_a_sweep_is_put_off(lack: Lack, caplog: pytest.LogCaptureFixture) -> None:
    swept = threading.Event()
    sweeps = Background("sweep", lambda: True, swept.set)
    lack()
    sweeps.start_if_due()
    assert "a sweep is put off: can't start new thread" in caplog.text
    sweeps.start_if_due()
    assert swept.wait(SOON)


@pytest.mark.servers
def test_leases_are_renewed_and_one_that_nobody_got_is_not(lack: Lack) -> None:
    with Redis() as redis:
        locker, before = LeaseLocker(RedisServer(redis.url)), begun("leases")
        lack()
        with pytest.raises(RuntimeError):
            locker.take("agent-1", lambda: False)
        assert locker.take("agent-1", lambda: False) is not None
        assert len(begun("leases") - before) == 1
        assert len(locker._held) == 1
