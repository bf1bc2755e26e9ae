"""The parts that requests have in turns: several workers with one store, and an agent that runs the turns."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bridge.errors import UnknownModel
from bridge.journal import follower
from bridge.journal.claims import Identity
from bridge.store import heartbeat
from bridge.store.heartbeat import Heartbeat
from bridge.store.port import Store
from bridge.turn import AgentEvent, MethodChosen, Stopped, Text, Used
from bridge.turns.attempts import Attempt, Attempts
from bridge.turns.part import Part
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
    """Makes heartbeats come often, and keeps a process alive that a busy machine stops for a while."""
    for module in (heartbeat, follower):
        monkeypatch.setattr(module, "PULSE", 0.05)
        monkeypatch.setattr(module, "ALIVE", KEEP)
    monkeypatch.setattr(heartbeat, "IDLE_PULSE", 0.05)
    monkeypatch.setattr(follower, "FOLLOWED", KEEP)
    monkeypatch.setattr(follower, "LOOK", 0.02)


@pytest.fixture
def short_lives(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes a process count as dead when it is silent for a moment."""
    for module in (heartbeat, follower):
        monkeypatch.setattr(module, "ALIVE", 0.5)


class Agent:
    """Runs turns. It counts them, and waits in the middle of a turn until `go_on` is set."""

    def __init__(self) -> None:
        self.runs: list[tuple[str, bool]] = []
        self.fails_with: list[Exception] = []
        self.answers: list[list[AgentEvent]] = []
        self.cancelled: list[str] = []
        self.lingering: list[str] = []
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


def new_worker(store: Store, keep: float = KEEP, repeat_wait: float = 0.0) -> Attempts:
    """Returns the attempts of another worker, none so far."""
    return Attempts(store, keep, Heartbeat(store), repeat_wait)


@dataclass(frozen=True, slots=True)
class AgentRunner:
    """Runs and cancels the turns of one agent of a test."""

    attempts: Attempts
    agent: Agent

    def start(self, attempt: Attempt) -> None:
        threading.Thread(target=self._run, args=(attempt,), daemon=True).start()

    def _run(self, attempt: Attempt) -> None:
        fault: BaseException | None = None
        try:
            for event in self.agent.run(attempt.claim.turn, attempt.repeated):
                attempt.write(event)
        except BaseException as found:
            fault = found
        self.attempts.end(attempt, fault)

    def cancel(self, run_id: str) -> None:
        self.agent.cancelled.append(run_id)

    def note_lingering(self, attempt: Attempt) -> None:
        self.agent.lingering.append(attempt.claim.token)


def ask(attempts: Attempts, agent: Agent, identity: Identity = SAME) -> Part:
    """Returns a request's part in a turn, which has begun."""
    part = Part(attempts, identity, AgentRunner(attempts, agent))
    part.begin()
    return part


def read(part: Part) -> list[AgentEvent]:
    """Returns all events that were not read yet."""
    return [event for event in part.read(SOON) if event is not None]
