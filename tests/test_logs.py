from __future__ import annotations

import json
import logging
import logging.config
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from bridge.logs import JsonLines, TextLines, log_config
from bridge.trace import Trace, set_current_trace

HOSTILE = [
    "a\nb",
    "a\r\nINFO turn outcome=stop",
    "\x1b[2J\x1b[31mred",
    "\u2028line\u2029",
    "\u202egnp.exe",
    "\x00\x07\x08\x7f\x9b",
    '"},{"level":"error"',
    "\ud800",
    "\u0085next",
]
SECRET = 'pa"ss\\word-of-letta'


@pytest.fixture(autouse=True)
def outside_of_requests() -> Iterator[None]:
    set_current_trace(None)
    yield
    set_current_trace(None)


def record(message: str, /, *args: Any, error: BaseException | None = None, **fields: Any) -> logging.LogRecord:
    info = (type(error), error, error.__traceback__) if error else None
    made = logging.LogRecord("bridge.test", logging.WARNING, "file.py", 1, message, args, info)
    made.fields = fields
    return made


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_in_a_record_makes_a_second_line_or_moves_the_cursor(text: str) -> None:
    made = record("it said %s", text, name=text, inner=[{"deep": text}])
    line = JsonLines().format(made)
    assert line.isascii()
    assert line.isprintable()
    assert json.loads(line)["name"] == text
    assert TextLines().format(made).isprintable()


def test_a_field_cannot_replace_level_message_time_or_logger() -> None:
    told = json.loads(JsonLines().format(record("true", level="debug", message="false", time="never", logger="x")))
    assert (told["level"], told["message"], told["logger"]) == ("warning", "true", "bridge.test")


def test_a_json_line_has_the_request_and_its_fields() -> None:
    trace = Trace("req-1", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
    set_current_trace(trace)
    told = json.loads(JsonLines().format(record("turn", outcome="stop", calls=["a"], ms=1.5, none=None)))
    assert told["request_id"] == "req-1"
    assert told["trace_id"] == "4bf92f3577b34da6a3ce929d0e0e4736"
    assert (told["outcome"], told["calls"], told["ms"], told["none"]) == ("stop", ["a"], 1.5, None)


def test_a_text_line_leaves_out_empty_fields() -> None:
    made = record("turn", outcome="stop", calls=["a", "b c"], ms=1.50, none=None, empty="", stream=False)
    assert TextLines().format(made)[9:] == 'warning turn outcome=stop calls=a,"b c" ms=1.5 stream=False'


def test_a_traceback_is_logged_and_cannot_be_taken_for_other_lines() -> None:
    try:
        raise ValueError("a\nINFO    turn outcome=stop")
    except ValueError as fault:
        made = record("a fault", error=fault)
    first, *rest = TextLines().format(made).splitlines()
    assert first.endswith("warning a fault")
    assert all(line.startswith("    | ") for line in rest)
    assert "ValueError" in json.loads(JsonLines().format(made))["error"]


@pytest.mark.parametrize("lines", [JsonLines, TextLines])
def test_secrets_are_never_logged(lines: Any) -> None:
    try:
        raise ValueError(SECRET)
    except ValueError as fault:
        made = record("sent %s", SECRET, error=fault, words=f"x{SECRET}x", inner=[SECRET])
    line = lines([SECRET]).format(made)
    assert "word-of-letta" not in line
    assert "***" in line


@pytest.mark.parametrize("lines", [JsonLines, TextLines])
@pytest.mark.parametrize("secret", [SECRET, 'it\'s a "word-of-letta"'])
def test_a_secret_is_hidden_in_the_repr_of_other_values_too(lines: Any, secret: str) -> None:
    made = record("Current configuration: %s", {"secrets": (secret,)}, inner=repr([secret]))
    line = lines([secret]).format(made)
    assert "word-of-letta" not in line
    assert line.count("***") == 2


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer canary-1234",
        "authorization: BEARER   canary-1234",
        "Incorrect API key provided: sk-canary-1234.",
        "GET /v1/models?api_key=canary-1234",
        '{"api-key": "canary-1234"}',
        "Basic canary-1234",
    ],
)
def test_text_that_looks_like_a_key_is_hidden(text: str) -> None:
    line = JsonLines().format(record("%s", text, words=text))
    assert "canary" not in line


def test_a_long_text_is_cut() -> None:
    assert len(JsonLines().format(record("x" * 100_000, words="y" * 100_000))) < 20_000


@pytest.mark.parametrize(("at_terminal", "lines"), [(True, TextLines), (False, JsonLines)])
def test_lines_are_text_at_a_terminal_and_json_elsewhere(
    at_terminal: bool, lines: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: at_terminal, raising=False)
    assert log_config("info", [])["formatters"]["lines"]["()"] is lines


def test_logging_accepts_the_configuration(capfd: pytest.CaptureFixture[str]) -> None:
    """gunicorn's lines have the same form, and the HTTP libraries' lines are left out."""
    before = logging.getLogger().handlers[:], logging.getLogger().level
    try:
        logging.config.dictConfig(log_config("info", [SECRET]))
        logging.getLogger("gunicorn.error").info("Starting %s", SECRET)
        logging.getLogger("httpx").info("HTTP Request")
        logging.getLogger("bridge.turn").debug("not told")
    finally:
        logging.getLogger().handlers[:], level = before
        logging.getLogger().setLevel(level)
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [line["message"] for line in lines] == ["Starting ***"]
