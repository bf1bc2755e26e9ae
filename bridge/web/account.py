"""The account of one turn: what it did, told once when it is over."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from threading import Event as Signal
from typing import Any, Protocol

from bridge.errors import BridgeError
from bridge.letta.gateway import HELPER_PREFIX
from bridge.trace import Trace, current
from bridge.turn import AgentCall, AgentEvent, Message, MethodChosen, Stopped, Text, ToolCall, Turn, Used

log = logging.getLogger("bridge.turn")

MOST_NAMES = 20
LONGEST_NAME = 80
_ENDS = {"max_steps": "length", "max_tokens_exceeded": "length"}


class Reader(Protocol):
    def __call__(self, account: Account) -> None: ...


@dataclass(slots=True)
class Account:
    """`outcome` is the finish reason, "client_gone", or the code of the error that ended the turn.

    `ended`: no error did, so the same calls and results do not come once more with another attempt.
    """

    turn: Turn
    trace: Trace
    method: str = ""
    outcome: str = "stop"
    ended: bool = False
    calls: list[str] = field(default_factory=list)
    own_calls: int = 0
    characters: int = 0
    used: Used | None = None
    seconds: float = 0.0

    def see(self, event: AgentEvent) -> None:
        match event:
            case Text(text):
                self.characters += len(text)
            case ToolCall(name=name):
                self.calls.append(name)
            case AgentCall(held=False):
                self.own_calls += 1
            case MethodChosen(method):
                self.method = method
            case Used():
                self.used = event
            case Stopped(reason):
                self.outcome = _ENDS.get(reason, "stop")
            case _:
                pass

    @property
    def aside(self) -> bool:
        """Also when a rule says so: then it is answered by a helper agent."""
        return self.turn.aside or self.trace.agent_name.startswith(HELPER_PREFIX)

    @property
    def results(self) -> int:
        """What the client gave back for calls: tool messages after the last message of the assistant."""
        fresh = takewhile(lambda message: message.role != "assistant", reversed(self.turn.messages))
        return sum(message.role == "tool" for message in fresh)

    @property
    def closed_calls(self) -> int:
        """Calls of before that are no more waited for: those of the last message of the assistant, answered or not."""
        before = (message for message in reversed(self.turn.messages) if message.role == "assistant")
        return len(next(before, Message("assistant")).tool_calls)

    @property
    def bridge_seconds(self) -> float:
        return max(0.0, self.seconds - self.trace.letta_seconds - self.trace.waited_seconds)

    def fields(self) -> dict[str, Any]:
        """As it stands in the log. Nothing of what was said; names are cut and counted."""
        trace, used = self.trace, self.used
        return {
            "outcome": self.outcome,
            "model": self.turn.model[:LONGEST_NAME],
            "agent": trace.agent_id,
            "agent_type": trace.agent_type,
            "key": trace.key_name,
            "method": self.method,
            "stream": self.turn.stream,
            "aside": self.aside,
            "tools": len(self.turn.tools),
            "results": self.results,
            "calls": [name[:LONGEST_NAME] for name in self.calls[:MOST_NAMES]],
            "own_calls": self.own_calls,
            "characters": self.characters,
            "prompt_tokens": used.prompt_tokens if used else None,
            "completion_tokens": used.completion_tokens if used else None,
            "letta_calls": trace.letta_calls,
            "stubs_put": trace.calls["PUT /v1/tools/"],
            "ms": _ms(self.seconds),
            "letta_ms": _ms(trace.letta_seconds),
            "waited_ms": _ms(trace.waited_seconds),
            "bridge_ms": _ms(self.bridge_seconds),
        }


def log_turn(account: Account) -> None:
    log.info("turn", extra={"fields": account.fields()})


def accounted(
    events: Iterable[AgentEvent], turn: Turn, gone: Signal, readers: Iterable[Reader]
) -> Iterator[AgentEvent]:
    """The same events, and the account of them for the readers, whatever ends them."""
    trace = current()
    trace.is_turn = True
    account = Account(turn, trace)
    try:
        for event in events:
            account.see(event)
            yield event
        account.ended = True
        if account.calls:
            account.outcome = "tool_calls"
    except BridgeError as failure:
        account.outcome = failure.code or "error"
        raise
    except BaseException as fault:
        account.outcome = "broken_off" if isinstance(fault, GeneratorExit) else "internal_error"
        raise
    finally:
        if gone.is_set():
            account.outcome = "client_gone"
        account.seconds = trace.seconds
        for reader in readers:
            reader(account)


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 1)
