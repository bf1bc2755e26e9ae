"""Journals of several workers in one store, and an agent that runs their turns."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bridge.errors import UnknownModel
from bridge.journal import follower as following
from bridge.journal import recording
from bridge.journal.journal import Attempt, Identity, Journal
from bridge.journal.stream import TurnStream, run_in_thread
from bridge.store.port import Store
from bridge.turn import AgentEvent, MethodChosen, Stopped, Text, Used
from tests.stores import KINDS, shared_store
from tests.waiting import SOON

KEEP = 60.0
SAME = Identity("turn-a", "body-a")
ANSWER: list[AgentEvent] = [MethodChosen("native"), Text("Hel"), Text("lo"), Used(10, 2), Stopped("end_turn")]


@pytest.fixture(params=KINDS)
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Store]]:
    with shared_store(request.param, tmp_path) as open_one:
        yield open_one


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Signs of life come often, and on a busy machine none is missed."""
    monkeypatch.setattr(recording, "PULSE", 0.05)
    monkeypatch.setattr(following, "PULSE", 0.05)
    monkeypatch.setattr(recording, "ALIVE", KEEP)
    monkeypatch.setattr(following, "ALIVE", KEEP)
    monkeypatch.setattr(following, "FOLLOWED", KEEP)
    monkeypatch.setattr(following, "LOOK", 0.02)


@pytest.fixture
def short_lives(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that is silent for a moment is taken for dead."""
    monkeypatch.setattr(recording, "ALIVE", 0.5)
    monkeypatch.setattr(following, "ALIVE", 0.5)


class Agent:
    """What runs a turn: counts the runs, and waits in the middle when it is told to."""

    def __init__(self) -> None:
        self.runs: list[tuple[str, bool]] = []
        self.fails_with: list[Exception] = []
        self.answers: list[list[AgentEvent]] = []
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.go_on.set()

    def run(self, turn_id: str, repeated: bool, gone: threading.Event) -> Iterator[AgentEvent]:
        self.runs.append((turn_id, repeated))
        failure = self.fails_with.pop(0) if self.fails_with else None
        answer = self.answers.pop(0) if self.answers else ANSWER
        if isinstance(failure, UnknownModel):
            raise failure
        for number, event in enumerate(answer):
            if number == 2:
                self.begun.set()
                assert self.go_on.wait(SOON)
                if failure is not None:
                    raise failure
            yield event


@pytest.fixture
def agent() -> Agent:
    return Agent()


def ask(worker: Journal, agent: Agent, identity: Identity = SAME) -> tuple[Attempt, TurnStream]:
    attempt = worker.attempt(identity, agent.run)
    return attempt, run_in_thread(attempt.events)


def read(feed: TurnStream) -> list[AgentEvent]:
    return [event for event in feed.read(SOON) if event is not None]
