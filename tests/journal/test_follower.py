"""A follower reads an attempt of another worker from the store, as long as that worker lives."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

import pytest

from bridge.journal import follower as module
from bridge.journal.batches import End, batch_to_text
from bridge.journal.claims import Claim
from bridge.journal.follower import Follower
from bridge.journal.recording import events_key, is_followed
from bridge.store import heartbeat
from bridge.store.heartbeat import Beat
from bridge.store.port import Store
from bridge.store.sqlite import LocalStore
from bridge.turn import AgentEvent, MethodChosen, Reasoning, Text, ToolCall
from tests.waiting import SOON, until

KEEP = 60.0
WELL = End("well")
CLAIM = Claim("turn-1", "body", "token-1", "0:another-machine:1:1")
EVENTS = events_key(CLAIM.token)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return LocalStore(tmp_path / "shared.db")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PULSE", 0.02)
    monkeypatch.setattr(module, "LOOK", 0.01)


@pytest.fixture
def gone() -> threading.Event:
    return threading.Event()


def beat(store: Store, number: int, *turns: str) -> None:
    """Lets the other worker give a sign of life."""
    said = Beat(CLAIM.worker, "another-machine", 1, 0.0, 0.0, number, turns)
    store.put(heartbeat._beat_key(CLAIM.worker), json.dumps(asdict(said)), KEEP)


class Followed:
    """A follower in a thread of its own, and the events that it has given."""

    def __init__(self, store: Store, gone: threading.Event, pool: ThreadPoolExecutor) -> None:
        self.events: list[AgentEvent] = []
        self.end: Future[End] = pool.submit(Follower(store, CLAIM).follow, self.events.append, gone)


Follow = Callable[[], Followed]


@pytest.fixture
def follow(store: Store, gone: threading.Event) -> Iterator[Follow]:
    with ThreadPoolExecutor() as pool:
        yield lambda: Followed(store, gone, pool)
        gone.set()


def test_an_attempt_that_is_over_is_read_at_once(store: Store, follow: Follow) -> None:
    store.append(EVENTS, batch_to_text([Text("a")], WELL), 10, KEEP)
    followed = follow()
    assert followed.end.result(SOON) == WELL
    assert followed.events == [Text("a")]


def test_events_are_given_as_they_come_once_the_worker_has_shown_life(store: Store, follow: Follow) -> None:
    beat(store, 1, CLAIM.token)
    store.append(EVENTS, batch_to_text([Text("a")]), 10, KEEP)
    followed = follow()
    until(lambda: is_followed(store, CLAIM.token))
    assert followed.events == []
    numbers = iter(range(2, 10_000))
    until(lambda: beat(store, next(numbers), CLAIM.token) or followed.events)
    store.append(EVENTS, batch_to_text([Text("b")], WELL, 1), 10, KEEP)
    assert followed.end.result(SOON) == WELL
    assert followed.events == [Text("a"), Text("b")]


def test_an_attempt_whose_worker_is_dead_is_lost(store: Store, follow: Follow) -> None:
    store.append(EVENTS, batch_to_text([Text("a")]), 10, KEEP)
    followed = follow()
    assert followed.end.result(SOON) == End("lost")
    assert followed.events == []


def test_an_attempt_that_its_worker_does_not_name_is_lost_after_a_while(
    store: Store, follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ALIVE", 0.2)
    beat(store, 1, "token-2")
    assert follow().end.result(SOON) == End("lost")


def test_a_follower_ends_when_its_client_has_gone(store: Store, follow: Follow, gone: threading.Event) -> None:
    beat(store, 1, CLAIM.token)
    followed = follow()
    gone.set()
    followed.end.result(SOON)
    assert followed.events == []


@pytest.mark.parametrize(
    ("event", "is_empty"), [(Text("a"), False), (ToolCall("c", "read", "{}"), False), (Reasoning("hm"), True)]
)
def test_an_answer_without_text_and_calls_is_empty(store: Store, event: AgentEvent, is_empty: bool) -> None:
    store.append(EVENTS, batch_to_text([MethodChosen("native"), event], WELL), 10, KEEP)
    follower = Follower(store, CLAIM)
    assert follower.read_end() == WELL
    assert follower.is_empty == is_empty
