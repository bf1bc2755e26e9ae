"""The interface of the interception methods, the turn that such a method gets, and functions that they share."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Protocol

from bridge.catalogue.access import ToolAccess
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

# The text that a call returns until the client gives its result, and for ever if the client never gives it. Nothing is
# wrong then: the client may say the result in a message, or the call may itself be what the client wanted.
NO_RESULT = PLACEHOLDER
# What NO_RESULT was in earlier releases. Agents may still have it in their contexts.
OLD_NO_RESULT = "No result was given: the client went on without running this call."
# The text that a call returns if the client's result can only come as a message.
NO_RESULT_HERE = "The client runs this call itself. Its result, if there is one, comes as a message."
# The text of a message that makes the agent go on. Needed where the agent does not go on after a result alone.
GO_ON = "[The tool has returned.]"


@dataclass(frozen=True, slots=True)
class PreparedTurn:
    """A turn as an interception method gets it: the agent has the tools of the request, no message has been sent yet.
    - `bindings`: the client's tools as the agent has them.
    - `opening`: messages to send before the user's messages.
    - `unfinished_stubs`: the agent's stubs in the previous turn if that may have been broken off; None if it ended.
    - `turn_id`: begins the ids (otid) of this turn's messages on the Letta server; "" for messages without ids.
    - `made_with`: the last message with which the agent was made for this turn; "" if it is older than the turn.
    - `access`: the tools among `bindings` by which the agent reaches tools that it does not have; None if it has all.
    - `delivered`: an earlier attempt delivered the messages of this turn, so `new_input` does not have them any more.
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
    made_with: str = ""
    access: ToolAccess | None = None
    delivered: bool = False

    @property
    def messages(self) -> list[Say]:
        """The messages of this turn to send to the agent: the opening ones, the unheard ones, then the user's."""
        said = (*self.new_input.unheard, *self.new_input.user_messages)
        messages = enumerate([*self.opening, *(Say(one.role, one.text, one.images) for one in said)])
        return [replace(message, otid=self._otid(str(number))) for number, message in messages]

    def quote_otid(self, call_id: str) -> str:
        """Returns the id of the message that quotes the result of this call."""
        return self._otid(quote_mark(call_id))

    def _otid(self, name: str) -> str:
        """Returns the id for a message of this turn, to find it later; "" for none."""
        return f"{self.turn_id}-{name}" if self.turn_id else ""

    def has_sent(self, otid: str) -> bool:
        """Returns whether an attempt at this turn sent the stored message with the id `otid`."""
        return is_of_turn(otid, self.turn_id)

    def remove_messages(self, message_ids: Collection[str]) -> PreparedTurn:
        """Removes the messages from the agent's context; they stay stored. Returns the turn with the changed agent."""
        if not message_ids:
            return self
        kept = [message_id for message_id in self.agent.message_ids if message_id not in message_ids]
        return replace(self, agent=self.gateway.change_agent(self.agent.id, AgentChange(message_ids=kept)))

    @property
    def bindings_by_name(self) -> Mapping[str, Binding]:
        """The bindings of the client's tools by the stub names, which the agent's model sees."""
        return {binding.stub.name: binding for binding in self.bindings}

    @property
    def last_message_id(self) -> str:
        """The id of the last message in the agent's context, "" if the context is empty."""
        return self.agent.message_ids[-1] if self.agent.message_ids else ""

    def start_run(self, outgoing: Sequence[Outgoing], client_tools: Sequence[JsonObject] = ()) -> Iterator[AgentEvent]:
        """Sends the messages, waits for an event after RunStarted, so that early failures are raised here, and returns
        all events. `client_tools` are for this run only.
        """
        events = self.gateway.send_messages(self.agent.id, outgoing, by_token=self.by_token, client_tools=client_tools)
        return _wait_for_first_event(events)

    def call_for_client(self, call: AgentCall, message_id: str) -> ToolCall:
        """Returns a call of a stub as a call of the client's tool. Its id contains the Letta message `message_id`."""
        binding = self.bindings_by_name[call.name]
        arguments = restore_arguments(binding.stub, call.arguments)
        return ToolCall(self.call_ids.id_in_message(message_id, call.index), binding.stub.spec.name, arguments)


class Interception(Protocol):
    """A way to catch the agent's calls of client tools and to give the agent their results.
    - `offers_stubs`: the client's tools are stubs on the Letta server. If not, `run` sends the tools to Letta itself.
    - `stub_kind`: what the code of a stub returns: a fixed text, or the client's result.
    - `can_force`: the model can be made to call a certain tool, or any tool, as `tool_choice` asks.
    """

    name: Method
    offers_stubs: bool = True
    stub_kind: StubKind = "placeholder"
    runs_stubs: bool = False
    can_force: bool = True

    def tool_rules(self, bindings: Sequence[Binding], choice: ToolChoice) -> list[JsonObject]:
        """Returns the tool rules that the agent gets together with the stubs, before `run`, in Letta's JSON."""
        return []

    def run(self, turn: PreparedTurn) -> Iterator[AgentEvent]:
        """Gives the agent results and messages, and yields its reply, with ToolCall for the client's calls."""


def gating_rules(bindings: Sequence[Binding], choice: ToolChoice) -> list[JsonObject]:
    """Returns tool rules by which Letta holds each call of a stub for an approval, and those of `forcing_rules`."""
    gates: list[JsonObject] = [{"type": "requires_approval", "tool_name": binding.stub.name} for binding in bindings]
    return [*gates, *forcing_rules(bindings, choice)]


def forcing_rules(bindings: Sequence[Binding], choice: ToolChoice) -> list[JsonObject]:
    """Returns rules for the first step that `choice` asks for: Letta then offers only tools with run_first."""
    required, named = choice.mode == "required", choice.mode == "function"
    chosen = [b for b in bindings if required or (named and b.stub.spec.name == choice.name)]
    return [{"type": "run_first", "tool_name": binding.stub.name} for binding in chosen]


def find_provisional_text(returned: str) -> str | None:
    """Returns the provisional text at a return's end, if any: Letta puts its own words before the text of a denial."""
    return next((text for text in (NO_RESULT, NO_RESULT_HERE, OLD_NO_RESULT) if returned.endswith(text)), None)


def is_of_turn(otid: str, turn_id: str) -> bool:
    """Returns whether an attempt at the turn sent the stored message with the id `otid`; "" is no turn."""
    return bool(turn_id) and otid.startswith(f"{turn_id}-")


def quote_mark(call_id: str) -> str:
    """Returns how the id (otid) of every message ends that quotes the result of this call, whatever its turn."""
    return f"result-{call_id}"


def _wait_for_first_event(events: Iterator[AgentEvent]) -> Iterator[AgentEvent]:
    """Reads events until the first that is not RunStarted. Returns an iterator over all events, also those read."""
    first: list[AgentEvent] = []
    for event in events:
        first.append(event)
        if not isinstance(event, RunStarted):
            break
    return chain(first, events)
