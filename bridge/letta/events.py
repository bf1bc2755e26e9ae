"""Turns the messages of a Letta stream into the bridge's events. Pure functions.

The messages must come in the order in which Letta sent them. Letta's `message_type` decides how a message is read. A
message of an unknown type is ignored, because later servers add types.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from bridge import errors
from bridge.letta import failures
from bridge.letta.rows import join_text_parts, text_of
from bridge.turn import AgentCall, AgentEvent, AgentReturn, JsonObject, Reasoning, RunStarted, Stopped, Text, Used


def read_run(raws: Iterable[JsonObject | None]) -> Iterator[AgentEvent]:
    """Yields the events of one run; the last is always Stopped. `raws` ends with None if the server says that the
    stream is complete. Raises if the run failed or the stream broke.
    """
    run = _Run()
    for raw in raws:
        if raw is None:
            run.complete = True
            break
        yield from run.read_message(raw)
    yield from run.end_run()


class _Run:
    """The state of a run between two messages of its stream."""

    def __init__(self) -> None:
        self.complete = False
        self.stop_reason = ""
        self.run_id = ""
        self.step_id = ""
        self.used: Used | None = None
        self.call: AgentCall | None = None
        self.counted: Counter[str] = Counter()

    def read_message(self, raw: JsonObject) -> Iterator[AgentEvent]:
        """Yields the stored call if this message is no piece of it, RunStarted for a new run id, and its own events."""
        if "error" in raw and "message_type" not in raw:
            raise _run_error(raw["error"], "")
        kind = str(raw.get("message_type"))
        self.step_id = text_of(raw.get("step_id")) or self.step_id
        if kind in _READERS and kind not in _CALLS:  # a ping may come between the pieces of a call
            yield from self._finish_call()
        run_id = text_of(raw.get("run_id"))
        if run_id and run_id != self.run_id:
            self.run_id = run_id
            yield RunStarted(run_id)
        reader = _READERS.get(kind)
        if reader is not None:
            yield from reader(self, raw)

    def end_run(self) -> Iterator[AgentEvent]:
        """Yields a stored call, Used and Stopped. A stream without a stop reason has ended with "end_turn" if it is
        complete, and is broken otherwise.
        """
        if not self.complete and not self.stop_reason:
            raise errors.LettaUnreachable(failures.CONNECTION_BROKE, code="stream_cut")
        yield from self._finish_call()
        failure = failures.error_from_stop_reason(self.stop_reason) if self.stop_reason else None
        if failure is not None:
            raise failure
        if self.used is not None:
            yield Used(self.used.prompt_tokens, self.used.completion_tokens, self.used.steps, self.step_id)
        yield Stopped(self.stop_reason or "end_turn")

    def read_reasoning(self, raw: JsonObject) -> Iterator[AgentEvent]:
        text = join_text_parts(raw.get("reasoning"))
        if text:
            yield Reasoning(text, text_of(raw.get("id")))

    def read_answer(self, raw: JsonObject) -> Iterator[AgentEvent]:
        text = join_text_parts(raw.get("content"))
        if text:
            yield Text(text, text_of(raw.get("id")))

    def read_calls(self, raw: JsonObject) -> Iterator[AgentEvent]:
        """Stores the last call of a message, to which the next message may add a piece; yields the call stored before.
        From Letta 0.13 on, `tool_calls` lists all calls of a message. `tool_call` has one call: before Letta 0.13, and
        for pieces. Letta 0.16 puts a piece also into `tool_calls`, without a list around it. A step's held calls and
        its other calls are two messages; their pieces come in the order in which the model made the calls.
        """
        held = raw.get("message_type") == "approval_request_message"
        message_id = text_of(raw.get("id"))
        listed = raw.get("tool_calls")
        for piece in listed if isinstance(listed, list) and listed else [raw.get("tool_call")]:
            if not isinstance(piece, dict):
                continue
            call_id, name = text_of(piece.get("tool_call_id")), text_of(piece.get("name"))
            arguments = text_of(piece.get("arguments"))
            if self.call is not None and call_id in ("", self.call.call_id) and message_id == self.call.message_id:
                call_id, name = self.call.call_id, self.call.name or name
                arguments = self.call.arguments + arguments
            else:
                yield from self._finish_call()
                self.counted[message_id] += 1
            self.call = AgentCall(message_id, call_id, name, arguments, held, self.counted[message_id] - 1)

    def read_return(self, raw: JsonObject) -> Iterator[AgentEvent]:
        ok = raw.get("status") != "error"
        text = join_text_parts(raw.get("tool_return"))
        yield AgentReturn(text_of(raw.get("id")), text_of(raw.get("tool_call_id")), text, ok)

    def read_usage(self, raw: JsonObject) -> Iterator[AgentEvent]:
        self.used = Used(
            _count_of(raw.get("prompt_tokens")),
            _count_of(raw.get("completion_tokens")),
            _count_of(raw.get("step_count")) or 1,
        )
        yield from ()

    def read_stop_reason(self, raw: JsonObject) -> Iterator[AgentEvent]:
        self.stop_reason = text_of(raw.get("stop_reason")) or "end_turn"
        yield from ()

    def raise_run_error(self, raw: JsonObject) -> Iterator[AgentEvent]:
        """Raises the error that a message reports. The `yield` makes this a generator like the other readers."""
        raise _run_error([raw.get("error_type"), raw.get("message"), raw.get("detail")], self.stop_reason)
        yield

    def _finish_call(self) -> Iterator[AgentEvent]:
        if self.call is not None:
            call, self.call = self.call, None
            yield call


_CALLS = ("tool_call_message", "approval_request_message")
_READERS = {
    "reasoning_message": _Run.read_reasoning,
    "assistant_message": _Run.read_answer,
    "tool_call_message": _Run.read_calls,
    "approval_request_message": _Run.read_calls,
    "tool_return_message": _Run.read_return,
    "usage_statistics": _Run.read_usage,
    "stop_reason": _Run.read_stop_reason,
    "error_message": _Run.raise_run_error,
}


def _run_error(words: Any, stop_reason: str) -> errors.BridgeError:
    """Returns the error that Letta's words name, or else the stop reason. Its note has the words, for the log."""
    known = failures.error_from_run(str(words)) or (
        failures.error_from_stop_reason(stop_reason) if stop_reason else None
    )
    failure = known or errors.LettaError("The agent's run failed on the Letta server. Its log says why.", retry_after=5)
    failure.add_note(f"Letta said: {words!s:.2000}")
    return failure


def _count_of(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0
