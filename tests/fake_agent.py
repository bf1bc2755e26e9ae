"""An agent of the in-memory Letta, with Letta's rules for calls that wait for an approval."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from bridge import errors
from bridge.letta.gateway import Agent, AgentChange, AgentSummary, Outgoing, Results, Say, StoredMessage, Tool
from bridge.turn import AgentCall, AgentReturn, Message


@dataclass(slots=True)
class StoredAgent:
    """`held` is the approval request that the agent waits for, `elsewhere` ids of messages of other conversations.
    `history` is what the agent was made with.
    """

    agent: Agent
    created: int
    messages: list[StoredMessage] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    held: StoredMessage | None = None
    hidden: bool = False
    elsewhere: set[str] = field(default_factory=set)
    history: tuple[Message, ...] = ()

    @property
    def summary(self) -> AgentSummary:
        return AgentSummary(self.agent.id, self.agent.name, self.created)

    def store(self, message: StoredMessage) -> StoredMessage:
        self.messages.append(message)
        self.agent = replace(self.agent, message_ids=(*self.agent.message_ids, message.id))
        return message

    def remember(self, history: Sequence[Message]) -> None:
        """Stores the messages that the agent is made with. Calls of the last message are held."""
        self.history = tuple(history)
        for message in history:
            if message.role != "assistant":
                kind = "tool_return_message" if message.role == "tool" else "user_message"
                self.store(StoredMessage(new_id("message"), kind, text=message.text))
            elif message.text:
                self.store(StoredMessage(new_id("message"), "assistant_message", text=message.text))
            if message.tool_calls:
                message_id, waits = new_id("message"), message is history[-1]
                calls = tuple(
                    AgentCall(message_id, call.id, call.name, call.arguments, held=waits, index=index)
                    for index, call in enumerate(message.tool_calls)
                )
                kind = "approval_request_message" if waits else "tool_call_message"
                stored = self.store(StoredMessage(message_id, kind, calls))
                self.held = stored if waits else None

    def change(self, change: AgentChange, tools: Sequence[Tool]) -> None:
        """Changes the agent; lists are replaced. A held call that leaves the context is not held any more, and one that
        comes back as the last message is held again.
        """
        if change.tool_ids is not None:
            self.agent = replace(self.agent, tools=tuple(tools))
        if change.rules is not None:
            self.agent = replace(self.agent, rules=tuple(change.rules))
        if change.variables is not None:
            self.variables = dict(change.variables)
        if change.parallel_calls is not None:
            self.agent = replace(self.agent, parallel_calls=change.parallel_calls)
        if change.metadata is not None:
            self.agent = replace(self.agent, metadata=dict(change.metadata))
        if change.message_ids is not None:
            self.agent = replace(self.agent, message_ids=tuple(change.message_ids))
            if self.held is None or self.held.id not in change.message_ids:
                last = [one for one in self.messages if one.id in change.message_ids[-1:]]
                self.held = next((one for one in last if one.kind == "approval_request_message"), None)

    def take(self, messages: Sequence[Outgoing]) -> None:
        """Stores messages to the agent. While calls are held, all of them must be answered first, and no others."""
        answers = [result for one in messages if isinstance(one, Results) for result in one.results]
        if self.held is None and answers:
            raise errors.LettaRejected("No tool call is currently awaiting approval.")
        if self.held is not None and not answers:
            raise errors.LettaConflict("The agent is waiting for approval.", code="agent_waits_for_approval")
        if self.held is not None and {call.call_id for call in self.held.calls} != {one.call_id for one in answers}:
            raise errors.LettaRejected("Invalid tool call IDs.")
        self.held = None
        for answer in answers:
            self.store(StoredMessage(new_id("message"), "tool_return_message", text=answer.text))
        for one in messages:
            if isinstance(one, Say):
                self.store(StoredMessage(new_id("message"), f"{one.role}_message", text=one.text, otid=one.otid))

    def close_held(self, request_id: str, text: str) -> StoredMessage:
        """Answers the held call with a return that says `text`."""
        if self.held is None or self.held.id != request_id:
            raise errors.LettaRejected("No tool call is currently awaiting approval.")
        self.held = None
        return self.store(StoredMessage(new_id("message"), "tool_return_message", text=text))

    def rewrite(self, message_id: str, text: str) -> bool:
        for index, message in enumerate(self.messages):
            if message.id == message_id:
                self.messages[index] = replace(message, text=text)
                return True
        return False

    def record(self, event: AgentCall | AgentReturn) -> None:
        if isinstance(event, AgentReturn):
            self.store(StoredMessage(event.message_id, "tool_return_message", text=event.text))
        elif self.held is not None and self.held.id == event.message_id:
            self.held = self.messages[-1] = replace(self.held, calls=(*self.held.calls, event))
        elif event.held:
            self.held = self.store(StoredMessage(event.message_id, "approval_request_message", (event,)))
        else:
            self.store(StoredMessage(event.message_id, "tool_call_message", (event,)))
            self.move_held_to_end()

    def move_held_to_end(self) -> None:
        """Moves the approval request behind the other calls of its step, where Letta stores it."""
        if self.held is not None:
            self.messages.remove(self.held)
            self.messages.append(self.held)
            rest = (message_id for message_id in self.agent.message_ids if message_id != self.held.id)
            self.agent = replace(self.agent, message_ids=(*rest, self.held.id))


def new_id(kind: str) -> str:
    return f"{kind}-{uuid.uuid4()}"
