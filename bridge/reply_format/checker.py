"""Checks replies and schemas in a helper process (helper.py), which ends after a limited time whatever they are."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn

from bridge.errors import InvalidRequest
from bridge.turn import FormatOutcome, ReplyFormat

log = logging.getLogger(__name__)

_ROOT = Path(__file__).parent.parent.parent
_COMMAND = [sys.executable, "-m", "bridge.reply_format.helper"]
# Seconds. The helper's own limit counts its processor time, which passes slowly on a busy machine.
PATIENCE = 20.0
# How many helper processes one worker runs at once, each of which takes 17 MB of memory, or with a hostile schema as
# much as it may. Further checks wait.
AT_ONCE = 2
_PLACES = threading.BoundedSemaphore(AT_ONCE)
# How many schemas are remembered as usable, because a client sends the same one with many requests.
SCHEMAS_REMEMBERED = 64


class HelperFailed(Exception):
    """The helper process ended without an answer, most likely because it reached a limit."""


@dataclass(frozen=True, slots=True)
class CheckedReply:
    """What the check of a reply found. `value`: the JSON text of a valid reply. `fault`: what is wrong with another."""

    outcome: FormatOutcome
    value: str = ""
    fault: str = ""


def check_schema(form: ReplyFormat, most_characters: int) -> None:
    """Raises InvalidRequest, which names the request's field, if the schema is too large or not usable. Nothing is
    raised if no helper process can be started: the turn can run nevertheless.
    """
    size = len(form.schema)
    if size > most_characters:
        _refuse(form, f"has {size} characters of JSON; {most_characters} are allowed", "schema_too_large")
    if not form.schema:
        return
    try:
        fault = _find_schema_fault(form.schema)
    except HelperFailed as failure:
        log.warning("a schema could not be checked: %s", failure)
        _refuse(form, "can't be checked within the bridge's limits of time and memory. Make it simpler")
    except OSError as lack:
        log.warning("a schema could not be checked: %s", lack)
        return
    if fault:
        _refuse(form, f"is not a JSON Schema that can be checked: {fault}")


def check_reply(text: str, form: ReplyFormat) -> CheckedReply:
    """Looks for the one JSON value in the agent's text, and checks it by the format's schema."""
    try:
        answer = _ask_helper({"schema": form.schema, "reply": text})
    except (HelperFailed, OSError) as failure:
        log.warning("a reply could not be checked: %s", failure)
        return CheckedReply("unchecked")
    if answer["fault"]:
        return CheckedReply("invalid", fault=answer["fault"])
    return CheckedReply("valid", answer["value"])


def find_fault(value: str, schema: str) -> str:
    """Says what is wrong with a JSON value by a schema; "" if nothing is, or if that can't be checked."""
    try:
        if _find_schema_fault(schema):
            return ""
        return _ask_helper({"schema": schema, "reply": value})["fault"]
    except (HelperFailed, OSError) as failure:
        log.warning("a value could not be checked: %s", failure)
        return ""


@lru_cache(SCHEMAS_REMEMBERED)
def _find_schema_fault(schema: str) -> str:
    return str(_ask_helper({"schema": schema})["fault"])


def _ask_helper(job: Any) -> dict[str, str]:
    sent = json.dumps(job).encode()
    try:
        with _PLACES:
            done = subprocess.run(  # nosec B603 # our own program; the job is data on its input
                _COMMAND, input=sent, cwd=_ROOT, capture_output=True, timeout=PATIENCE, check=False
            )
    except subprocess.TimeoutExpired as fault:
        raise HelperFailed(str(fault)) from fault
    if done.returncode:
        # Only the exception's name: its text may quote the reply.
        name = done.stderr.decode(errors="replace").strip().rpartition("\n")[2].partition(":")[0]
        raise HelperFailed(f"the helper process ended with {done.returncode} {name:.80}".strip())
    answer: dict[str, str] = json.loads(done.stdout)
    return answer


def _refuse(form: ReplyFormat, fault: str, code: str | None = None) -> NoReturn:
    raise InvalidRequest(f"`{form.field}` {fault}.", param=form.field, code=code)
