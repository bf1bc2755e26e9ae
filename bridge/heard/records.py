"""Keeps in the store, for each agent, what it heard and said in its turns, as digests.

The agent's own messages on the Letta server tell the same, but reading them costs a call in every turn.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from functools import lru_cache
from typing import Any, Literal, get_args

from bridge.errors import StoreUnavailable
from bridge.fingerprints import LONGEST_ID, Passage, digest_bytes
from bridge.store.port import Append, Put, Store, Write

log = logging.getLogger(__name__)

# How many turns are kept for each agent, and for how many seconds after the last.
MOST_TURNS = 1_000
KEEP = 30 * 86_400.0
# How many messages, results and calls of one turn are noted, the newest ones. Later turns with the agent read all that
# is noted. What is not noted is looked for among the agent's stored messages.
MOST_NOTED = 200
# So many turns of all agents are kept in memory as they were read, if their texts are not longer than usual.
MOST_IN_MEMORY = 2_000
USUAL_LENGTH = 1_000

TurnKind = Literal["ended", "broken off", "aside", "summary"]


@dataclass(frozen=True, slots=True)
class HeardTurn:
    """What happened in one turn. If it was broken off, nobody knows whether the agent got the messages.

    - `told`: digests of the user's messages. `results`: the ids of the calls whose results the agent got.
    - `said`: the agent's text, if there was one. `calls`: the ids of its calls.
    - `history`: the name of the list of the transcript's older messages that the agent neither said nor was told as
      new ones. It knows them since it was told that they stand there. "" without such messages.
    - `transcript`: the digest of the whole transcript, see `digests_of_beginnings`.
    - `chat`: the agent's chat to which the turn belongs, "" where the agent has one for all. Only with a chat, `begins`
      is the id of the last message in the context before the turn, `turn` the turn's own id, and `after` that of the
      turn before it in the chat, "" for the first. `swap` names the change by which the chat came into the context.
    """

    kind: TurnKind
    told: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    said: Passage | None = None
    calls: tuple[str, ...] = ()
    history: str = ""
    transcript: str = ""
    chat: str = ""
    begins: str = ""
    turn: str = ""
    after: str = ""
    swap: str = ""

    def to_text(self) -> str:
        said = None if self.said is None else astuple(self.said)
        of_chat = [self.chat, self.begins, self.turn, self.after, self.swap] if self.chat else []
        return json.dumps(
            [self.kind, self.told, self.results, said, self.calls, self.history, self.transcript, *of_chat]
        )

    @classmethod
    def from_text(cls, text: str) -> HeardTurn | None:
        """Returns the turn, None for a text of another form: another version of the bridge may have written it."""
        try:
            kind, told, results, said, calls, history, transcript, *of_chat = json.loads(text)
            texts = [*told, *results, *calls, history, transcript, *of_chat]
            passage = None if said is None else _passage_of(*said)
        except (ValueError, TypeError):
            return None
        if (
            kind not in get_args(TurnKind)
            or not all(isinstance(one, str) for one in texts)
            or len(of_chat) not in (0, 5)
        ):
            return None
        return cls(kind, tuple(told), tuple(results), passage, tuple(calls), history, transcript, *of_chat)


_turn_from_usual_text = lru_cache(MOST_IN_MEMORY)(HeardTurn.from_text)


def _turn_from_text(text: str) -> HeardTurn | None:
    """Returns the turn as `from_text` does. Each turn of a conversation reads all the turns before it."""
    return _turn_from_usual_text(text) if len(text) <= USUAL_LENGTH else HeardTurn.from_text(text)


def _within_limits(turn: HeardTurn) -> HeardTurn:
    results, calls = ([one for one in ids if len(one) <= LONGEST_ID] for ids in (turn.results, turn.calls))
    return replace(
        turn,
        told=turn.told[-MOST_NOTED:],
        results=tuple(results[-MOST_NOTED:]),
        calls=tuple(calls[-MOST_NOTED:]),
    )


def _passage_of(length: Any, start: Any, digest: Any, beginnings: Any) -> Passage:
    if not isinstance(length, int) or not all(isinstance(one, str) for one in (start, digest, beginnings)):
        raise TypeError("not a passage")
    start.encode("latin-1")
    return Passage(length, start, digest, beginnings)


class HeardTurns:
    """The turns of one listener: an agent, or one conversation of an agent. `name` identifies the listener."""

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self._name = name

    def newest_first(self) -> Iterator[HeardTurn]:
        """Yields the turns that the store still has; none if the store fails: then the server is asked instead."""
        try:
            texts = self._store.items(f"heard:{self._name}")
        except StoreUnavailable as fault:
            log.warning("what an agent has heard could not be read: %s", fault.message)
            return
        yield from (turn for turn in map(_turn_from_text, reversed(texts)) if turn is not None)

    def note(self, turn: HeardTurn, history: Sequence[str] = (), write: Write | None = None) -> None:
        """Adds the newest turn, and keeps the digests of its `history`. `write` has the changes made; without it, they
        are made now. Only logs a fault of the store, because the agent has answered.
        """
        kept = []
        if history:  # the same list always has the same name
            text = " ".join(history)
            turn = replace(turn, history=digest_bytes(text.encode()))
            kept = [Put(self._history_key(turn.history), text, KEEP)]
        added = Append(f"heard:{self._name}", _within_limits(turn).to_text(), MOST_TURNS, KEEP)
        try:
            (write or self._store.change)([*kept, added])
        except StoreUnavailable as fault:
            log.warning("what an agent has heard could not be noted: %s", fault.message)

    def history(self, name: str) -> list[str]:
        """Returns the digests in a list that `note` kept; [] for the name "", or if the list is lost."""
        try:
            text = self._store.get(self._history_key(name)) if name else None
        except StoreUnavailable:
            text = None
        return [] if text is None else text.split()

    def _history_key(self, name: str) -> str:
        return f"heard-history:{self._name}:{name}"
