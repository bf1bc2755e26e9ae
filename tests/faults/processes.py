"""The processes of a running bridge."""

from __future__ import annotations

from pathlib import Path

from testbed.service import Service


def workers_of(bridge: Service) -> list[int]:
    return [int(child) for child in Path(f"/proc/{bridge.pid}/task/{bridge.pid}/children").read_text().split()]
