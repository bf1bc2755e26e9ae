"""Keeps in the store what the turns of all workers did, for 30 days. This history may be lost without harm.

Several workers change the same JSON documents. So the documents are small, and changed by compare and swap.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
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
from bridge.store.port import Store
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

Document = dict[str, Any]
Digests = Mapping[str, str]


class Activity:
    """Writes and reads the history of all workers. Recorders write to it; pages and commands read it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    # --- written --------------------------------------------------------------------------------------

    def show_running(self, worker_id: str, turns: Sequence[TurnRecord]) -> None:
        """Writes the list of the turns that run in the worker now. The list expires after RUNNING_SHOWN seconds."""
        self._store.put(f"running {worker_id}", json.dumps([record_to_row(turn) for turn in turns]), RUNNING_SHOWN)

    def keep_ended_turns(self, turns: Sequence[tuple[TurnRecord, Digests]]) -> Set[str]:
        """Stores turns that ended. Returns the digests of tools without counts: new ones, or lost ones."""
        for turn, digests in turns:
            text = record_to_text(turn)
            self._store.append("turns", text, MOST_TURNS, KEPT)
            if turn.agent_id and not turn.aside:
                self._store.append(f"turns {turn.agent_id}", text, MOST_TURNS_OF_AN_AGENT, KEPT)
            self._keep_calls_and_results(turn, digests)
        self._count_turns([turn for turn, _ in turns])
        self._store.add_to_counter(CHANGES, 1, KEPT)
        return self._count_uses(turns) if any(digests for _, digests in turns) else frozenset()

    def _count_turns(self, turns: Sequence[TurnRecord]) -> None:
        """Adds the turns to the minute and to the hour in which each ended."""
        for length, keep in ((MINUTE, MINUTES_KEPT), (HOUR, KEPT)):
            by_start: dict[int, list[TurnRecord]] = {}
            for turn in turns:
                by_start.setdefault(int((turn.started + turn.seconds) // length) * length, []).append(turn)
            for start, ended in by_start.items():
                self._edit_document(
                    _period_key(start, length),
                    lambda row, start=start, length=length, ended=ended: period_to_row(  # type: ignore[misc]
                        period_with(period_from_row(row, start, length), ended)
                    ),
                    keep,
                )

    def keep_cards(self, cards: Iterable[ToolCard]) -> None:
        """Stores descriptions of clients' tools. A known tool keeps its `since`, the time when it was first offered."""
        for card in cards:
            known = self.tool_card(card.digest)
            kept = card if known is None else replace(card, since=known.since)
            self._store.put(f"tool {card.digest}", record_to_text(kept), KEPT)

    def note_action(self, at: float, text: str) -> None:
        """Stores what the operator did, in words, at the Unix time `at`. The last 50 actions are kept."""
        self._store.append("actions", json.dumps({"at": at, "text": text}), 50, KEPT)
        self._store.add_to_counter(CHANGES, 1, KEPT)

    def _count_uses(self, turns: Sequence[tuple[TurnRecord, Digests]]) -> Set[str]:
        """Counts the uses of the turns' tools, for MOST_TOOLS tools. Returns the digests of tools without counts."""
        fresh: Set[str] = frozenset()
        dropped: Set[str] = frozenset()

        def change(uses: Document) -> Document:
            nonlocal fresh, dropped
            before = frozenset(uses)
            kept = _newest_uses(_add_to_uses(uses, turns))
            fresh, dropped = kept.keys() - before, uses.keys() - kept.keys()
            return kept

        self._edit_document("tools", change)
        if dropped:
            self._store.remove(*(f"{kind} {digest}" for digest in dropped for kind in ("tool", "calls")))
        return fresh

    def _keep_calls_and_results(self, turn: TurnRecord, digests: Digests) -> None:
        for step in (*turn.returned, *turn.calls):
            if step.name in digests:
                key = f"calls {digests[step.name]}"
                self._store.append(key, json.dumps(_call_entry(turn, step)), MOST_CALLS_OF_A_TOOL, KEPT)

    def _edit_document(self, key: str, change: Callable[[Document], Document], keep: float = KEPT) -> None:
        """Replaces the key's JSON document ({} if missing) by `change` of it, by compare and swap in TRIES tries."""
        for _ in range(TRIES):
            old = self._store.get(key)
            new = json.dumps(change(json.loads(old) if old else {}), separators=(",", ":"))
            done = (
                self._store.put_if_free(key, new, keep) is None
                if old is None
                else self._store.replace_if_unchanged(key, old, new, keep)
            )
            if done:
                return
        raise StoreUnavailable(f"Other workers changed the document {key!r} of the bridge's store too often.")

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


def _add_to_uses(uses: Document, turns: Iterable[tuple[TurnRecord, Digests]]) -> Document:
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
