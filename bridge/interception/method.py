"""What every method of interception is given, and small functions that they share."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Protocol

from bridge.letta.capabilities import Loop, ServerFeatures
from bridge.letta.gateway import Agent, AgentChange, Gateway, Outgoing, Say
from bridge.stubs.arguments import restore_arguments
from bridge.stubs.source import PLACEHOLDER
from bridge.turn import (
    AgentCall,
    AgentEvent,
    Binding,
    CallIds,
    JsonObject,
    Method,
    NewInput,
    RunStarted,
    StubKind,
    ToolCall,
    ToolChoice,
)

# What a call returns if the client never gives its result, and until it does.
NO_RESULT = PLACEHOLDER
# The same where the result can only come as a message.
NO_RESULT_HERE = "The client runs this call itself. Its result, if there is one, comes as a message."
# A message that makes the agent go on where a result alone does not.
GO_ON = "[The tool has returned.]"


@dataclass(frozen=True, slots=True)
class PreparedTurn:
    """One turn as its method gets it: the agent has the tools of the request, and nothing has been sent yet.

    `parallel`: the client takes several calls in one reply. `unfinished_stubs` are the names of the stubs that the
    agent had in the previous turn, if that turn may have been broken off; None if it ended. `turn_id` marks the
    messages of this turn on the server. `delivered`: an earlier attempt brought the messages of this turn to the agent,
    so `new_input` has them no longer.
    """

    gateway: Gateway
    agent: Agent
    features: ServerFeatures
    loop: Loop
    bindings: Sequence[Binding]
    new_input: NewInput
    opening: Sequence[Say]
    by_token: bool
    call_ids: CallIds
    parallel: bool = True
    unfinished_stubs: Collection[str] | None = None
    turn_id: str = ""
    delivered: bool = False

    @property
    def messages(self) -> list[Say]:
        user_messages = (Say("user", message.text, message.images) for message in self.new_input.user_messages)
        return self.with_turn_id([*self.opening, *user_messages])

    def with_turn_id(self, messages: list[Say], kind: str = "") -> list[Say]:
        """The messages with ids by which another attempt at this turn recognises them on the server."""
        if not self.turn_id:
            return messages
        return [replace(message, otid=f"{self.turn_id}-{kind}{number}") for number, message in enumerate(messages)]

    def has_sent(self, otid: str) -> bool:
        """Whether an attempt at this turn sent the stored message with this id."""
        return bool(self.turn_id) and otid.startswith(f"{self.turn_id}-")

    def remove_messages(self, message_ids: Collection[str]) -> PreparedTurn:
        """Takes the messages out of the agent's context. Returns the turn with the agent as it is then."""
        if not message_ids:
            return self
        kept = [message_id for message_id in self.agent.message_ids if message_id not in message_ids]
        return replace(self, agent=self.gateway.change_agent(self.agent.id, AgentChange(message_ids=kept)))

    @property
    def bindings_by_name(self) -> Mapping[str, Binding]:
        """The bindings by the names that the agent's model knows."""
        return {binding.stub.name: binding for binding in self.bindings}

    @property
    def last_message_id(self) -> str:
        return self.agent.message_ids[-1] if self.agent.message_ids else ""

    def start_run(self, outgoing: Sequence[Outgoing], client_tools: Sequence[JsonObject] = ()) -> Iterator[AgentEvent]:
        """Sends the messages and returns the events, once the agent did something. A failure before that is raised."""
        events = self.gateway.send_messages(self.agent.id, outgoing, by_token=self.by_token, client_tools=client_tools)
        return _wait_for_first_event(events)

    def call_for_client(self, call: AgentCall, message_id: str) -> ToolCall:
        """The agent's call as the client knows it. `message_id` is where its result will go."""
        binding = self.bindings_by_name[call.name]
        arguments = restore_arguments(binding.stub, call.arguments)
        return ToolCall(self.call_ids.id_in_message(message_id, call.index), binding.stub.spec.name, arguments)


class Interception(Protocol):
    """A way to catch the agent's calls of client tools and to give it their results.

    `can_force`: it can make the model call a certain tool, or any tool.
    """

    name: Method
    offers_stubs: bool = True
    stub_kind: StubKind = "placeholder"
    runs_stubs: bool = False
    can_force: bool = True

    def tool_rules(self, bindings: Sequence[Binding], choice: ToolChoice) -> list[JsonObject]:
        """The tool rules that the agent gets with the stubs."""
        return []

    def run(self, turn: PreparedTurn) -> Iterator[AgentEvent]:
        """Gives the agent what is new, and yields what happens. Calls for the client are ToolCall events."""


def gating_rules(bindings: Sequence[Binding], choice: ToolChoice) -> list[JsonObject]:
    """Rules by which Letta holds each call of a stub for an approval."""
    gates: list[JsonObject] = [{"type": "requires_approval", "tool_name": binding.stub.name} for binding in bindings]
    return [*gates, *forcing_rules(bindings, choice)]


def forcing_rules(bindings: Sequence[Binding], choice: ToolChoice) -> list[JsonObject]:
    """Rules that make the model's first step a call: of the named tool, or of any of the client's for "required".

    If any tool has a run_first rule, Letta lets the first step call only tools that have one.
    """
    required, named = choice.mode == "required", choice.mode == "function"
    chosen = [b for b in bindings if required or (named and b.stub.spec.name == choice.name)]
    return [{"type": "run_first", "tool_name": binding.stub.name} for binding in chosen]


def find_provisional_text(returned: str) -> str | None:
    """The text of ours that a return holds until the client's result is there; None if it is something else.

    Letta puts words of its own before the text of a denial.
    """
    return next((text for text in (NO_RESULT, NO_RESULT_HERE) if returned.endswith(text)), None)


def _wait_for_first_event(events: Iterator[AgentEvent]) -> Iterator[AgentEvent]:
    first: list[AgentEvent] = []
    for event in events:
        first.append(event)
        if not isinstance(event, RunStarted):
            break
    return chain(first, events)
