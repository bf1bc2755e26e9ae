from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from bridge.errors import LettaUnavailable
from bridge.operation import probe
from bridge.operation.probe import Probe
from bridge.web.health import Readiness
from tests.waiting import SOON, until


def readiness_of(longest: float = SOON, /, **checks: Callable[[], object]) -> Readiness:
    return Readiness({name: Probe(name, check) for name, check in checks.items()}, longest)


def states(readiness: Readiness) -> dict[str, str]:
    return {name: found.state for name, found in readiness.find().items()}


def test_a_part_is_checked_once_in_a_while_however_often_readiness_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "KEPT_SECONDS", 60.0)
    asked: list[int] = []
    readiness = readiness_of(letta=lambda: asked.append(1))
    assert [states(readiness) for _ in range(20)] == [{"letta": "ok"}] * 20
    assert asked == [1]


def test_a_part_is_checked_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "KEPT_SECONDS", 0.0)
    answers = iter([None, LettaUnavailable("It is down."), None])

    def check() -> None:
        answer = next(answers)
        if answer is not None:
            raise answer

    readiness = readiness_of(letta=check)
    assert [states(readiness)["letta"] for _ in range(3)] == ["ok", "letta_unavailable", "ok"]


def test_a_check_that_hangs_keeps_no_request_waiting_and_is_not_started_twice() -> None:
    hung, asked = threading.Event(), list[int]()

    def check() -> None:
        asked.append(1)
        hung.wait(SOON)

    readiness = readiness_of(0.05, letta=check, store=lambda: None)
    for _ in range(2):  # on a busy machine the other one may need longer, too
        until(lambda: states(readiness) == {"letta": "timeout", "store": "ok"})
    hung.set()
    assert states(Readiness({})) == {}
    assert asked == [1]


def test_few_requests_wait_for_a_check_and_the_others_get_the_result_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "KEPT_SECONDS", 0.0)
    hangs, go_on = threading.Event(), threading.Event()

    def check() -> None:
        if hangs.is_set():
            go_on.wait(SOON)

    readiness = readiness_of(letta=check)
    assert states(readiness) == {"letta": "ok"}
    hangs.set()
    answered = []
    waiting = [threading.Thread(target=lambda: answered.append(states(readiness))) for _ in range(20)]
    for thread in waiting:
        thread.start()
    until(lambda: len(answered) == 20 - probe.MOST_WAITING)
    assert answered == [{"letta": "ok"}] * len(answered)
    go_on.set()
    for thread in waiting:
        thread.join(SOON)
    assert len(answered) == 20


def test_a_check_that_crashes_counts_as_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    crashes: list[object] = []
    monkeypatch.setattr(threading, "excepthook", crashes.append)

    def check() -> None:
        raise RuntimeError("oh")

    assert states(readiness_of(letta=check)) == {"letta": "failed"}
    until(lambda: crashes)  # the thread ends after its answer is there
    assert len(crashes) == 1
