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

from bridge.interception.context import Context
from bridge.interception.held import ended_at, sent
from bridge.interception.method import Scene
from bridge.interception.past import SYSTEM, Past
from bridge.interception.quoting import quoted
from bridge.interception.tagged import TaggedCall, TaggedText
from bridge.letta.gateway import AgentChange, Say
from bridge.turn import Binding, Event, JsonObject, Method, Stopped, StubKind, Text, ToolCall, ToolChoice, ToolSpec

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

    def play(self, scene: Scene) -> Iterator[Event]:
        scene = _tidied(scene)
        tools = {binding.stub.spec.name: binding.stub.spec for binding in scene.bindings}
        nonce = _nonce(scene.turn_id)
        guide = [Say("system", _GUIDE.format(nonce=nonce, tools=_described(tools.values())))] if tools else []
        quotes = [] if scene.arrived else scene.marked([quoted(result) for result in scene.news.results], "result-")
        past, context = Past(scene), Context(scene)
        run = _begun(scene, past, context, guide, [*quotes, *scene.says])
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
                elif not isinstance(event, ToolCall) or scene.parallel or not called:
                    called = called or isinstance(event, ToolCall)
                    yield event
            if called or not wrong or corrections == CORRECTIONS:
                break
            correction = Say("system", f"Your call was not made: {wrong[0].fault}. Write it again, corrected.")
            run = ended_at(scene, sent(scene, past, context, [correction]))
        if tools:
            _forget_guide(scene, context.before)
        context.drop_nudge()
        yield last or Stopped("end_turn")


def _begun(scene: Scene, past: Past, context: Context, guide: Sequence[Say], says: Sequence[Say]) -> Iterator[Event]:
    """The run that the news begins; where all of it had arrived before, the answer that the client missed, if any."""
    missed = [] if says else past.answer(past.told(), called_by_return=False)
    return iter(missed) if missed else ended_at(scene, sent(scene, past, context, [*guide, *says] or [context.nudge()]))


def _nonce(turn_id: str) -> str:
    """Made of the turn's id, which nobody else knows: so a repeat can read the calls in an answer that was missed."""
    return hashlib.sha256(turn_id.encode()).hexdigest()[:8] if turn_id else secrets.token_hex(4)


def _read(events: Iterator[Event], text: TaggedText) -> Iterator[Event | TaggedCall]:
    for event in events:
        if isinstance(event, Text):
            yield from _told_apart(text.feed(event.text))
        elif isinstance(event, Stopped):
            yield from _told_apart(text.end())
            yield event
        else:
            yield event


def _told_apart(parts: Iterator[str | TaggedCall]) -> Iterator[Event | TaggedCall]:
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


def _forget_guide(scene: Scene, before: Sequence[str]) -> None:
    """The guide is the first message after those that were there before; a compaction may have taken it already."""
    after = scene.gateway.agent(scene.agent.id).message_ids
    if len(after) > len(before) and tuple(after[: len(before)]) == tuple(before):
        kept = [*before, *after[len(before) + 1 :]]
        scene.gateway.change_agent(scene.agent.id, AgentChange(message_ids=kept))


def _tidied(scene: Scene) -> Scene:
    """The scene without the guide of a turn that was broken off."""
    if scene.unsettled is None:
        return scene
    guides = {row.id for row in Past(scene).rows if row.kind == SYSTEM and _BEGIN in row.text}
    if not guides:
        return scene
    kept = [message_id for message_id in scene.agent.message_ids if message_id not in guides]
    return replace(scene, agent=scene.gateway.change_agent(scene.agent.id, AgentChange(message_ids=kept)))
