"""Writes one log line for each turn that ended."""

from __future__ import annotations

import logging

from bridge.history.records import TurnRecord
from bridge.turn import JsonObject

log = logging.getLogger("bridge.turn")

MOST_NAMES = 20
LONGEST_NAME = 80


def log_turn(record: TurnRecord) -> None:
    log.info("turn", extra={"fields": log_fields(record)})


def log_fields(record: TurnRecord) -> JsonObject:
    """Returns the fields of a turn's log line: no text of the conversation, and only a part of many calls."""
    return {
        "outcome": record.outcome,
        "dialect": record.dialect,
        "model": record.model[:LONGEST_NAME],
        "agent": record.agent_id,
        "agent_type": record.agent_type,
        "run": record.run_id,
        "key": record.key_name,
        "method": record.method,
        "stream": record.streamed,
        "aside": record.aside,
        "format": record.reply_format,
        "tools": record.tools,
        "results": record.results,
        "told": record.told,
        "chat": record.chat,
        "calls": [step.name[:LONGEST_NAME] for step in record.calls[:MOST_NAMES]],
        "own_calls": record.own_calls,
        "behind_search": record.behind_search,
        "look_ups": len(record.looked_up),
        "characters": record.characters,
        "prompt_tokens": record.prompt_tokens,
        "completion_tokens": record.completion_tokens,
        "letta_calls": record.letta_calls,
        "stubs_put": record.stubs_put,
        "ms": _milliseconds(record.seconds),
        "letta_ms": _milliseconds(record.letta_seconds),
        "waited_ms": _milliseconds(record.waited_seconds),
        "waited_for": record.waited_for,
        "bridge_ms": _milliseconds(record.bridge_seconds),
    }


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 1)
