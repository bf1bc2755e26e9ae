"""Notes in the store which attempts linger: their last clients left, and may send the same request again.

A new message of the same conversation says that they will not. So a turn that waits for its agent asks the lingering
attempts of its conversation to end, also those of other workers.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

from bridge.errors import StoreUnavailable
from bridge.fingerprints import ConversationMark, goes_on, mark_conversation
from bridge.journal.follower import FOLLOWED
from bridge.store.port import Store
from bridge.turn import Turn

log = logging.getLogger(__name__)

# Seconds between two looks of a waiting turn.
LOOK = 0.4
# The newest notes of an agent are enough: an agent has few conversations at once.
MOST_NOTES = 32
# Seconds that a note is kept after its attempt has ended, and seconds that a wish to end an attempt is kept. A waiting
# turn renews the wish; a client of another worker counts as a follower for FOLLOWED seconds after it left.
MARGIN = 10.0
WISHED = FOLLOWED + 2.0


@dataclass(frozen=True, slots=True)
class _Note:
    """What the store has of a lingering attempt. `began` is the Unix time at which the attempt began."""

    turn: str
    token: str
    began: float
    mark: ConversationMark

    @classmethod
    def from_text(cls, text: str) -> _Note | None:
        """Returns the note, None for a text of another form: another version of the bridge may have written it."""
        try:
            row = json.loads(text)
            client, session, length, digest, calls = (row["mark"][name] for name in ConversationMark.__slots__)
            mark = ConversationMark(str(client), str(session), int(length), str(digest), tuple(map(str, calls)))
            return cls(str(row["turn"]), str(row["token"]), float(row["began"]), mark)
        except (ValueError, TypeError, KeyError):
            return None

    def is_given_up_by(self, turn: Turn, began: float) -> bool:
        """Returns whether `turn`, which began at `began`, is a later one of the same client and conversation."""
        return self.turn != turn.id and self.began < began and goes_on(turn, self.mark)


class LingeringTurns:
    """Knows the lingering attempts of each agent. An attempt lingers at most `wait` seconds after its client left."""

    def __init__(self, store: Store, wait: float) -> None:
        self._store = store
        self._keep = wait + MARGIN

    def note(self, agent_id: str, turn: Turn, token: str, began: float) -> None:
        """Notes that the attempt with this token lingers."""
        note = _Note(turn.id, token, began, mark_conversation(turn))
        self._store.append(_notes_key(agent_id), json.dumps(asdict(note)), MOST_NOTES, self._keep)

    def earlier_turns_ender(self, agent_id: str, turn: Turn) -> Callable[[], None]:
        """Returns what a turn calls again and again while it waits: asks the lingering attempts of the turn's
        conversation to end. Looks at the store at most every LOOK seconds, and only logs its faults.
        """
        began, next_look, judged = time.time(), 0.0, dict[str, str]()

        def end_earlier_turns() -> None:
            nonlocal next_look
            if time.monotonic() < next_look:
                return
            next_look = time.monotonic() + LOOK
            try:
                for text in self._store.items(_notes_key(agent_id)):
                    if text not in judged:
                        note = _Note.from_text(text)
                        judged[text] = note.token if note is not None and note.is_given_up_by(turn, began) else ""
                    if judged[text]:
                        ask_to_end(self._store, judged[text])
            except StoreUnavailable as fault:
                log.warning("lingering turns could not be asked to end: %s", fault.message)

        return end_earlier_turns


def ask_to_end(store: Store, token: str) -> None:
    """Asks the worker that makes the attempt to end it as soon as no client waits for it."""
    store.put(_wish_key(token), "1", WISHED)


def is_asked_to_end(store: Store, token: str) -> bool:
    return store.get(_wish_key(token)) is not None


def _notes_key(agent_id: str) -> str:
    return f"lingering:{agent_id}"


def _wish_key(token: str) -> str:
    return f"end-wished:{token}"
