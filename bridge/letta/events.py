"""Turns the messages of a Letta stream into the bridge's events. Pure functions.

The messages must come in the order in which Letta sent them. Letta's `message_type` decides how a message is read. A
message of an unknown type is ignored, because later servers add types.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from bridge import errors
from bridge.letta import failures
from bridge.letta.rows import join_text_parts, text_of
from bridge.turn import AgentCall, AgentEvent, AgentReturn, JsonObject, Reasoning, RunStarted, Stopped, Text, Used

Events = Sequence[AgentEvent]


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
        if run.fault is not None:
            raise run.fault
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
        self.fault: errors.BridgeError | None = None

    def read_message(self, raw: JsonObject) -> Events:
        """Returns the stored call if this message is no piece of it, RunStarted for a new run id, and its own events.
        After these events, a `fault` is to be raised.
        """
        if "error" in raw and "message_type" not in raw:
            raise _run_error(raw["error"], "")
        kind = text_of(raw.get("message_type"))
        self.step_id = text_of(raw.get("step_id")) or self.step_id
        reader = _READERS.get(kind)
        # A ping may come between the pieces of a call.
        call = self._finish_call() if reader is not None and kind not in _CALLS else ()
        run_id = text_of(raw.get("run_id"))
        started: Events = ()
        if run_id and run_id != self.run_id:
            self.run_id = run_id
            started = (RunStarted(run_id),)
        own = reader(self, raw) if reader is not None else ()
        return own if not (call or started) else (*call, *started, *own)

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

    def read_reasoning(self, raw: JsonObject) -> Events:
        text = join_text_parts(raw.get("reasoning"))
        return (Reasoning(text, text_of(raw.get("id"))),) if text else ()

    def read_answer(self, raw: JsonObject) -> Events:
        text = join_text_parts(raw.get("content"))
        return (Text(text, text_of(raw.get("id"))),) if text else ()

    def read_calls(self, raw: JsonObject) -> Events:
        """Stores the last call of a message, to which the next message may add a piece; returns the calls before it.
        From Letta 0.13 on, `tool_calls` lists all calls of a message. `tool_call` has one call: before Letta 0.13, and
        for pieces. Letta 0.16 puts a piece also into `tool_calls`, without a list around it. A step's held calls and
        its other calls are two messages; their pieces come in the order in which the model made the calls.
        """
        held = raw.get("message_type") == "approval_request_message"
        message_id = text_of(raw.get("id"))
        listed = raw.get("tool_calls")
        whole: list[AgentEvent] = []
        for piece in listed if isinstance(listed, list) and listed else [raw.get("tool_call")]:
            if not isinstance(piece, dict):
                continue
            call_id, name = text_of(piece.get("tool_call_id")), text_of(piece.get("name"))
            arguments = text_of(piece.get("arguments"))
            if self.call is not None and call_id in ("", self.call.call_id) and message_id == self.call.message_id:
                call_id, name = self.call.call_id, self.call.name or name
                arguments = self.call.arguments + arguments
            else:
                whole += self._finish_call()
                self.counted[message_id] += 1
            self.call = AgentCall(message_id, call_id, name, arguments, held, self.counted[message_id] - 1)
        return whole

    def read_return(self, raw: JsonObject) -> Events:
        ok = raw.get("status") != "error"
        text = join_text_parts(raw.get("tool_return"))
        return (AgentReturn(text_of(raw.get("id")), text_of(raw.get("tool_call_id")), text, ok),)

    def read_usage(self, raw: JsonObject) -> Events:
        self.used = Used(
            _count_of(raw.get("prompt_tokens")),
            _count_of(raw.get("completion_tokens")),
            _count_of(raw.get("step_count")) or 1,
        )
        return ()

    def read_stop_reason(self, raw: JsonObject) -> Events:
        self.stop_reason = text_of(raw.get("stop_reason")) or "end_turn"
        return ()

    def read_error(self, raw: JsonObject) -> Events:
        self.fault = _run_error([raw.get("error_type"), raw.get("message"), raw.get("detail")], self.stop_reason)
        return ()

    def _finish_call(self) -> Events:
        call, self.call = self.call, None
        return () if call is None else (call,)


_CALLS = ("tool_call_message", "approval_request_message")
_READERS = {
    "reasoning_message": _Run.read_reasoning,
    "assistant_message": _Run.read_answer,
    "tool_call_message": _Run.read_calls,
    "approval_request_message": _Run.read_calls,
    "tool_return_message": _Run.read_return,
    "usage_statistics": _Run.read_usage,
    "stop_reason": _Run.read_stop_reason,
    "error_message": _Run.read_error,
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
