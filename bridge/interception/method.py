"""What every method of interception is given, and what they share."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Protocol

from bridge.dialects.openai.call_ids import client_id, message_of
from bridge.errors import InvalidRequest
from bridge.letta.capabilities import Loop, ServerFeatures
from bridge.letta.gateway import Agent, Gateway, Say
from bridge.stubs.arguments import restore_arguments
from bridge.stubs.source import PLACEHOLDER
from bridge.turn import (
    AgentCall,
    AgentEvent,
    Binding,
    JsonObject,
    Method,
    NewInput,
    RunStarted,
    StubKind,
    ToolCall,
    ToolChoice,
    ToolResult,
)

# What the model is shown of a call that the client never answered, or until it does.
NO_RESULT = PLACEHOLDER
# The same where the answer can only come as a message.
NO_RESULT_HERE = "The client runs this call itself. Its result, if there is one, comes as a message."
# What makes the agent go on where a result alone does not.
GO_ON = "[The tool has returned.]"


@dataclass(frozen=True, slots=True)
class PreparedTurn:
    """One turn as its method finds it: the toolset is in place, nothing is sent yet.

    `parallel`: the client takes several calls in one reply. `unsettled` are the names of the stubs that the agent had
    in the turn before, if that one may have been broken off; None when it ended. `turn_id` marks the messages of this
    turn on the server. `arrived`: an attempt before this one brought them there, so `news` has them no more.
    """

    gateway: Gateway
    agent: Agent
    features: ServerFeatures
    loop: Loop
    bindings: Sequence[Binding]
    news: NewInput
    opening: Sequence[Say]
    by_token: bool
    parallel: bool = True
    unsettled: Collection[str] | None = None
    turn_id: str = ""
    arrived: bool = False

    @property
    def says(self) -> list[Say]:
        return self.marked([*self.opening, *(Say("user", said.text, said.images) for said in self.news.said)])

    def marked(self, says: list[Say], kind: str = "") -> list[Say]:
        """With what a repeat of this turn knows them by."""
        if not self.turn_id:
            return says
        return [replace(say, otid=f"{self.turn_id}-{kind}{number}") for number, say in enumerate(says)]

    def is_ours(self, otid: str) -> bool:
        """Whether a stored message is one of this very turn."""
        return bool(self.turn_id) and otid.startswith(f"{self.turn_id}-")

    @property
    def bound(self) -> Mapping[str, Binding]:
        """Bindings by the name that the agent's model knows them by."""
        return {binding.stub.name: binding for binding in self.bindings}

    @property
    def last_message_id(self) -> str:
        return self.agent.message_ids[-1] if self.agent.message_ids else ""


class Interception(Protocol):
    """A way to catch the agent's calls of client tools and to give it their results.

    `can_force`: it can make the model call a certain tool, or any.
    """

    name: Method
    offers_stubs: bool
    stub_kind: StubKind
    runs_stubs: bool
    can_force: bool

    def rules(self, bindings: Sequence[Binding], choice: ToolChoice) -> list[JsonObject]:
        """The tool rules that go with the stubs."""

    def run(self, turn: PreparedTurn) -> Iterator[AgentEvent]:
        """Give the agent what is new, and yield what happens; calls for the client as ToolCall."""


def forcing_rules(bindings: Sequence[Binding], choice: ToolChoice) -> list[JsonObject]:
    """Letta lets the first step call only what has a run_first rule: one for a named tool, all for "required"."""
    if choice.mode == "required":
        return [{"type": "run_first", "tool_name": binding.stub.name} for binding in bindings]
    chosen = [b for b in bindings if choice.mode == "function" and b.stub.spec.name == choice.name]
    return [{"type": "run_first", "tool_name": binding.stub.name} for binding in chosen]


def for_client(binding: Binding, call: AgentCall, message_id: str) -> ToolCall:
    """The agent's call as the client knows it; `message_id` is where its result will go."""
    arguments = restore_arguments(binding.stub, call.arguments)
    return ToolCall(client_id(message_id, call.index), binding.stub.spec.name, arguments)


def results_for(turn: PreparedTurn, message_id: str) -> dict[int, ToolResult]:
    """The results that the client gave for the calls of this message, by index; the first one of each counts."""
    found: dict[int, ToolResult] = {}
    for result in turn.news.results:
        place = message_of(result.call_id)
        if place is not None and place[0] == message_id:
            found.setdefault(place[1], result)
    return found


def refuse_stale(turn: PreparedTurn) -> None:
    """Results that belong to no waiting call are passed over beside a user's message, and refused without one."""
    if turn.news.said or turn.arrived:
        return
    named = ", ".join(repr(result.call_id)[:60] for result in turn.news.results[:5])
    raise InvalidRequest(
        f"No call is waiting for the result of {named}: it has been answered or given up, or it was never made by this"
        " agent. Send a user message to go on.",
        param="messages",
        code="no_pending_call",
    )


def provisional(text: str) -> str | None:
    """What the text of a return says if it is not yet the client's result; a denial puts words of its own before it."""
    return next((known for known in (NO_RESULT, NO_RESULT_HERE) if text.endswith(known)), None)


def begun(events: Iterator[AgentEvent]) -> Iterator[AgentEvent]:
    """The same events, after the agent gave its first sign; what fails before that is raised here."""
    ahead: list[AgentEvent] = []
    for event in events:
        ahead.append(event)
        if not isinstance(event, RunStarted):
            break
    return chain(ahead, events)
