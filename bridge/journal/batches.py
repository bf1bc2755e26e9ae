"""Turns the events of an attempt at a turn, and its end, into texts for the store and back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from bridge import errors
from bridge.turn import AgentEvent, Notice

_KINDS: dict[str, Any] = {kind.__name__: kind for kind in get_args(AgentEvent)}


@dataclass(frozen=True, slots=True)
class End:
    """How an attempt at a turn ended. `failure` is the error as clients see it. `gone`: no client waited any more.
    "incomplete": the attempt ended well, but the store does not have all its events, because they were too large or the
    store lost some. "lost": the worker that made the attempt is dead.
    """

    how: Literal["well", "failed", "incomplete", "lost"]
    failure: errors.BridgeError | None = None
    gone: bool = False


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive events of an attempt. `first` counts the events before them; `end` is set in the last batch."""

    events: tuple[AgentEvent, ...]
    end: End | None = None
    first: int = 0


def batch_to_text(events: Sequence[AgentEvent], end: End | None = None, first: int = 0) -> str:
    packed = [[type(event).__name__, *(getattr(event, name) for name in event.__slots__)] for event in events]
    return json.dumps([first, packed, None if end is None else [end.how, end.gone, _failure_fields(end.failure)]])


def batch_from_text(text: str) -> Batch:
    first, packed, end = json.loads(text)
    events = tuple(_event_from_fields(kind, fields) for kind, *fields in packed)
    return Batch(events, None if end is None else End(end[0], _failure_from_fields(end[2]), end[1]), first)


def _event_from_fields(kind: str, fields: Sequence[Any]) -> AgentEvent:
    """Returns the event. During a deploy, another version of the bridge may write events or fields unknown here."""
    known = _KINDS.get(kind)
    if known is None:
        return Notice(f"{kind}: an event of another version of the bridge")
    event: AgentEvent = known(*fields[: len(known.__slots__)])
    return event


class Assembly:
    """Puts the events of an attempt together from its batches in the store.
    A write that the store did not confirm is repeated. So a batch may be in the store twice, or come late, after the
    end. If the store lost its data in between, its first batch may be a later one, and the attempt has a gap until the
    earlier events are written again.
    """

    def __init__(self) -> None:
        self._looked_at = 0
        self._events = 0
        self._written = 0  # how many events the writer had, as far as its batches say
        self._end: End | None = None

    @property
    def end(self) -> End | None:
        """How the attempt ended, None while it goes on. An attempt that has a gap is "incomplete", not "well"."""
        if self._events < self._written and self._end is not None and self._end.how == "well":
            return replace(self._end, how="incomplete")
        return self._end

    def add(self, texts: Sequence[str]) -> list[AgentEvent]:
        """Returns the new events. `texts` are all batches in the store, fewer than before if the store lost some."""
        fresh: list[AgentEvent] = []
        if len(texts) < self._looked_at:
            self._looked_at = 0
        for batch in map(batch_from_text, texts[self._looked_at :]):
            at = self._events + len(fresh)
            self._written = max(self._written, batch.first + len(batch.events))
            fresh += batch.events[at - batch.first :] if batch.first <= at else ()
            self._end = batch.end or self._end
        self._looked_at = len(texts)
        self._events += len(fresh)
        return fresh


def failure_from_fault(fault: BaseException) -> errors.BridgeError:
    """Returns the error that clients see for an exception. Only the log has the details of other exceptions."""
    if isinstance(fault, errors.BridgeError):
        return fault
    return errors.InternalFailure("The bridge failed; its log says why.")


def _failure_fields(failure: errors.BridgeError | None) -> list[Any] | None:
    if failure is None:
        return None
    return [type(failure).__name__, failure.message, failure.param, failure.code, failure.retry_after]


def _failure_from_fields(fields: list[Any] | None) -> errors.BridgeError | None:
    if fields is None:
        return None
    kind, message, param, code, retry_after = fields
    # Another version of the bridge, with other names of errors, may have written the fields.
    named = getattr(errors, kind, errors.InternalFailure)
    failure: errors.BridgeError = named(message, param=param, code=code, retry_after=retry_after)
    return failure
