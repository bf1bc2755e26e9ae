"""Knows the names of agents that Codex takes for its own models. For these it offers other tools, in other ways."""

from __future__ import annotations

import json
import logging
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from bridge.history.records import TurnRecord

log = logging.getLogger(__name__)

_PATTERNS: tuple[str, ...] = tuple(json.loads((Path(__file__).parent.parent / "codex_models.json").read_text()))
ADVICE = "Give the agent another name, or use its id as the model: Codex takes this name for a model of its own."


def is_a_model_of_codex(name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in _PATTERNS)


def warn_of_name(record: TurnRecord) -> None:
    """Logs once for each name that a turn of the Responses API, which Codex speaks, named such an agent."""
    if record.dialect == "responses" and is_a_model_of_codex(record.model):
        _warn_once(record.model)


@cache
def _warn_once(name: str) -> None:
    log.warning("the agent %r may be used in a wrong way. %s", name, ADVICE)
