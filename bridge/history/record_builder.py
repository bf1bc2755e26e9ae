"""Builds the record of one attempt at a turn from its events, while the turn runs."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable
from typing import Any

from bridge.dialects.base import Dialect
from bridge.errors import BridgeError
from bridge.history.records import Step, StepKind, ToolCard, TurnRecord
from bridge.history.wrong_looks import looks_like_error
from bridge.trace import Trace
from bridge.turn import (
    AgentCall,
    AgentReturn,
    EndingResults,
    FormatChecked,
    MethodChosen,
    Notice,
    OriginalReply,
    Reasoning,
    RunStarted,
    Stopped,
    Stub,
    Text,
    ToolCall,
    ToolResult,
    ToolsLookedUp,
    ToolsOffered,
    Turn,
    TurnEvent,
    Used,
    separated_text,
)

# The limits of a record: characters of a step's text, of the user's words, steps, characters of a step's name.
SHOWN = 400
WORDS = 200
MOST_STEPS = 200
BRIEF = 160
# Steps of these kinds are the calls and results that the history counts. So more of them are kept than MOST_STEPS.
MOST_CALLS = 2_000
_COUNTED = ("call", "result")


class RecordBuilder:
    """Collects what happens in one turn. The turn's thread adds events; the recorder's thread reads the record.
    The record's size is limited, however long the answer is. `digests` has each tool's digest by the client's name.
    """

    def __init__(self, turn: Turn, trace: Trace, now: float, dialect: Dialect, *, keeps_text: bool = True) -> None:
        self.digests: dict[str, str] = {}
        self._trace = trace
        self._dialect = dialect
        self._keeps_text = keeps_text
        self._steps: list[Step] = []
        self._piece: Step | None = None
        self._stubs: dict[str, Stub] = {}
        self._stop_reason = "end_turn"
        self._called = self._own_calls = self._characters = 0
        self._finished: TurnRecord | None = None
        self._last_pieces: dict[type[Text | Reasoning], Text | Reasoning] = {}
        self._fields: dict[str, Any] = {
            "id": secrets.token_hex(8),
            "started": now - trace.seconds,
            "model": turn.model,
            "dialect": dialect.name,
            "request_id": trace.request_id,
            "key_name": turn.client,
            "tools": len(turn.tools),
            "results": len(turn.new_input.results),
            "closed_calls": turn.closed_calls,
            "streamed": turn.stream,
            "aside": turn.aside,
            "user_words": _newest_words(turn)[:WORDS] if keeps_text else "",
        }

    # --- the turn's thread ----------------------------------------------------------------------------

    def add_event(self, event: TurnEvent) -> None:
        """Adds an event, in the order in which events happen, but no call of an own tool that waits for an approval."""
        match event:
            case Text():
                text = self._separated_text(event)
                self._characters += len(text)
                self._add_piece("answer", text)
            case Reasoning():
                self._add_piece("thought", self._separated_text(event))
            case OriginalReply(text, fault):
                self._add_step("said", "", text, ok=not fault)
                if fault:
                    self._add_step("asked again", "", fault)
            case ToolCall(call_id, name, arguments):
                self._called += 1
                self._add_step("call", name, arguments, call_id=call_id)
            case AgentCall() if not event.held:
                self._own_calls += 1
                self._add_step("own call", event.name, event.arguments, call_id=event.call_id)
            case AgentReturn(_, call_id, text, ok):
                self._add_step("own return", "", text, ok=ok, call_id=call_id)
            case _:
                self._note_event(event)

    def _separated_text(self, event: Text | Reasoning) -> str:
        """Returns the text as the client gets it: an empty line separates two messages of the agent."""
        last = self._last_pieces.get(type(event))
        self._last_pieces[type(event)] = event
        return separated_text(event, last)

    def _note_event(self, event: TurnEvent) -> None:
        """Notes what an event says about the turn, such as its interception method. Other events are ignored."""
        match event:
            case MethodChosen(method, told, chat):
                self._fields |= {"method": method, "told": told, "chat": chat}
            case RunStarted(run_id):
                self._fields["run_id"] = run_id
            case Stopped(reason):
                self._stop_reason = reason
            case Used(prompt_tokens, completion_tokens):
                self._fields |= {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens}
            case FormatChecked(outcome):
                self._fields["reply_format"] = outcome
            case _:
                self._add_step_of_bridge(event)

    def _add_step_of_bridge(self, event: TurnEvent) -> None:
        """Adds what the bridge did, not the agent. Other events are ignored."""
        match event:
            case ToolsOffered():
                self._note_tools_offered(event)
            case EndingResults(results):
                self._add_results(results)
            case ToolsLookedUp(name, arguments, text, ok):
                self._add_step("looked up", name, f"{arguments}\n{text}", ok=ok)
            case Notice(text):
                self._add_step("notice", text, "")
            case _:
                pass

    def _note_tools_offered(self, event: ToolsOffered) -> None:
        self._stubs = {binding.stub.spec.name: binding.stub for binding in event.bindings}
        self.digests = {name: stub.digest for name, stub in self._stubs.items()}
        self._fields |= {"tools": len(self._stubs), "behind_search": event.behind_search}
        self._add_step("sync", "", "", size=len(self._stubs))
        self._add_results(event.results)

    def _add_results(self, results: Iterable[ToolResult]) -> None:
        for result in results:
            wrong = not result.is_error and looks_like_error(result.text)
            self._add_step(
                "result", result.name, result.text, ok=not result.is_error, call_id=result.call_id, looks_wrong=wrong
            )

    def end(self, fault: BaseException | None, *, gone: bool) -> TurnRecord:
        """Returns the finished record. `fault` is None for a good end; `gone` makes the outcome "client_gone"."""
        outcome = self._dialect.finish_reason(self._stop_reason, self._called > 0)
        if fault is not None:
            outcome = (fault.code or fault.type) if isinstance(fault, BridgeError) else "internal_error"
            words = fault.message if isinstance(fault, BridgeError) else ""
            self._fields["message"] = words[:SHOWN]
            self._add_step("failed", outcome, words, ok=False)
        self._fields |= {"ended": fault is None, "seconds": self._trace.seconds}
        self._fields["outcome"] = "client_gone" if gone else outcome
        self._finished = self.record()
        return self._finished

    # --- the recorder's thread ------------------------------------------------------------------------

    def record(self) -> TurnRecord:
        """Returns the record of what has happened so far; the finished record after `end`."""
        if self._finished is not None:
            return self._finished
        trace, steps, piece = self._trace, [*self._steps], self._piece
        known = {
            "agent_id": trace.agent_id,
            "agent_name": trace.agent_name,
            "agent_type": trace.agent_type,
            "letta_calls": trace.letta_calls,
            "letta_seconds": trace.letta_seconds,
            "waited_seconds": trace.waited_seconds,
            "waits": trace.waits,
            "stubs_put": trace.calls["PUT /v1/tools/"],
            "seconds": trace.seconds,
            "called": self._called,
            "own_calls": self._own_calls,
            "characters": self._characters,
        }
        return TurnRecord(**{**known, **self._fields}, steps=(*steps, piece) if piece is not None else tuple(steps))

    def tool_cards(self, digests: Collection[str]) -> list[ToolCard]:
        """Returns the descriptions of the turn's tools that have one of these digests."""
        wanted = [stub for stub in self._stubs.values() if stub.digest in digests]
        return [_tool_card(stub, self._fields["started"], self._fields.get("method", "")) for stub in wanted]

    # --- steps ----------------------------------------------------------------------------------------

    def _add_piece(self, kind: StepKind, text: str) -> None:
        """Adds a piece of an answer or a thought. Consecutive pieces of one `kind` become one step."""
        before = self._piece
        if before is None or before.kind != kind:
            self._close_piece()
            if len(self._steps) < MOST_STEPS:
                self._piece = self._new_step(kind, "", text)
            return
        shown = before.text
        if self._keeps_text and len(shown) < SHOWN:
            shown = (shown + text)[:SHOWN]
        self._piece = Step(before.at, kind, "", shown, before.size + len(text))

    def _close_piece(self) -> None:
        piece, self._piece = self._piece, None
        if piece is not None:
            self._steps.append(piece)

    def _add_step(self, kind: StepKind, name: str, text: str, **more: Any) -> None:
        """Adds a step that happens now, after the step of the joined pieces. Drops the step if the record is full."""
        self._close_piece()
        if len(self._steps) < (MOST_CALLS if kind in _COUNTED else MOST_STEPS):
            self._steps.append(self._new_step(kind, name, text, **more))

    def _new_step(self, kind: StepKind, name: str, text: str, *, size: int = 0, **more: Any) -> Step:
        """Returns a step that happens now, its text cut after SHOWN characters. `size` 0 means the text's length."""
        shown = text[:SHOWN] if self._keeps_text else ""
        return Step(round(self._trace.seconds, 4), kind, name[:BRIEF], shown, size or len(text), **more)


def _newest_words(turn: Turn) -> str:
    """Returns the text of the user's newest message in the turn, "" if there is none."""
    words = (one.text.strip() for one in reversed(turn.new_input.user_messages) if one.role == "user")
    return next(filter(None, words), "")


def _tool_card(stub: Stub, since: float, method: str) -> ToolCard:
    return ToolCard(
        digest=stub.digest,
        client_name=stub.spec.name,
        server_name=stub.name,
        since=since,
        description=stub.spec.description,
        parameters=stub.spec.parameters,
        strict=stub.spec.strict,
        json_schema=stub.json_schema,
        changes=stub.changes,
        method=method,
    )
