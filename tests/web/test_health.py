from __future__ import annotations

import threading

import pytest

from bridge.errors import LettaUnavailable
from bridge.web import health
from bridge.web.health import Readiness
from tests.waiting import SOON, until


def test_a_part_is_asked_once_in_a_while_however_often_the_service_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "KEPT_SECONDS", 60.0)
    asked: list[int] = []
    readiness = Readiness({"letta": lambda: asked.append(1)}, longest=SOON)
    assert [readiness.states() for _ in range(20)] == [{"letta": "ok"}] * 20
    assert asked == [1]


def test_a_part_is_asked_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "KEPT_SECONDS", 0.0)
    answers = iter([None, LettaUnavailable("It is down."), None])

    def check() -> None:
        answer = next(answers)
        if answer is not None:
            raise answer

    readiness = Readiness({"letta": check}, longest=SOON)
    assert [readiness.states()["letta"] for _ in range(3)] == ["ok", "letta_unavailable", "ok"]


def test_nobody_waits_for_a_part_that_hangs_and_it_is_asked_by_one_only() -> None:
    hung, asked = threading.Event(), list[int]()

    def check() -> None:
        asked.append(1)
        hung.wait(SOON)

    readiness = Readiness({"letta": check, "store": lambda: None}, longest=0.05)
    for _ in range(2):  # on a busy machine the other one may need longer, too
        until(lambda: readiness.states() == {"letta": "timeout", "store": "ok"})
    hung.set()
    assert Readiness({}).states() == {}
    assert asked == [1]


def test_a_fault_of_the_check_itself_is_not_taken_for_health(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[object] = []
    monkeypatch.setattr(threading, "excepthook", told.append)

    def check() -> None:
        raise RuntimeError("oh")

    assert Readiness({"letta": check}, longest=SOON).states() == {"letta": "failed"}
    until(lambda: told)  # the thread that fails ends behind its answer
    assert len(told) == 1
