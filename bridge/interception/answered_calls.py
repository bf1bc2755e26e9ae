"""Answers the agent's calls of the tools by which it looks for tools of the client, within the same turn.

The method that catches calls catches these, too. Their answers go back to the agent as results do that a client sends
with its next request, so the model sees each answer as the return of its call.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from bridge.catalogue.access import Answer
from bridge.interception.delivered import run_method
from bridge.interception.method import Interception, PreparedTurn
from bridge.turn import AgentEvent, NewInput, Stopped, ToolCall, ToolResult, ToolsLookedUp, TurnEvent, Used, sum_used

# How many times in a turn the agent is given answers. After that, it is told to stop, and then its turn ends.
MOST_ROUNDS = 16
LAST_ROUNDS = 2
_ENOUGH = "You have looked for tools {most} times in this turn. Call a tool of the application now, or answer the user."


def run_turn(method: Interception, turn: PreparedTurn, gone: threading.Event, *, repeated: bool) -> Iterator[TurnEvent]:
    """Yields the events of the turn as `run_method` does, without the calls that the bridge answers. The turn ends when
    the agent calls a tool of the client, or calls none. Stops answering when `gone` is set: no client waits any more.
    """
    if turn.access is None:
        yield from run_method(method, turn, gone, repeated=repeated)
        return
    used: Used | None = None
    for number in range(MOST_ROUNDS + LAST_ROUNDS + 1):
        run = _Round(turn, is_late=number >= MOST_ROUNDS)
        yield from run.without_answered_calls(run_method(method, turn, gone, repeated=repeated))
        used = sum_used(used, run.used)
        if run.called or not run.answers or gone.is_set():
            break
        turn, repeated = _turn_with_answers(turn, run.answers), False
    else:
        run.stopped = Stopped("max_steps")
    if used is not None:
        yield used
    if run.stopped is not None:
        yield run.stopped


@dataclass
class _Round:
    """One run of the agent. `called`: it has called a tool of the client."""

    turn: PreparedTurn
    is_late: bool
    answers: list[ToolResult] = field(default_factory=list)
    called: bool = False
    used: Used | None = None
    stopped: Stopped | None = None

    def without_answered_calls(self, events: Iterator[AgentEvent]) -> Iterator[TurnEvent]:
        """Yields the run's events as they come, apart from its tokens and its end."""
        for event in events:
            match event:
                case ToolCall():
                    yield from self._look_at(event)
                case Used():
                    self.used = sum_used(self.used, event)
                case Stopped():
                    self.stopped = event
                case _:
                    yield event

    def _look_at(self, call: ToolCall) -> Iterator[TurnEvent]:
        answer = self.turn.access.answer(call) if self.turn.access else None
        if not isinstance(answer, Answer):
            self.called = True
            yield answer or call
            return
        if self.is_late:
            answer = Answer(_ENOUGH.format(most=MOST_ROUNDS), ok=False)
        self.answers.append(ToolResult(call.id, answer.text, not answer.ok, call.name, call.arguments))
        yield ToolsLookedUp(call.name, call.arguments, answer.brief or answer.text, answer.ok)


def _turn_with_answers(turn: PreparedTurn, answers: Sequence[ToolResult]) -> PreparedTurn:
    """Returns the turn in which the agent gets only these answers."""
    return replace(
        turn,
        agent=turn.gateway.agent(turn.agent.id),
        new_input=NewInput((), tuple(answers), opens_conversation=False),
        opening=(),
        unfinished_stubs=None,
        delivered=False,
    )
