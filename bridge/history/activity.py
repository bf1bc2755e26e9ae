"""Keeps in the store what the turns of all workers did, for 30 days. This history may be lost without harm.

Several workers change the same JSON documents. So the documents are small, and changed by compare and swap.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import asdict, replace
from typing import Any

from bridge.errors import StoreUnavailable
from bridge.history.periods import HOUR, MINUTE, Period, joined, period_from_row, period_to_row, period_with
from bridge.history.records import (
    PastCall,
    Step,
    ToolCard,
    ToolUse,
    TurnRecord,
    WorkerRecord,
    record_from_row,
    record_from_text,
    record_to_row,
    record_to_text,
    records_from_texts,
)
from bridge.store.heartbeat import beats_of_living_workers
from bridge.store.port import Add, Append, Change, Put, Remove, RemoveList, Store
from bridge.turn import JsonObject

MOST_TURNS = 300
MOST_TURNS_OF_AN_AGENT = 50
MOST_CALLS_OF_A_TOOL = 60
MOST_TOOLS = 2_000
MINUTES_KEPT = 2 * 3_600.0
KEPT = 30 * 86_400.0
# Seconds after which a worker's list of running turns expires. While turns run, the worker writes the list more often.
RUNNING_SHOWN = 5.0
TRIES = 50
# The key of the counter that grows when the history changes.
CHANGES = "history changes"

# How long the counts of a period are kept, by its length.
_PERIODS = {MINUTE: MINUTES_KEPT, HOUR: KEPT}

Document = dict[str, Any]
Digests = Mapping[str, str]
EndedTurn = tuple[TurnRecord, Digests]


class Activity:
    """Writes and reads the history of all workers. Recorders write to it; pages and commands read it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    # --- written --------------------------------------------------------------------------------------

    def show_running(self, worker_id: str, turns: Sequence[TurnRecord]) -> None:
        """Writes the list of the turns that run in the worker now. The list expires after RUNNING_SHOWN seconds."""
        self._store.put(f"running {worker_id}", json.dumps([record_to_row(turn) for turn in turns]), RUNNING_SHOWN)

    def keep_ended_turns(self, turns: Sequence[EndedTurn]) -> Set[str]:
        """Stores turns that ended, with one read and one write. Returns the digests of tools without counts: new ones,
        or lost ones.
        """
        appended = [change for turn, digests in turns for change in _appended(turn, digests)]
        periods = [(*period, ended) for period, ended in _turns_by_period([turn for turn, _ in turns]).items()]
        keys = [_period_key(start, length) for start, length, _ in periods]
        counted = [*keys, "tools"] if any(digests for _, digests in turns) else keys
        for _ in range(TRIES):  # by compare and swap
            before = dict(zip(counted, self._store.get_all(*counted), strict=True))
            changes: list[Change] = [*appended, Add(CHANGES, 1, KEPT)]
            changes += [
                _put_document(key, _counted_period(before[key], start, length, ended), _PERIODS[length])
                for key, (start, length, ended) in zip(keys, periods, strict=True)
            ]
            fresh: Set[str] = frozenset()
            if "tools" in before:
                uses, fresh, dropped = _counted_uses(before["tools"], turns)
                changes.append(_put_document("tools", uses, KEPT))
                changes += [change for digest in dropped for change in _forgotten(digest)]
            if self._store.change(changes, unchanged=before):
                return fresh
        raise StoreUnavailable("Other workers changed the counts in the bridge's store too often.")

    def keep_cards(self, cards: Iterable[ToolCard]) -> None:
        """Stores descriptions of clients' tools. A known tool keeps its `since`, the time when it was first offered."""
        by_key = {f"tool {card.digest}": card for card in cards}
        texts = self._store.get_all(*by_key)
        known = [None if text is None else record_from_text(ToolCard, text) for text in texts]
        kept = [
            card if old is None else replace(card, since=old.since)
            for card, old in zip(by_key.values(), known, strict=True)
        ]
        self._store.change([Put(key, record_to_text(card), KEPT) for key, card in zip(by_key, kept, strict=True)])

    def note_action(self, at: float, text: str) -> None:
        """Stores what the operator did, in words, at the Unix time `at`. The last 50 actions are kept."""
        action = json.dumps({"at": at, "text": text})
        self._store.change([Append("actions", action, 50, KEPT), Add(CHANGES, 1, KEPT)])

    # --- read -----------------------------------------------------------------------------------------

    def version(self) -> str:
        """Returns a text that changes when turns begin, go on or end, with an action of the operator, and with a worker
        that comes or goes. It costs a few reads, however long the history is.
        """
        workers = [beat.id for beat in beats_of_living_workers(self._store)]
        running = self._store.get_all(CHANGES, *(f"running {worker_id}" for worker_id in workers))
        return "\n".join([*workers, *(text or "[]" for text in running)])

    def newest_turns(self) -> list[TurnRecord]:
        """Returns the last MOST_TURNS turns that ended, the newest first."""
        return records_from_texts(TurnRecord, reversed(self._store.items("turns")))

    def newest_turns_of_agent(self, agent_id: str) -> list[TurnRecord]:
        """Returns the agent's last turns that ended, the newest first, without side requests."""
        return records_from_texts(TurnRecord, reversed(self._store.items(f"turns {agent_id}")))

    def workers(self) -> list[WorkerRecord]:
        """Returns the workers that are alive, each with the turns that it runs now, the newest worker first."""
        return [
            WorkerRecord(beat.id, beat.host, beat.pid, beat.started, beat.seen, self._running_turns_in(beat.id))
            for beat in beats_of_living_workers(self._store)
        ]

    def _running_turns_in(self, worker_id: str) -> tuple[TurnRecord, ...]:
        rows = json.loads(self._store.get(f"running {worker_id}") or "[]")
        return tuple(record_from_row(TurnRecord, row) for row in rows)

    def running_turns(self) -> list[TurnRecord]:
        """Returns the turns that run now in all workers, the newest first."""
        turns = [turn for worker in self.workers() for turn in worker.running]
        return sorted(turns, key=lambda turn: turn.started, reverse=True)

    def busy_agents(self) -> dict[str, tuple[TurnRecord, str]]:
        """Returns, by agent id, the turn that runs now and the worker that runs it, as "host:pid"."""
        return {
            turn.agent_id: (turn, f"{worker.host}:{worker.pid}")
            for worker in self.workers()
            for turn in worker.running
            if turn.agent_id
        }

    def tool_card(self, digest: str) -> ToolCard | None:
        text = self._store.get(f"tool {digest}")
        return None if text is None else record_from_text(ToolCard, text)

    def tool_uses(self) -> dict[str, ToolUse]:
        """Returns, by digest, how often each tool was offered, called and answered."""
        return {digest: record_from_row(ToolUse, row) for digest, row in self._read_document("tools").items()}

    def newest_calls_of_tool(self, digest: str) -> list[PastCall]:
        """Returns the last calls of a tool, the newest first. A `result` is None if the client has not returned it."""
        found: dict[str, Document] = {}
        for entry in map(json.loads, self._store.items(f"calls {digest}")):
            found[entry["call_id"]] = found.get(entry["call_id"], {}) | entry
        return [record_from_row(PastCall, row) for row in reversed(found.values()) if "at" in row]

    def periods(self, now: float, length: int, count: int) -> list[Period]:
        """Returns the last `count` periods until the Unix time `now`, the oldest first. They begin at multiples of
        `length`, which is a multiple of MINUTE within the last hour and of HOUR within KEPT.
        """
        unit = MINUTE if length < HOUR else HOUR
        many = length // unit
        last = int(now // length)
        starts = range((last - count + 1) * length, (last + 1) * length, unit)
        texts = self._store.get_all(*(_period_key(start, unit) for start in starts))
        units = [
            period_from_row(json.loads(text or "{}"), start, unit) for start, text in zip(starts, texts, strict=True)
        ]
        groups = [units[place : place + many] for place in range(0, len(units), many)]
        return [joined(group, group[0].start, length) for group in groups]

    def newest_actions(self) -> list[JsonObject]:
        """Returns what the operator did, the newest action first, each with the fields `at` and `text`."""
        return [json.loads(entry) for entry in reversed(self._store.items("actions"))]

    def _read_document(self, key: str) -> Document:
        document: Document = json.loads(self._store.get(key) or "{}")
        return document


def _appended(turn: TurnRecord, digests: Digests) -> Iterator[Append]:
    """Yields the changes that add a turn, and its calls and results, to the lists that have them."""
    text = record_to_text(turn)
    yield Append("turns", text, MOST_TURNS, KEPT)
    if turn.agent_id and not turn.aside:
        yield Append(f"turns {turn.agent_id}", text, MOST_TURNS_OF_AN_AGENT, KEPT)
    for step in (*turn.returned, *turn.calls):
        if step.name in digests:
            entry = json.dumps(_call_entry(turn, step))
            yield Append(f"calls {digests[step.name]}", entry, MOST_CALLS_OF_A_TOOL, KEPT)


def _forgotten(digest: str) -> tuple[Remove, RemoveList]:
    """Returns the changes that remove what is known about a tool."""
    return Remove(f"tool {digest}"), RemoveList(f"calls {digest}")


def _put_document(key: str, document: Document, keep: float) -> Put:
    return Put(key, json.dumps(document, separators=(",", ":")), keep)


def _turns_by_period(turns: Iterable[TurnRecord]) -> dict[tuple[int, int], list[TurnRecord]]:
    """Returns the turns by start and length of the minute and of the hour in which each ended."""
    found: dict[tuple[int, int], list[TurnRecord]] = {}
    for turn in turns:
        for length in _PERIODS:
            start = int((turn.started + turn.seconds) // length) * length
            found.setdefault((start, length), []).append(turn)
    return found


def _counted_period(text: str | None, start: int, length: int, ended: Sequence[TurnRecord]) -> Document:
    before = period_from_row(json.loads(text or "{}"), start, length)
    return period_to_row(period_with(before, ended))


def _counted_uses(text: str | None, turns: Sequence[EndedTurn]) -> tuple[Document, Set[str], Set[str]]:
    """Returns the counts of MOST_TOOLS tools with these turns, the digests of tools that had no counts, and of tools
    that have none any more.
    """
    uses: Document = json.loads(text or "{}")
    before = frozenset(uses)
    kept = _newest_uses(_add_to_uses(uses, turns))
    return kept, kept.keys() - before, uses.keys() - kept.keys()


def _call_entry(turn: TurnRecord, step: Step) -> JsonObject:
    """Returns what the store keeps of a call or a result. The `call_id` of both is the same, which joins them."""
    at = turn.started + step.at
    if step.kind == "result":
        mark = {"looks_wrong": True} if step.looks_wrong else {}
        return {"call_id": step.call_id, "result": step.text, "ok": step.ok, "answered": at, **mark}
    who = {"agent_id": turn.agent_id, "agent_name": turn.agent_name, "turn_id": turn.id}
    return {"call_id": step.call_id, "at": at, "arguments": step.text, **who}


def _period_key(start: int, length: int) -> str:
    return f"{'minute' if length == MINUTE else 'hour'} {start // length}"


def _add_to_uses(uses: Document, turns: Iterable[EndedTurn]) -> Document:
    """Returns the counts of each tool, by the tool's digest, with these turns added. Changes the rows in place, because
    a turn may offer hundreds of tools.
    """
    for turn, digests in turns:
        last = round(turn.started + turn.seconds, 3)
        for name, digest in digests.items():
            use = uses.get(digest)
            if use is None:
                use = uses[digest] = asdict(ToolUse(client_name=name, method=turn.method, since=turn.started))
            use["offers"] = use.get("offers", 0) + 1
            use["method"], use["last"] = turn.method, last
        for step in (*turn.calls, *turn.returned):
            if step.name in digests:
                _add_call_or_result(uses[digests[step.name]], step)
    return uses


def _add_call_or_result(use: Document, step: Step) -> None:
    counts = {"calls": step.kind == "call", "results": step.kind == "result"}
    counts |= {"errors": step.kind == "result" and not step.ok, "look_wrong": step.looks_wrong}
    for count, by in counts.items():
        use[count] = use.get(count, 0) + by


def _newest_uses(uses: Document) -> Document:
    """Returns the counts of the MOST_TOOLS tools that were used last."""
    newest = sorted(uses, key=lambda digest: float(uses[digest]["last"]))[-MOST_TOOLS:]
    return {digest: uses[digest] for digest in newest}
