"""Turns with an agent that is made to try a tool, and what they bring: the call, the method, the agent's words."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from bridge.conversation import Conversation
from bridge.turn import MethodChosen, Text, ToolCall, Turn, TurnEvent, joined_text

# The system prompt of the agent.
SYSTEM = "You test a tool. Do what the user asks for."


def run_turn(conversation: Conversation, turn: Turn) -> list[TurnEvent]:
    return list(conversation.events(turn, threading.Event()))


def first_call(events: Sequence[TurnEvent]) -> ToolCall | None:
    return next((event for event in events if isinstance(event, ToolCall)), None)


def method_of(events: Sequence[TurnEvent]) -> str:
    return next((event.method for event in events if isinstance(event, MethodChosen)), "")


def text_of(events: Sequence[TurnEvent]) -> str:
    return joined_text([event for event in events if isinstance(event, Text)]).strip()
