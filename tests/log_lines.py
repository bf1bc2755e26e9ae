"""What the log has, for tests."""

from __future__ import annotations

from typing import Any

import pytest


def lines(caplog: pytest.LogCaptureFixture, message: str) -> list[dict[str, Any]]:
    """Returns the fields of all lines with this message."""
    return [record.fields for record in caplog.records if record.getMessage() == message]  # type: ignore[attr-defined]


def whole_log(caplog: pytest.LogCaptureFixture) -> str:
    """Returns all lines as one text, with their fields."""
    return str([vars(record) for record in caplog.records])
