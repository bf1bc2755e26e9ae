"""The helper process that checks one reply or one schema. It reads a job from its input and writes the answer.

A schema of a few lines can need more time than there is, by alternatives in alternatives, and no validator can be
stopped in the middle. So the process limits itself before it reads the job, and the kernel ends it at the limit.
"""

from __future__ import annotations

import json
import resource
import sys
from contextlib import suppress
from typing import Any

import jsonschema_rs

from bridge.reply_format.json_in_text import find_json_values, parse_json

# Seconds of processor time, and bytes of memory. A schema of 256 kB, or a reply of 1 MB, takes about 40 MB.
MOST_SECONDS = 2
MOST_MEMORY = 128 * 1024 * 1024
# The most characters of a fault.
LONGEST_FAULT = 300
_PATTERN_FAILED = (
    jsonschema_rs.ValidationErrorKind.BacktrackLimitExceeded,
    jsonschema_rs.ValidationErrorKind.RegexEngineFailure,
)


class Unchecked(Exception):
    """It can't be said whether the value fits the schema. The process ends without an answer."""


def main() -> None:
    limit_this_process()
    json.dump(answer_job(json.load(sys.stdin)), sys.stdout)


def limit_this_process() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(ValueError):  # macOS does not limit a process's memory
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))


def answer_job(job: Any) -> dict[str, str]:
    """Checks the job's `schema` (JSON text, "" for any object) if there is no `reply`, else the reply by the schema.
    Returns the `fault`, "" if nothing is wrong, and for a valid reply its JSON `value`.
    """
    schema, reply = job["schema"], job.get("reply")
    if reply is None:
        return {"fault": find_schema_fault(schema)}
    values = find_json_values(reply)
    if len(values) != 1:
        return {"fault": _fault_of_count(reply, len(values))}
    return {"value": values[0], "fault": find_value_fault(parse_json(values[0]), schema)}


def _fault_of_count(reply: str, count: int) -> str:
    """Says why a reply does not have one JSON value. If the reply seems to be JSON, says where it is malformed."""
    if count == 0 and reply.lstrip().startswith(("{", "[")):
        try:
            parse_json(reply.strip())
        except ValueError as fault:
            return f"it is not valid JSON: {fault}"
    return f"it contains {count or 'no'} JSON value{'s' if count else ''} instead of one"


def find_schema_fault(schema: str) -> str:
    """Says why the text is not a usable JSON Schema; "" if it is one. References lead only to places in the schema."""
    try:
        _validator(schema)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as fault:
        return _described(fault)
    return ""


def find_value_fault(value: Any, schema: str) -> str:
    """Says what is wrong with the value by the schema; "" if nothing is. Raises Unchecked at the limit of a pattern."""
    if not schema:
        return "" if isinstance(value, dict) else "the JSON value is not an object"
    try:
        fault = next(iter(_validator(schema).iter_errors(value)), None)
    except ValueError as unusable:  # such as a number beyond all limits
        return _described(unusable)
    if fault is not None and isinstance(fault.kind, _PATTERN_FAILED):
        raise Unchecked(fault.message)
    return "" if fault is None else _described(fault)


def _validator(schema: str) -> jsonschema_rs.Validator:
    """Compiles the schema. `offline`: a reference to another document is an error, and nothing is fetched or read."""
    return jsonschema_rs.validator_for(schema, validate_formats=True, offline=True, mask="the value")


def _described(fault: Exception) -> str:
    """Returns the fault in one line, with the place in the value if it is known."""
    text = getattr(fault, "message", None) or str(fault)
    place = "".join(f"[{part!r}]" for part in getattr(fault, "instance_path", ()))
    return (f"at {place}: " if place else "")[:LONGEST_FAULT] + " ".join(text.split())[:LONGEST_FAULT]


if __name__ == "__main__":
    main()
