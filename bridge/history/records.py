"""What is known of past turns, tools and calls: plain values, and the texts that they are kept as."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, TypeVar

from bridge.turn import JsonObject

StepKind = Literal["sync", "result", "thought", "own call", "own return", "call", "answer", "failed"]


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happened in a turn, `at` seconds after it began. `size` counts the characters of the whole."""

    at: float
    kind: StepKind
    name: str = ""
    text: str = ""
    size: int = 0
    ok: bool = True
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """One turn. `outcome` is "running", "answer", "calls", "nothing", or the code of the error that ended it."""

    id: str
    started: float
    model: str
    agent_id: str = ""
    agent_name: str = ""
    method: str = ""
    outcome: str = "running"
    message: str = ""
    seconds: float = 0.0
    letta_calls: int = 0
    letta_seconds: float = 0.0
    waited_seconds: float = 0.0
    tools: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    streamed: bool = False
    aside: bool = False
    steps: tuple[Step, ...] = ()

    @property
    def failed(self) -> bool:
        return self.outcome not in ("running", "answer", "calls", "nothing")

    @property
    def bridge_seconds(self) -> float:
        return max(0.0, self.seconds - self.letta_seconds - self.waited_seconds)

    @property
    def calls(self) -> list[Step]:
        return [step for step in self.steps if step.kind == "call"]

    @property
    def results(self) -> list[Step]:
        return [step for step in self.steps if step.kind == "result"]


@dataclass(frozen=True, slots=True)
class ToolCard:
    """A tool as a client offered it and as Letta gets it; `since` when the first turn with it was seen."""

    digest: str
    client_name: str
    server_name: str
    since: float
    description: str = ""
    parameters: JsonObject | None = None
    strict: bool = False
    json_schema: JsonObject = field(default_factory=dict)
    changes: tuple[str, ...] = ()
    method: str = ""


@dataclass(frozen=True, slots=True)
class ToolUse:
    """How often a tool was offered, called and answered, first at `since` and last at `last`."""

    client_name: str
    method: str = ""
    since: float = 0.0
    offers: int = 0
    calls: int = 0
    results: int = 0
    errors: int = 0
    last: float = 0.0


@dataclass(frozen=True, slots=True)
class PastCall:
    """A call of a tool, and what the client gave for it, as far as it is known by now."""

    call_id: str
    at: float
    agent_id: str = ""
    agent_name: str = ""
    turn_id: str = ""
    arguments: str = ""
    result: str | None = None
    ok: bool = True
    answered: float = 0.0


@dataclass(frozen=True, slots=True)
class Minute:
    """The turns that ended in one minute; times are sums, in seconds."""

    start: int
    turns: int = 0
    seconds: float = 0.0
    letta_seconds: float = 0.0
    waited_seconds: float = 0.0
    errors: Mapping[str, int] = field(default_factory=dict)

    @property
    def bridge_seconds(self) -> float:
        return max(0.0, self.seconds - self.letta_seconds - self.waited_seconds)


@dataclass(frozen=True, slots=True)
class Worker:
    """A process that serves, with the turns that are under way in it."""

    id: str
    host: str
    pid: int
    started: float
    seen: float
    running: tuple[TurnRecord, ...] = ()


Record = TypeVar("Record")

# Fields that hold records themselves.
_WITHIN: Mapping[str, type[Any]] = {"steps": Step, "running": TurnRecord}


def written(record: Any) -> str:
    return json.dumps(asdict(record), separators=(",", ":"))


def read(kind: type[Record], text: str) -> Record:
    return made(kind, json.loads(text))


def read_all(kind: type[Record], texts: Iterable[str]) -> list[Record]:
    return [read(kind, text) for text in texts]


def made(kind: type[Record], row: Mapping[str, Any]) -> Record:
    """Of a row's fields those that are known: another version of the bridge may have written it."""
    known = {item.name for item in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: _value(name, value) for name, value in row.items() if name in known})


def _value(name: str, value: Any) -> Any:
    if not isinstance(value, list):
        return value
    kind = _WITHIN.get(name)
    return tuple(value if kind is None else (made(kind, row) for row in value))
