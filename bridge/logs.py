"""Log lines: JSON for machines, or text for a person at a terminal. No logged text can begin a line of its own.

A record may carry `fields`, a mapping of details that are logged after its message.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from bridge.trace import current_trace_or_none

LogLevel = Literal["debug", "info", "warning", "error"]

LONGEST = 8_000  # characters of a logged text
SHORTEST_SECRET = 4
_PLAIN = (bool, int, float, type(None))
_encode = json.JSONEncoder(default=str).encode
# Anything that looks like a key is hidden: Letta's errors may quote what a model provider refused.
_KEY_PATTERN = re.compile(r"(?i)(\bbearer\s+|\bbasic\s+|\bsk-|\bapi[-_]?key[\"']?\s*[=:]\s*[\"']?)[^\s\"',;&]{4,}")
# These libraries log every connection.
_QUIET_LOGGERS = ("httpx", "httpcore", "letta_client", "urllib3", "werkzeug")


def log_config(level: LogLevel, secrets: Sequence[str]) -> dict[str, Any]:
    """Returns the configuration for `logging.config.dictConfig`. All lines go to stdout, also gunicorn's; its list of
    requests is not logged. `secrets` are texts that are logged as ***.
    """
    lines = {"()": TextLines if sys.stdout.isatty() else JsonLines, "secrets": tuple(secrets)}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"lines": lines},
        "handlers": {
            "out": {
                "class": "logging.StreamHandler",
                "stream": "ext://sys.stdout",
                "formatter": "lines",
                "filters": ["stopped_clients"],
            }
        },
        "filters": {"stopped_clients": {"()": StoppedClientFilter}},
        "root": {"level": level.upper(), "handlers": ["out"]},
        "loggers": {
            "gunicorn.error": {"level": level.upper(), "handlers": [], "propagate": True},
            "gunicorn.access": {"level": "CRITICAL", "handlers": [], "propagate": False},
            **{name: {"level": "WARNING"} for name in _QUIET_LOGGERS},
        },
    }


class StoppedClientFilter(logging.Filter):
    """Drops gunicorn's traceback for a client that stopped within its request: its socket's timeout has passed."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], BlockingIOError))


class _LineFormatter(logging.Formatter):
    """Base of both forms of a log line. Secrets of fewer than SHORTEST_SECRET characters are not hidden."""

    def __init__(self, secrets: Sequence[str] = ()) -> None:
        super().__init__()
        known = [secret for secret in secrets if len(secret) >= SHORTEST_SECRET]
        # The secrets as repr() writes them are hidden, too: gunicorn logs its settings so at the level debug.
        self._secrets = list(dict.fromkeys(form for secret in known for form in (secret, repr(secret)[1:-1])))

    def hide_secrets(self, text: str) -> str:
        """Writes *** in place of the secrets, and of anything that looks like a key or token."""
        if len(text) < SHORTEST_SECRET:
            return text
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return _KEY_PATTERN.sub(r"\1***", text)

    def record_details(self, record: logging.LogRecord) -> dict[str, Any]:
        """Returns what is logged after a record's message: the request's ids, the record's `fields`, a traceback."""
        trace = current_trace_or_none()
        found: dict[str, Any] = {"request_id": trace.request_id} if trace else {}
        if trace and trace.trace_id:
            found["trace_id"] = trace.trace_id
        found.update(getattr(record, "fields", {}))
        if record.exc_info:
            found["error"] = self.formatException(record.exc_info)
        return {name: self._plain_value(value) for name, value in found.items()}

    def _plain_value(self, value: Any) -> Any:
        """Returns a logged value as JSON without secrets, its texts cut after LONGEST characters."""
        if isinstance(value, _PLAIN):
            return value
        if isinstance(value, list | tuple):
            return [self._plain_value(item) for item in value]
        if not isinstance(value, str) and isinstance(value, Mapping):
            return {str(name): self._plain_value(item) for name, item in value.items()}
        return self.hide_secrets(str(value)[:LONGEST])


class JsonLines(_LineFormatter):
    """Writes each log record as one line of JSON. A detail never replaces a fixed field, such as "time"."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "process": record.process,
            "message": self.hide_secrets(record.getMessage()[:LONGEST]),
        }
        details = {name: value for name, value in self.record_details(record).items() if name not in line}
        return _encode({**line, **details})


class TextLines(_LineFormatter):
    """Writes each log record as one line of text without its request id, the traceback in indented lines below."""

    def format(self, record: logging.LogRecord) -> str:
        details = self.record_details(record)
        error = str(details.pop("error", ""))
        details.pop("request_id", None)
        time = datetime.fromtimestamp(record.created).strftime("%H:%M:%S")
        words = [
            time,
            f"{record.levelname.lower():<7}",
            escape_to_one_line(self.hide_secrets(record.getMessage()[:LONGEST])),
        ]
        words += [
            f"{name}={_value_as_text(value)}" for name, value in details.items() if value not in ("", None, [], {})
        ]
        # The lines of a traceback are indented, so that none of them can be taken for a record.
        return "\n".join([" ".join(words), *("    | " + escape_to_one_line(line) for line in error.splitlines())])


def escape_to_one_line(text: str) -> str:
    """Escapes every unprintable character: it could begin a line, move the terminal's cursor or hide text."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _value_as_text(value: Any) -> str:
    """Returns a logged value as text, in quotes if it has blanks, commas or equals signs."""
    if isinstance(value, list):
        return ",".join(_value_as_text(item) for item in value)
    if isinstance(value, float):
        return f"{value:g}"
    text = escape_to_one_line(str(value))
    return json.dumps(text, ensure_ascii=False) if set(text) & set(" ,=") else text
