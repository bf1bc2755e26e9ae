"""A turn's events and its end as texts for the store, and back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from bridge import errors
from bridge.turn import AgentEvent

_KINDS: dict[str, Any] = {kind.__name__: kind for kind in get_args(AgentEvent)}


@dataclass(frozen=True, slots=True)
class End:
    """How a turn ended.

    `incomplete`: its events were too many to be kept. `lost`: the worker that ran it is gone. `abandoned`: no client
    waited for it any more.
    """

    how: Literal["well", "failed", "incomplete", "lost"]
    failure: errors.BridgeError | None = None
    abandoned: bool = False


@dataclass(frozen=True, slots=True)
class Batch:
    """Some events in their order, the end if they are the last, and how many of the turn came before them."""

    events: tuple[AgentEvent, ...]
    end: End | None = None
    first: int = 0


def to_text(events: Sequence[AgentEvent], end: End | None = None, first: int = 0) -> str:
    packed = [[type(event).__name__, *(getattr(event, name) for name in event.__slots__)] for event in events]
    return json.dumps([first, packed, None if end is None else [end.how, end.abandoned, _failure_fields(end.failure)]])


def from_text(text: str) -> Batch:
    first, packed, end = json.loads(text)
    events = tuple(_KINDS[kind](*fields) for kind, *fields in packed)
    return Batch(events, None if end is None else End(end[0], _failure(end[2]), end[1]), first)


class Assembly:
    """A turn put together from its batches as they are in the store.

    One whose writing was not confirmed is written again and may then be there twice, or come late, behind the end. A
    store that lost what it had goes on with a later one: such a turn is not whole.
    """

    def __init__(self) -> None:
        self._looked_at = 0
        self._events = 0
        self._torn = False
        self._end: End | None = None

    @property
    def end(self) -> End | None:
        """How the turn ended, if it has; a part of it never ended well."""
        if self._torn and self._end is not None and self._end.how == "well":
            return replace(self._end, how="incomplete")
        return self._end

    def add(self, texts: Sequence[str]) -> list[AgentEvent]:
        """The events that are new among all batches that there are now."""
        fresh: list[AgentEvent] = []
        if len(texts) < self._looked_at:
            self._looked_at = 0
        for batch in map(from_text, texts[self._looked_at :]):
            at = self._events + len(fresh)
            self._torn = self._torn or batch.first > at
            fresh += batch.events[at - batch.first :] if batch.first <= at else ()
            self._end = batch.end or self._end
        self._looked_at = len(texts)
        self._events += len(fresh)
        return fresh


def _failure_fields(failure: errors.BridgeError | None) -> list[Any] | None:
    if failure is None:
        return None
    return [type(failure).__name__, failure.message, failure.param, failure.code, failure.retry_after]


def _failure(fields: list[Any] | None) -> errors.BridgeError | None:
    if fields is None:
        return None
    kind, message, param, code, retry_after = fields
    made: errors.BridgeError = getattr(errors, kind)(message, param=param, code=code, retry_after=retry_after)
    return made


def as_failure(fault: BaseException) -> errors.BridgeError:
    """What others are told of it: a fault of the bridge is told by the log of the worker that had it."""
    return fault if isinstance(fault, errors.BridgeError) else errors.InternalFailure("The bridge failed in this turn.")
