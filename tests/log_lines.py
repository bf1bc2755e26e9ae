"""What the log has, for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


def lines(caplog: pytest.LogCaptureFixture, message: str) -> list[dict[str, Any]]:
    """Returns the fields of all lines with this message."""
    return [record.fields for record in caplog.records if record.getMessage() == message]  # type: ignore[attr-defined]


def whole_log(caplog: pytest.LogCaptureFixture) -> str:
    """Returns all lines as one text, with their fields."""
    return str([vars(record) for record in caplog.records])


def turn_lines(log: Path) -> list[dict[str, Any]]:
    """Returns the lines of all turns in the log of a service that runs as a process."""
    found = [json.loads(line) for line in log.read_text(errors="replace").splitlines() if line.startswith("{")]
    return [line for line in found if line["message"] == "turn"]
