"""A container may have no thread left for a moment. Each part that needs one starts it later."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from bridge.dialects.base import RequestRules
from bridge.dialects.chat_completions.dialect import ChatCompletions
from bridge.history.activity import Activity
from bridge.history.recorder import Recorder
from bridge.locks.leases import LeaseLocker
from bridge.operation.background import BackgroundWork
from bridge.operation.probe import Probe
from bridge.operation.snapshots import FRESH, Snapshots
from bridge.store.heartbeat import Heartbeat
from bridge.store.redis import RedisServer
from bridge.store.sqlite import LocalStore
from bridge.turn import NewInput, Turn
from bridge.web.health import Readiness
from testbed.redis import Redis
from tests.clock import Clock
from tests.fakes import FakeGateway
from tests.waiting import SOON, until

pytestmark = pytest.mark.fault("no thread left for a moment")

FailNextStart = Callable[[], None]


@pytest.fixture
def fail_next_start(monkeypatch: pytest.MonkeyPatch) -> FailNextStart:
    """Makes the start of the next thread fail."""
    start = threading.Thread.start

    def refused(thread: threading.Thread) -> None:
        monkeypatch.setattr(threading.Thread, "start", start)
        raise RuntimeError("can't start new thread")

    return lambda: monkeypatch.setattr(threading.Thread, "start", refused)


def threads_named(name: str) -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == name}


def test_readiness_is_reported_again(fail_next_start: FailNextStart) -> None:
    readiness = Readiness({"letta": Probe("letta", lambda: None)}, longest=SOON)
    fail_next_start()
    with pytest.raises(RuntimeError):
        readiness.find()
    assert readiness.find()["letta"].state == "ok"


def test_the_admin_page_is_refreshed_again(tmp_path: Path, fail_next_start: FailNextStart) -> None:
    clock, letta = Clock(1_700_000_000.0), FakeGateway()
    snapshots = Snapshots(letta, LocalStore(tmp_path / "store"), clock)
    snapshots.view()
    clock.now += FRESH + 1
    fail_next_start()
    with pytest.raises(RuntimeError):
        snapshots.view()
    snapshots.view()
    until(lambda: letta.calls.count("tools") == 2)


def test_a_heartbeat_is_started_again(tmp_path: Path, fail_next_start: FailNextStart) -> None:
    heartbeat, before = Heartbeat(LocalStore(tmp_path / "store")), threads_named("heartbeat")
    fail_next_start()
    with pytest.raises(RuntimeError):
        _ = heartbeat.id
    assert heartbeat.id
    assert len(threads_named("heartbeat") - before) == 1


def test_turns_are_recorded_and_no_request_fails(tmp_path: Path, fail_next_start: FailNextStart) -> None:
    store = LocalStore(tmp_path / "store")
    recorder = Recorder(activity := Activity(store), Heartbeat(store))
    fail_next_start()
    record = recorder.begin(Turn("Ada", NewInput(())), ChatCompletions(RequestRules()))
    recorder.end(record, None, gone=False)
    recorder.start()
    recorder.stop()
    assert [turn.outcome for turn in activity.newest_turns()] == ["stop"]


def test_a_sweep_is_put_off(fail_next_start: FailNextStart, caplog: pytest.LogCaptureFixture) -> None:
    swept = threading.Event()
    sweeps = BackgroundWork("sweep", lambda: True, swept.set)
    fail_next_start()
    sweeps.start_if_due()
    assert "a sweep is put off: can't start new thread" in caplog.text
    sweeps.start_if_due()
    assert swept.wait(SOON)


@pytest.mark.servers
def test_leases_are_renewed_but_not_one_that_was_never_given(fail_next_start: FailNextStart) -> None:
    with Redis() as redis:
        locker, before = LeaseLocker(RedisServer(redis.url)), threads_named("leases")
        fail_next_start()
        with pytest.raises(RuntimeError):
            locker.take_lock("agent-1", lambda: False)
        assert locker.take_lock("agent-1", lambda: False) is not None
        assert len(threads_named("leases") - before) == 1
        assert len(locker._leases) == 1
