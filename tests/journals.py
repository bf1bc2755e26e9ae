"""Journals of several workers in one store, and an agent that runs their turns."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bridge.errors import UnknownModel
from bridge.journal import follower
from bridge.journal.claims import Identity
from bridge.store import heartbeat
from bridge.store.heartbeat import Heartbeat
from bridge.store.port import Store
from bridge.turn import AgentEvent, MethodChosen, Stopped, Text, Used
from bridge.turns.live import LiveTurn
from bridge.turns.part import Journal, Part
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
    """Heartbeats come often, and no process is taken for dead on a busy machine."""
    for module in (heartbeat, follower):
        monkeypatch.setattr(module, "PULSE", 0.05)
        monkeypatch.setattr(module, "ALIVE", KEEP)
    monkeypatch.setattr(heartbeat, "IDLE_PULSE", 0.05)
    monkeypatch.setattr(follower, "FOLLOWED", KEEP)
    monkeypatch.setattr(follower, "LOOK", 0.02)


@pytest.fixture
def short_lives(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is silent for a moment is taken for dead."""
    for module in (heartbeat, follower):
        monkeypatch.setattr(module, "ALIVE", 0.5)


class Agent:
    """Runs turns: counts them, and waits in the middle when a test says so."""

    def __init__(self) -> None:
        self.runs: list[tuple[str, bool]] = []
        self.fails_with: list[Exception] = []
        self.answers: list[list[AgentEvent]] = []
        self.cancelled: list[str] = []
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.go_on.set()

    def run(self, turn_id: str, repeated: bool) -> Iterator[AgentEvent]:
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


def journal(store: Store) -> Journal:
    """The journal of one worker."""
    return Journal.of(store, KEEP, Heartbeat(store))


def ask(worker: Journal, agent: Agent, identity: Identity = SAME) -> Part:
    """A request's part in a turn, begun."""

    def run(live: LiveTurn, repeated: bool) -> None:
        threading.Thread(target=work, args=(live, repeated), daemon=True).start()

    def work(live: LiveTurn, repeated: bool) -> None:
        fault: BaseException | None = None
        try:
            for event in agent.run(live.claim.turn, repeated):
                live.write(event)
        except BaseException as found:
            fault = found
        part.end(live, fault, repeated=repeated)

    part = Part(worker, identity, run, agent.cancelled.append)
    part.begin()
    return part


def read(part: Part) -> list[AgentEvent]:
    """All events that were not read yet."""
    return [event for event in part.read(SOON) if event is not None]
