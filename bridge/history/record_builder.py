"""The record of one turn while it is made, event by event."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import replace

from bridge.history.records import Step, StepKind, ToolCard, TurnRecord
from bridge.letta.gateway import HELPER_PREFIX
from bridge.turn import (
    AgentCall,
    AgentReturn,
    MethodChosen,
    Reasoning,
    Stub,
    Text,
    ToolCall,
    ToolResult,
    ToolsOffered,
    Turn,
    TurnEvent,
    Used,
)

SHOWN = 400
MOST_STEPS = 200
BRIEF = 160


class RecordBuilder:
    """Written by the turn's thread, read by the recorder's. Nothing that it keeps grows with the size of an answer."""

    def __init__(self, id: str, turn: Turn, started: float, *, keeps_text: bool) -> None:
        self.id = id
        self.digests: dict[str, str] = {}
        self._keeps_text = keeps_text
        self._begun = time.perf_counter()
        self._record = TurnRecord(
            id, started, turn.model, tools=len(turn.tools), streamed=turn.stream, aside=turn.aside
        )
        self._steps: list[Step] = []
        self._stubs: dict[str, Stub] = {}

    # --- the turn's thread ----------------------------------------------------------------------------

    def see(self, event: TurnEvent) -> None:
        match event:
            case Text(text):
                self._piece("answer", text)
            case Reasoning(text):
                self._piece("thought", text)
            case ToolCall(call_id, name, arguments):
                self._step("call", name, arguments, call_id=call_id)
            case AgentCall() if not event.held:
                self._step("own call", event.name, event.arguments, call_id=event.call_id)
            case AgentReturn(_, call_id, text, ok):
                self._step("own return", "", text, ok=ok, call_id=call_id)
            case _:
                self._learn(event)

    def _learn(self, event: TurnEvent) -> None:
        match event:
            case MethodChosen(method):
                self._set(method=method)
            case ToolsOffered():
                self._offered(event)
            case Used(prompt_tokens, completion_tokens):
                self._set(prompt_tokens=prompt_tokens, completion_tokens=completion_tokens)
            case _:
                pass

    def fail(self, code: str, message: str) -> None:
        self._set(outcome=code, message=message[:SHOWN])
        self._step("failed", code, message, ok=False)

    def cost(self, letta_calls: int, letta_seconds: float, waited_seconds: float) -> None:
        self._set(letta_calls=letta_calls, letta_seconds=letta_seconds, waited_seconds=waited_seconds)

    def end(self) -> None:
        outcome = self._record.outcome
        if outcome == "running":
            kinds = {step.kind for step in self._steps}
            outcome = "calls" if "call" in kinds else "answer" if "answer" in kinds else "nothing"
        self._set(outcome=outcome, seconds=self._now())

    # --- the recorder's thread ------------------------------------------------------------------------

    def record(self) -> TurnRecord:
        record = replace(self._record, steps=tuple(self._steps))
        return replace(record, seconds=self._now()) if record.outcome == "running" else record

    def cards(self, digests: Collection[str]) -> list[ToolCard]:
        wanted = [stub for stub in self._stubs.values() if stub.digest in digests]
        return [_card(stub, self._record) for stub in wanted]

    # --------------------------------------------------------------------------------------------------

    def _offered(self, event: ToolsOffered) -> None:
        self._stubs = {binding.stub.spec.name: binding.stub for binding in event.bindings}
        self.digests = {name: stub.digest for name, stub in self._stubs.items()}
        aside = self._record.aside or event.agent_name.startswith(HELPER_PREFIX)
        self._set(agent_id=event.agent_id, agent_name=event.agent_name, tools=len(self._stubs), aside=aside)
        self._step("sync", "", "", size=len(self._stubs))
        for result in event.results:
            self._given(result)

    def _given(self, result: ToolResult) -> None:
        self._step("result", result.name, result.text, ok=not result.is_error, call_id=result.call_id)

    def _piece(self, kind: StepKind, text: str) -> None:
        """Pieces of one text become one step."""
        last = self._steps[-1] if self._steps else None
        if last is None or last.kind != kind:
            self._step(kind, "", text)
            return
        shown = last.text
        if self._keeps_text and len(shown) < SHOWN:
            shown = (shown + text)[:SHOWN]
        self._steps[-1] = replace(last, text=shown, size=last.size + len(text))

    def _step(self, kind: StepKind, name: str, text: str, *, size: int = 0, ok: bool = True, call_id: str = "") -> None:
        if len(self._steps) >= MOST_STEPS:
            return
        shown = text[:SHOWN] if self._keeps_text else ""
        self._steps.append(Step(round(self._now(), 4), kind, name[:BRIEF], shown, size or len(text), ok, call_id))

    def _set(self, **values: object) -> None:
        self._record = replace(self._record, **values)  # type: ignore[arg-type]

    def _now(self) -> float:
        return time.perf_counter() - self._begun


def _card(stub: Stub, turn: TurnRecord) -> ToolCard:
    return ToolCard(
        digest=stub.digest,
        client_name=stub.spec.name,
        server_name=stub.name,
        since=turn.started,
        description=stub.spec.description,
        parameters=stub.spec.parameters,
        strict=stub.spec.strict,
        json_schema=stub.json_schema,
        changes=stub.changes,
        method=turn.method,
    )
