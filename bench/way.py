"""The way of one warm streamed turn through the code: `python -m bench.way`.

A turn with an in-memory Letta is followed by `sys.setprofile`. Counted are the functions of the bridge that run, the
files that they are in, and how often the way goes from one file to another. What runs again for each further event of
the agent is listed by name, the generators among it apart.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType
from typing import Any

from app import create_app
from bridge.config import read_settings
from bridge.turn import AgentEvent, Stopped, Text, Used
from tests.fakes import FakeGateway

ROOT = Path(__file__).resolve().parent.parent
OURS = (str(ROOT / "bridge"), str(ROOT / "app.py"))
IS_GENERATOR = 0x20
TOOL = {"type": "function", "function": {"name": "read_file", "parameters": {"type": "object", "properties": {}}}}
FEW, MANY = 2, 22
THREADS = {"MainThread", "turn"}


class Way:
    """What was called in the threads of the request and its turn while it was `followed`. Both wait for work before."""

    def __init__(self) -> None:
        self.followed = False
        self.calls: Counter[str] = Counter()
        self.generators: set[str] = set()
        self.files: set[str] = set()
        self.changes = 0
        self._at: dict[int, str] = {}
        self._names: dict[CodeType, str] = {}

    def follow(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if not self.followed or event != "call" or threading.current_thread().name not in THREADS:
            return
        if not code.co_filename.startswith(OURS):
            return
        name = f"{Path(code.co_filename).relative_to(ROOT)}:{code.co_qualname}"
        self.calls[name] += 1
        if code.co_flags & IS_GENERATOR:
            self.generators.add(name)
        thread = threading.get_ident()
        before = self._at.get(thread)
        self.changes += before is not None and before != code.co_filename
        self._at[thread] = code.co_filename
        self.files.add(code.co_filename)


def ask(client: Any, text: str) -> None:
    body = {"model": "Ada", "stream": True, "tools": [TOOL], "messages": [{"role": "user", "content": text}]}
    reply = client.post("/v1/chat/completions", json=body)
    assert reply.data.endswith(b"data: [DONE]\n\n"), reply.data


def follow(deltas: int) -> Way:
    """A turn whose answer comes in so many pieces, after three others that warm everything up."""
    letta = FakeGateway()
    letta.has_agent("Ada")
    pieces = (Text(f"word {number} ") for number in range(deltas))
    answer: list[AgentEvent] = [*pieces, Used(10, 2), Stopped("end_turn")]
    with TemporaryDirectory() as folder:
        settings = {"LETTA_BASE_URL": "http://letta.invalid", "BRIDGE_ALLOW_ANONYMOUS": "1", "BRIDGE_DATA_DIR": folder}
        app = create_app(read_settings(settings), letta)
        client = app.test_client()
        way = Way()
        threading.setprofile(way.follow)
        sys.setprofile(way.follow)
        try:
            for number in range(3):
                letta.will(*answer)
                ask(client, f"Warm up {number}")
            letta.will(*answer)
            way.followed = True
            ask(client, "The one that counts")
        finally:
            way.followed = False
            sys.setprofile(None)
            threading.setprofile(None)
        app.extensions["parts"].recorder.stop()
    return way


def main() -> None:
    few, many = follow(FEW), follow(MANY)
    again = sorted(name for name, calls in many.calls.items() if calls - few.calls[name] >= MANY - FEW)
    generators = [name for name in again if name in many.generators]
    lines = [
        f"functions             {len(few.calls)}",
        f"files                 {len(few.files)}",
        f"changes of file       {few.changes}",
        f"generators an event   {len(generators)}",
        *(f"  {name}" for name in generators),
        f"functions an event    {len(again) - len(generators)}",
        *(f"  {name}" for name in again if name not in generators),
    ]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
