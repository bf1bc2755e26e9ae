"""The server's state is read rarely, and not shown once it is too old."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from bridge.errors import LettaUnreachable, StoreUnavailable
from bridge.operation.snapshots import FRESH, STALE, Snapshots, View
from bridge.store.sqlite import LocalStore
from tests.clock import Clock
from tests.fakes import FakeGateway
from tests.waiting import SOON

ONCE = ["features", "tools", "whole_agents"]


@pytest.fixture
def clock() -> Clock:
    return Clock(1_700_000_000.0)


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "store")


@pytest.fixture
def snapshots(letta: FakeGateway, store: LocalStore, clock: Clock) -> Snapshots:
    return Snapshots(letta, store, clock)


def wait_for_background() -> None:
    for thread in threading.enumerate():
        if thread.name == "snapshot":
            thread.join(SOON)


def test_a_fresh_snapshot_is_shown(snapshots: Snapshots, letta: FakeGateway, clock: Clock) -> None:
    first = snapshots.view()
    clock.now += FRESH - 1
    assert snapshots.view() == first
    assert letta.calls == ONCE


def test_an_older_snapshot_is_shown_while_a_new_one_is_made(
    snapshots: Snapshots, letta: FakeGateway, clock: Clock
) -> None:
    first = snapshots.view()
    clock.now += FRESH + 1
    assert snapshots.view() == first
    wait_for_background()
    assert letta.calls == ONCE * 2
    second = snapshots.view().snapshot
    assert second is not None
    assert second.at == clock.now


def test_a_snapshot_that_is_too_old_is_not_shown(snapshots: Snapshots, letta: FakeGateway, clock: Clock) -> None:
    snapshots.view()
    clock.now += STALE + 1
    letta.has_agent("Charles")
    seen = snapshots.view().snapshot
    assert seen is not None
    assert [agent.name for agent in seen.agents] == ["Ada", "Charles"]


def test_changes_by_another_worker_are_shown_at_once(
    snapshots: Snapshots, letta: FakeGateway, store: LocalStore, clock: Clock
) -> None:
    snapshots.view()
    letta.has_agent("Charles")
    Snapshots(letta, store, clock).outdate()
    seen = snapshots.view().snapshot
    assert seen is not None
    assert len(seen.agents) == 2


def test_without_letta_the_last_snapshot_and_the_failure_are_shown(
    snapshots: Snapshots, letta: FakeGateway, clock: Clock
) -> None:
    down = LettaUnreachable("It is down.")
    letta.fails(down, at="tools")
    assert snapshots.view().snapshot is None
    assert snapshots.view().failure is down
    letta.recovers()
    last = snapshots.view().snapshot
    letta.fails(down, at="tools")
    clock.now += STALE + 1
    view = snapshots.view()
    assert (view.snapshot, view.failure) == (last, down)


def test_a_failure_in_the_background_is_shown_with_the_old_snapshot(
    snapshots: Snapshots, letta: FakeGateway, clock: Clock
) -> None:
    first = snapshots.view()
    down = LettaUnreachable("It is down.")
    letta.fails(down, at="tools")
    clock.now += FRESH + 1
    assert snapshots.view() == first
    wait_for_background()
    assert snapshots.view() == View(first.snapshot, down)
    letta.recovers()
    wait_for_background()
    clock.now += FRESH + 1
    snapshots.view()
    wait_for_background()
    assert snapshots.view().failure is None


def test_snapshots_have_the_same_version_until_something_is_different(
    snapshots: Snapshots, letta: FakeGateway, store: LocalStore, clock: Clock
) -> None:
    def version(one: Snapshots) -> str:
        clock.now += STALE + 1
        seen = one.view().snapshot
        assert seen is not None
        return seen.version

    first = version(snapshots)
    assert version(snapshots) == version(Snapshots(letta, store, clock)) == first
    letta.has_agent("Charles")
    assert version(snapshots) != first


def test_it_works_without_a_store(snapshots: Snapshots, letta: FakeGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise StoreUnavailable("The disk is full.")

    monkeypatch.setattr(LocalStore, "get", broken)
    monkeypatch.setattr(LocalStore, "add_to_counter", broken)
    snapshots.view()
    snapshots.outdate()
    snapshots.view()
    assert letta.calls == ONCE * 2
