"""Defines the records of turns, tools, calls and workers, and turns records into texts for the store and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Literal, TypeVar

from bridge.turn import JsonObject

# Outcomes of turns that did not fail, in records of bridge versions that did not write `ended` yet. The last of these
# records expires 30 days after an update.
_OLD_GOOD_OUTCOMES = frozenset({"answer", "calls", "nothing"})

StepKind = Literal[
    "sync",
    "notice",
    "result",
    "thought",
    "own call",
    "own return",
    "call",
    "looked up",
    "said",
    "asked again",
    "answer",
    "failed",
]
# A turn that waited for fewer seconds did not really wait.
LEAST_WAIT = 0.001


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happened in a turn, `at` seconds after the turn began. `text` may be cut.
    `size` counts the characters of the whole text, or for "sync", when the agent got the turn's tools, these tools.
    "looked up": the agent looked for tools that it does not have; the text has what it gave, and then the answer.
    "said" are the agent's words where the client got others, and "asked again" what was wrong with them.
    `ok` is false if a tool or the turn failed, or these words. `looks_wrong`: a result that is no error by the API, but
    reads like one. `call_id` is "" if the step is not a call or a result.
    """

    at: float
    kind: StepKind
    name: str = ""
    text: str = ""
    size: int = 0
    ok: bool = True
    call_id: str = ""
    looks_wrong: bool = False


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """What is known about one attempt at a turn. `outcome` is "running", the finish reason that the client saw,
    "client_gone", or the code of the error that ended the attempt. `ended`: no error ended the attempt, so no other
    attempt repeats its calls and results. Counts: `tools` the client's tools, `called` the calls for the client,
    `results` the results from the client, `told` the older messages that the agent was told,
    `chat` how the context changed for the turn's chat, "" if it did not (see MethodChosen),
    `behind_search` the tools of the client that the agent could only find,
    `closed_calls` earlier calls that no client has to answer any more,
    `own_calls` the calls of the agent's own tools, `characters` the characters of the answer. `reply_format`: whether
    the answer has the form that the client wants, "valid", "invalid" or "unchecked"; "" if it may have any form.
    `waits` has the seconds of waiting by their cause (WaitCause). `user_words` is the beginning of the user's message.
    """

    id: str
    started: float
    model: str
    dialect: str = ""
    request_id: str = ""
    run_id: str = ""
    key_name: str = ""
    agent_id: str = ""
    agent_name: str = ""
    agent_type: str = ""
    method: str = ""
    outcome: str = "running"
    ended: bool = False
    message: str = ""
    seconds: float = 0.0
    letta_calls: int = 0
    letta_seconds: float = 0.0
    waited_seconds: float = 0.0
    waits: Mapping[str, float] = field(default_factory=dict)
    stubs_put: int = 0
    tools: int = 0
    results: int = 0
    told: int = 0
    chat: str = ""
    behind_search: int = 0
    called: int = 0
    closed_calls: int = 0
    own_calls: int = 0
    characters: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    streamed: bool = False
    aside: bool = False
    reply_format: str = ""
    user_words: str = ""
    steps: tuple[Step, ...] = ()

    @property
    def failed(self) -> bool:
        return not self.ended and self.outcome not in {"running", *_OLD_GOOD_OUTCOMES}

    @property
    def bridge_seconds(self) -> float:
        """The seconds of the attempt in which neither Letta worked nor the attempt waited for a lock."""
        return max(0.0, self.seconds - self.letta_seconds - self.waited_seconds)

    @property
    def waited_for(self) -> str:
        """What the attempt waited for, the longest wait first; "" if it did not wait."""
        longest_first = sorted(self.waits.items(), key=lambda item: -item[1])
        return ", ".join(cause for cause, seconds in longest_first if seconds >= LEAST_WAIT)

    @property
    def calls(self) -> list[Step]:
        return [step for step in self.steps if step.kind == "call"]

    @property
    def looked_up(self) -> list[Step]:
        return [step for step in self.steps if step.kind == "looked up"]

    @property
    def returned(self) -> list[Step]:
        """The steps that are results from the client."""
        return [step for step in self.steps if step.kind == "result"]


@dataclass(frozen=True, slots=True)
class ToolCard:
    """A client's tool as offered, and as Letta gets it. `since` is a Unix time, `changes` says what differs."""

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
    """Counts a tool's uses from Unix time `since` to `last`. `method` is the last turn's interception method.
    `errors` are results that are errors by the client's API, `look_wrong` others that read like errors.
    """

    client_name: str
    method: str = ""
    since: float = 0.0
    offers: int = 0
    calls: int = 0
    results: int = 0
    errors: int = 0
    look_wrong: int = 0
    last: float = 0.0


@dataclass(frozen=True, slots=True)
class PastCall:
    """One call of a client's tool at the Unix time `at`, with its result, which came at `answered`, or None."""

    call_id: str
    at: float
    agent_id: str = ""
    agent_name: str = ""
    turn_id: str = ""
    arguments: str = ""
    result: str | None = None
    ok: bool = True
    looks_wrong: bool = False
    answered: float = 0.0


@dataclass(frozen=True, slots=True)
class WorkerRecord:
    """A worker and the turns that run in it now. `started` and `seen` are the Unix times of its start and last beat."""

    id: str
    host: str
    pid: int
    started: float
    seen: float
    running: tuple[TurnRecord, ...] = ()


Record = TypeVar("Record")

# Fields of records that contain lists of other records.
_FIELDS_WITH_RECORDS: Mapping[str, type[Any]] = {"steps": Step}


def record_to_text(record: Any) -> str:
    """Returns the JSON text that the store keeps for a record of any class of this module."""
    return json.dumps(record_to_row(record), separators=(",", ":"))


def record_to_row(record: Any) -> JsonObject:
    """Returns the record's JSON object, without the fields that have their default: most fields of most steps."""
    row: dict[str, Any] = {}
    for item in fields(record):
        value = getattr(record, item.name)
        default = item.default_factory() if item.default_factory is not MISSING else item.default
        if value != default:
            row[item.name] = [record_to_row(one) for one in value] if item.name in _FIELDS_WITH_RECORDS else value
    return row


def record_from_text(kind: type[Record], text: str) -> Record:
    return record_from_row(kind, json.loads(text))


def records_from_texts(kind: type[Record], texts: Iterable[str]) -> list[Record]:
    return [record_from_text(kind, text) for text in texts]


def record_from_row(kind: type[Record], row: Mapping[str, Any]) -> Record:
    """Returns a record from its JSON object. Ignores unknown fields, which another version of the bridge may write."""
    known = {item.name for item in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: _field_value(name, value) for name, value in row.items() if name in known})


def _field_value(name: str, value: Any) -> Any:
    """Returns the field's value from its JSON value. Lists become tuples; the items of `steps` become records."""
    if not isinstance(value, list):
        return value
    kind = _FIELDS_WITH_RECORDS.get(name)
    return tuple(value if kind is None else (record_from_row(kind, row) for row in value))
