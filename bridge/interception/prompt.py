"""Any agent whose toolset must not be touched: the tools are described in a message, calls are read from the text.

Results come back as messages that quote them. The description leaves the agent's context when the run is over, or in
the next turn if it broke off.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from bridge.interception.context_editor import ContextEditor
from bridge.interception.held import ended_at, sent
from bridge.interception.method import PreparedTurn
from bridge.interception.quoting import quoted
from bridge.interception.stored_messages import SYSTEM, StoredMessages
from bridge.interception.tagged import TaggedCall, TaggedText
from bridge.letta.gateway import AgentChange, Say
from bridge.turn import AgentEvent, Binding, JsonObject, Method, Stopped, StubKind, Text, ToolCall, ToolChoice, ToolSpec

# How often an agent is told that a call was wrong before its turn ends as it is.
CORRECTIONS = 2

_BEGIN = "The user's application offers you the tools listed below. It runs them itself and sends you the results."
_GUIDE = (
    _BEGIN
    + """
To call one, write on a line of its own in your message to the user:
<call-{nonce}>{{"name": "the tool's name", "arguments": {{"its": "arguments"}}}}</call-{nonce}>
The tag is valid for this reply only. After the calls, end your message: the results come next.
Tools:
{tools}"""
)


class Prompt:
    name: Method = "prompt"
    offers_stubs = False
    stub_kind: StubKind = "placeholder"
    runs_stubs = False
    can_force = False

    def rules(self, bindings: Sequence[Binding], choice: ToolChoice) -> list[JsonObject]:
        return []

    def run(self, turn: PreparedTurn) -> Iterator[AgentEvent]:
        turn = _tidied(turn)
        tools = {binding.stub.spec.name: binding.stub.spec for binding in turn.bindings}
        nonce = _nonce(turn.turn_id)
        guide = [Say("system", _GUIDE.format(nonce=nonce, tools=_described(tools.values())))] if tools else []
        quotes = [] if turn.arrived else turn.marked([quoted(result) for result in turn.news.results], "result-")
        past, context = StoredMessages(turn), ContextEditor(turn)
        run = _begun(turn, past, context, guide, [*quotes, *turn.says])
        for corrections in range(CORRECTIONS + 1):
            text = TaggedText(nonce, tools)
            wrong: list[TaggedCall] = []
            last: Stopped | None = None
            called = False
            for event in _read(run, text):
                if isinstance(event, TaggedCall):
                    wrong.append(event)
                elif isinstance(event, Stopped):
                    last = event
                elif not isinstance(event, ToolCall) or turn.parallel or not called:
                    called = called or isinstance(event, ToolCall)
                    yield event
            if called or not wrong or corrections == CORRECTIONS:
                break
            correction = Say("system", f"Your call was not made: {wrong[0].fault}. Write it again, corrected.")
            run = ended_at(turn, sent(turn, past, context, [correction]))
        if tools:
            _forget_guide(turn, context.before)
        context.drop_nudge()
        yield last or Stopped("end_turn")


def _begun(
    turn: PreparedTurn, past: StoredMessages, context: ContextEditor, guide: Sequence[Say], says: Sequence[Say]
) -> Iterator[AgentEvent]:
    """The run that the news begins; where all of it had arrived before, the answer that the client missed, if any."""
    missed = [] if says else past.answer(past.told(), called_by_return=False)
    return iter(missed) if missed else ended_at(turn, sent(turn, past, context, [*guide, *says] or [context.nudge()]))


def _nonce(turn_id: str) -> str:
    """Made of the turn's id, which nobody else knows: so a repeat can read the calls in an answer that was missed."""
    return hashlib.sha256(turn_id.encode()).hexdigest()[:8] if turn_id else secrets.token_hex(4)


def _read(events: Iterator[AgentEvent], text: TaggedText) -> Iterator[AgentEvent | TaggedCall]:
    for event in events:
        if isinstance(event, Text):
            yield from _told_apart(text.feed(event.text))
        elif isinstance(event, Stopped):
            yield from _told_apart(text.end())
            yield event
        else:
            yield event


def _told_apart(parts: Iterator[str | TaggedCall]) -> Iterator[AgentEvent | TaggedCall]:
    for part in parts:
        if isinstance(part, str):
            yield Text(part)
        elif part.fault:
            yield part
        else:
            yield ToolCall(f"call_{secrets.token_hex(12)}", part.name, part.arguments)


def _described(tools: Iterable[ToolSpec]) -> str:
    rows = [{"name": tool.name, "description": tool.description, "parameters": tool.parameters or {}} for tool in tools]
    return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)


def _forget_guide(turn: PreparedTurn, before: Sequence[str]) -> None:
    """The guide is the first message after those that were there before; a compaction may have taken it already."""
    after = turn.gateway.agent(turn.agent.id).message_ids
    if len(after) > len(before) and tuple(after[: len(before)]) == tuple(before):
        kept = [*before, *after[len(before) + 1 :]]
        turn.gateway.change_agent(turn.agent.id, AgentChange(message_ids=kept))


def _tidied(turn: PreparedTurn) -> PreparedTurn:
    """The turn without the guide of a turn that was broken off."""
    if turn.unsettled is None:
        return turn
    guides = {row.id for row in StoredMessages(turn).rows if row.kind == SYSTEM and _BEGIN in row.text}
    if not guides:
        return turn
    kept = [message_id for message_id in turn.agent.message_ids if message_id not in guides]
    return replace(turn, agent=turn.gateway.change_agent(turn.agent.id, AgentChange(message_ids=kept)))
