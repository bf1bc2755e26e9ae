"""Reads `cases/streams/<name>/`: streams of servers of each generation, malformed ones too, and the expected events."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bridge import sse
from bridge.errors import BridgeError
from bridge.letta.events import read_run
from bridge.turn import AgentEvent, JsonObject

CASES = {folder.name: folder for folder in sorted((Path(__file__).parent / "cases" / "streams").iterdir())}


def messages(pieces: Iterable[bytes]) -> Iterator[JsonObject | None]:
    for _, data in sse.decode_events(pieces):
        yield None if data == sse.DONE else json.loads(data)


def outcome(pieces: Iterable[bytes]) -> dict[str, Any]:
    """Returns the events of a stream, without empty fields, and the failure that ended it, if any."""
    events: list[AgentEvent] = []
    failure = None
    try:
        for event in read_run(messages(pieces)):
            events.append(event)
    except BridgeError as fault:
        failure = {"kind": type(fault).__name__, "code": fault.code}
    named = [
        {"kind": type(event).__name__, **{k: v for k, v in asdict(event).items() if v not in ("", 0, False)}}
        for event in events
    ]
    return {"events": named, "failure": failure}


def stream(case: str) -> bytes:
    return (CASES[case] / "letta.sse").read_bytes()


def expected(case: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((CASES[case] / "expected.json").read_text())
    return value
