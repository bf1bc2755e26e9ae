"""Attempts at turns with an agent of the in-memory Letta."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from app import assemble_parts
from bridge.config import Settings
from bridge.errors import LettaUnreachable
from bridge.letta.gateway import Results, Say, StoredMessage
from bridge.turn import (
    AgentCall,
    MethodChosen,
    NewInput,
    Stopped,
    Text,
    ToolCall,
    ToolResult,
    ToolsOffered,
    ToolSpec,
    Turn,
    TurnEvent,
    UserMessage,
)
from tests.fake_agent import new_id
from tests.fakes import FakeGateway, ScriptedStep

TURN = Turn("Ada", NewInput((UserMessage("Hello"),)), (ToolSpec("weather"),), id="turn-1")
CUT = LettaUnreachable("cut", code="stream_cut")


class Attempts:
    def __init__(self, letta: FakeGateway, settings: Settings) -> None:
        self._letta = letta
        self.conversation = assemble_parts(settings, letta).conversation
        (self.agent,) = letta._agents.values()

    def run(self, turn: Turn) -> list[TurnEvent]:
        events = self.conversation.events(turn, threading.Event())
        return [event for event in events if not isinstance(event, MethodChosen | ToolsOffered)]

    def repeat(self, turn: Turn) -> list[TurnEvent]:
        return self.run(replace(turn, repeated=True))

    def lose(self, turn: Turn, *steps: ScriptedStep) -> None:
        """The connection breaks after these steps."""
        self._letta.will(*steps, CUT)
        with pytest.raises(LettaUnreachable):
            self.run(turn)

    def stores(self, kind: str, text: str = "") -> Callable[[], StoredMessage]:
        """A step: Letta stores a message."""
        return lambda: self.agent.store(StoredMessage(new_id("message"), kind, text=text))

    def answers(self, text: str) -> Callable[[], StoredMessage]:
        return self.stores("assistant_message", text)


def call_of(tool: str, arguments: str = "{}") -> AgentCall:
    return AgentCall(new_id("message"), new_id("call"), tool, arguments, held=True)


def calls(letta: FakeGateway, tool: str) -> None:
    """The agent's next run ends with a call."""
    letta.will(call_of(tool), Stopped("requires_approval"))


def with_result(turn: Turn, events: Sequence[TurnEvent], text: str) -> Turn:
    """The client's next turn: the result of the only call in these events."""
    (call,) = [event for event in events if isinstance(event, ToolCall)]
    result = ToolResult(call.id, text, name=call.name, arguments=call.arguments)
    return replace(turn, new_input=NewInput((), (result,), opens_conversation=False), id=f"{turn.id}-next")


def called(events: Sequence[TurnEvent]) -> list[str]:
    return [event.name for event in events if isinstance(event, ToolCall)]


def texts(events: Sequence[TurnEvent]) -> list[str]:
    return [event.text for event in events if isinstance(event, Text)]


def sent(letta: FakeGateway) -> list[str]:
    return [text for prompt in letta.prompts for text in prompt.texts]


def sent_results(letta: FakeGateway) -> list[Any]:
    """Answers to held calls, and messages that quote results."""
    parts = [part for prompt in letta.prompts for part in prompt.messages]
    return [p for p in parts if isinstance(p, Results) or (isinstance(p, Say) and '"tool_result"' in p.text)]
