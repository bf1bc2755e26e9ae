"""Answers of real servers about an agent with one open call of a client's tool, shortened: tests/cases/letta_api/.

`agent`, `tools`, `context` and `file` (the export) were read while the call with the id `call_id` was open, `open`
are the agent's messages then, and `closed` the messages after the result.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bridge.letta.rows import tool_from_row
from bridge.passthrough.hiding import OurTools

ANSWERS: dict[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text())
    for path in sorted((Path(__file__).parent.parent / "cases" / "letta_api").glob("*.json"))
}


def ours_in(answers: dict[str, Any]) -> OurTools:
    return OurTools.of(map(tool_from_row, answers["tools"]))
