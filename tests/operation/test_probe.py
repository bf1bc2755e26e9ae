"""What a probe finds and logs. tests/web/test_health.py has the probes that /readyz asks."""

from __future__ import annotations

import logging
import threading

import pytest

from bridge.errors import BridgeError, StoreUnavailable
from bridge.letta.trouble import make_error
from bridge.operation import probe
from bridge.operation.probe import LATE, Finding, Probe
from tests.waiting import SOON


def test_only_changes_are_logged(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(probe, "KEPT_SECONDS", 0.0)
    down = make_error("refused", "http://letta.test")
    failures: list[BridgeError | None] = [None, down, down, StoreUnavailable("It is full."), None, None]
    coming = iter(failures)

    def check() -> None:
        failure = next(coming)
        if failure is not None:
            raise failure

    asked = Probe("letta", check)
    found = [asked.find() for _ in failures]
    assert found[0] == found[-1] == Finding("ok")
    assert found[1] == Finding("letta_unreachable", down.message, down.reason)
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", f"not ready: {down.message}"),
        ("WARNING", "not ready: It is full."),
        ("INFO", "ready again: letta"),
    ]


def test_a_check_that_hangs_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "LONGEST_SECONDS", 0.05)
    hung = threading.Event()
    asked = Probe("letta", lambda: hung.wait(SOON))
    assert asked.find() == LATE
    hung.set()
