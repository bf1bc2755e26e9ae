"""A record of what happened between one agent and its clients, and what must be true of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from testbed.model.records import RecordedRequest


@dataclass(frozen=True, slots=True)
class Round:
    """One client's question, the call that it got, and the agent's answer to its result.

    `mark` is in the question, in the arguments of the call, in the result and in the answer, and nowhere else.
    """

    mark: str
    call: tuple[str, object]
    expected: tuple[str, object]
    answer: str


@dataclass(slots=True)
class History:
    """All rounds of all clients, which run in threads."""

    rounds: list[Round] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, done: Round) -> None:
        with self._lock:
            self.rounds.append(done)

    def faults(self, seen: Sequence[RecordedRequest], toolsets: Sequence[frozenset[str]]) -> list[str]:
        """Returns what was lost, mixed up, doubled or leaked. `seen` is what the model was shown, in order."""
        return [*self._mixed_up(), *self._lost_or_doubled(seen[-1]), *_leaks(seen, toolsets)]

    def _mixed_up(self) -> Iterator[str]:
        for one in self.rounds:
            if one.call != one.expected:
                yield f"{one.mark} was given the call {one.call}"
            if one.answer != result_of(one.mark):
                yield f"{one.mark} was answered {one.answer!r}"

    def _lost_or_doubled(self, last: RecordedRequest) -> Iterator[str]:
        story = last.story()
        for one in self.rounds:
            for kind, words in (("user", question_of(one.mark)), ("result", result_of(one.mark))):
                times = sum(line.startswith(kind) and words in line for line in story)
                if times != 1:
                    yield f"the model was shown {words!r} {times} times"


def _leaks(seen: Sequence[RecordedRequest], toolsets: Sequence[frozenset[str]]) -> Iterator[str]:
    """The model is offered the tools of one client at a time. A name of both clients has a suffix on the server."""
    for request in seen:
        names = {name[:-9] if name[-9:-8] == "_" else name for name in request.tools}
        of_clients = names & frozenset().union(*toolsets)
        if of_clients and of_clients not in toolsets:
            yield f"the model was offered {sorted(request.tools)}"


def question_of(mark: str) -> str:
    return f"Question {mark}."


def result_of(mark: str) -> str:
    return f"Result {mark}."
