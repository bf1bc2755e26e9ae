"""Turns the raw messages of a Letta stream into events. Pure: the messages come in the order of the wire.

Dispatch is on the string `message_type`. An unknown one is ignored, because later servers add kinds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from bridge import errors
from bridge.letta import failures
from bridge.turn import AgentCall, AgentEvent, AgentReturn, JsonObject, Reasoning, RunStarted, Stopped, Text, Used


def read_run(raws: Iterable[JsonObject | None]) -> Iterator[AgentEvent]:
    """Yields the events of one run. `raws` are the messages of its stream, then None when the server says it is done.

    The last event is always Stopped. A run that failed raises instead, and so does a stream that breaks before the
    server says how the run ended.
    """
    run = _Run()
    for raw in raws:
        if raw is None:
            run.complete = True
            break
        yield from run.read(raw)
    yield from run.end()


class _Run:
    """Keeps what the next messages of the stream need: a call that comes in pieces, the last step, the stop reason."""

    def __init__(self) -> None:
        self.complete = False
        self.stop_reason = ""
        self.run_id = ""
        self.step_id = ""
        self.used: Used | None = None
        self.call: AgentCall | None = None
        self.counted: Counter[str] = Counter()

    def read(self, raw: JsonObject) -> Iterator[AgentEvent]:
        if "error" in raw and "message_type" not in raw:
            raise _failure(raw["error"], "")
        kind = str(raw.get("message_type"))
        self.step_id = _text(raw.get("step_id")) or self.step_id
        if kind in _READERS and kind not in _CALLS:  # a ping may come between the pieces of a call
            yield from self._finish_call()
        run_id = _text(raw.get("run_id"))
        if run_id and run_id != self.run_id:
            self.run_id = run_id
            yield RunStarted(run_id)
        reader = _READERS.get(kind)
        if reader is not None:
            yield from reader(self, raw)

    def end(self) -> Iterator[AgentEvent]:
        if not self.complete and not self.stop_reason:
            raise errors.LettaUnreachable(failures.CUT, code="stream_cut")
        yield from self._finish_call()
        failure = failures.error_from_stop_reason(self.stop_reason) if self.stop_reason else None
        if failure is not None:
            raise failure
        if self.used is not None:
            yield Used(self.used.prompt_tokens, self.used.completion_tokens, self.used.steps, self.step_id)
        yield Stopped(self.stop_reason or "end_turn")

    def reasoning(self, raw: JsonObject) -> Iterator[AgentEvent]:
        text = _content(raw.get("reasoning"))
        if text:
            yield Reasoning(text, _text(raw.get("id")))

    def answer(self, raw: JsonObject) -> Iterator[AgentEvent]:
        text = _content(raw.get("content"))
        if text:
            yield Text(text, _text(raw.get("id")))

    def calls(self, raw: JsonObject) -> Iterator[AgentEvent]:
        """Reads calls that may come in pieces.

        From 0.13 on `tool_calls` has all calls of a message; before, and for pieces, `tool_call` has one. 0.16 puts a
        piece into `tool_calls`, too, without a list around it. The held calls of a step and its other calls are two
        messages; their pieces come in the order in which the model made the calls.
        """
        held = raw.get("message_type") == "approval_request_message"
        message_id = _text(raw.get("id"))
        listed = raw.get("tool_calls")
        for piece in listed if isinstance(listed, list) and listed else [raw.get("tool_call")]:
            if not isinstance(piece, dict):
                continue
            call_id, name = _text(piece.get("tool_call_id")), _text(piece.get("name"))
            arguments = _text(piece.get("arguments"))
            if self.call is not None and call_id in ("", self.call.call_id) and message_id == self.call.message_id:
                call_id, name = self.call.call_id, self.call.name or name
                arguments = self.call.arguments + arguments
            else:
                yield from self._finish_call()
                self.counted[message_id] += 1
            self.call = AgentCall(message_id, call_id, name, arguments, held, self.counted[message_id] - 1)

    def returned(self, raw: JsonObject) -> Iterator[AgentEvent]:
        ok = raw.get("status") != "error"
        yield AgentReturn(_text(raw.get("id")), _text(raw.get("tool_call_id")), _content(raw.get("tool_return")), ok)

    def usage(self, raw: JsonObject) -> Iterator[AgentEvent]:
        self.used = Used(
            _count(raw.get("prompt_tokens")), _count(raw.get("completion_tokens")), _count(raw.get("step_count")) or 1
        )
        yield from ()

    def stopped(self, raw: JsonObject) -> Iterator[AgentEvent]:
        self.stop_reason = _text(raw.get("stop_reason")) or "end_turn"
        yield from ()

    def failed(self, raw: JsonObject) -> Iterator[AgentEvent]:
        raise _failure([raw.get("error_type"), raw.get("message"), raw.get("detail")], self.stop_reason)
        yield

    def _finish_call(self) -> Iterator[AgentEvent]:
        if self.call is not None:
            call, self.call = self.call, None
            yield call


_CALLS = ("tool_call_message", "approval_request_message")
_READERS = {
    "reasoning_message": _Run.reasoning,
    "assistant_message": _Run.answer,
    "tool_call_message": _Run.calls,
    "approval_request_message": _Run.calls,
    "tool_return_message": _Run.returned,
    "usage_statistics": _Run.usage,
    "stop_reason": _Run.stopped,
    "error_message": _Run.failed,
}


def _failure(words: Any, stop_reason: str) -> errors.BridgeError:
    known = failures.error_from_words(str(words)) or (
        failures.error_from_stop_reason(stop_reason) if stop_reason else None
    )
    failure = known or errors.LettaError("The agent's run failed on the Letta server. Its log says why.", retry_after=5)
    failure.add_note(f"Letta said: {words!s:.2000}")
    return failure


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _content(value: Any) -> str:
    """Reads text that is a string or a list of text parts (0.12.1 streams a list)."""
    if isinstance(value, list):
        return "".join(_text(part.get("text")) for part in value if isinstance(part, dict))
    return _text(value)
