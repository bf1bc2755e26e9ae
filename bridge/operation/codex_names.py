"""Knows the names of agents that Codex takes for its own models. For these it offers other tools, in other ways."""

from __future__ import annotations

import json
import logging
import re
from functools import lru_cache
from pathlib import Path

from bridge.history.records import TurnRecord

log = logging.getLogger(__name__)

# How the names begin. Codex knows its models by the longest of these beginnings.
_BEGINNINGS: tuple[str, ...] = tuple(json.loads((Path(__file__).parent.parent / "codex_models.json").read_text()))
# Codex also looks behind a word and a slash.
_PREFIX = re.compile(r"\A[A-Za-z0-9_-]+/(?!.*/)")
# How many names are remembered, so that each is warned of only once.
MOST_NAMES = 1_000
ADVICE = "Give the agent another name, or use its id as the model: Codex takes this name for a model of its own."


def is_a_model_of_codex(name: str) -> bool:
    return name.startswith(_BEGINNINGS) or _PREFIX.sub("", name).startswith(_BEGINNINGS)


def warn_of_name(record: TurnRecord) -> None:
    """Logs once for each name that a turn of the Responses API, which Codex speaks, named such an agent."""
    if record.dialect == "responses" and record.agent_id and is_a_model_of_codex(record.model):
        _warn_once(record.model)


@lru_cache(MOST_NAMES)
def _warn_once(name: str) -> None:
    log.warning("the agent %r may be used in a wrong way. %s", name, ADVICE)
