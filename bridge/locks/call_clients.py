"""Notes in the store which client each call was given to, so that no other client answers it. The ids of calls are no
secret: whoever may see an agent can read them in its messages.
"""

from __future__ import annotations

from collections.abc import Iterable

from bridge.store.port import Put, Store
from bridge.turn import ToolCall, Turn

# For so many seconds it is known whose a call is. After that any client may answer it.
KEPT = 7 * 86_400.0


class CallClients:
    """Knows the clients by the names of their keys. Two keys with one name are one client. Calls that were made without
    a key are anybody's, and a client without a key may answer all: then the service has no keys.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def note(self, turn: Turn, calls: Iterable[ToolCall]) -> None:
        """Notes that the turn's client gets these calls."""
        self._store.change(self.notes(turn, calls))

    def notes(self, turn: Turn, calls: Iterable[ToolCall]) -> list[Put]:
        """Returns the changes of the store that note that the turn's client gets these calls."""
        messages = _message_ids(turn, (call.id for call in calls)) if turn.client else ()
        return [Put(_store_key(message_id), turn.client, KEPT) for message_id in messages]

    def is_of_another(self, client: str, message_id: str) -> bool:
        """Returns whether the calls in a message were given to another client than this one."""
        return client != "" and (self._store.get(_store_key(message_id)) or client) != client

    def calls_of_others(self, turn: Turn, call_ids: Iterable[str]) -> list[str]:
        """Returns those of the calls that were given to another client than the turn's."""
        places = {call_id: turn.call_ids.message_and_index(call_id) for call_id in call_ids} if turn.client else {}
        others = {message_id: self.is_of_another(turn.client, message_id) for message_id in _message_ids(turn, places)}
        return [call_id for call_id, place in places.items() if place is not None and others[place[0]]]


def _message_ids(turn: Turn, call_ids: Iterable[str]) -> list[str]:
    """Returns the messages that have the calls, each once. Ids of other forms are not the bridge's."""
    places = map(turn.call_ids.message_and_index, call_ids)
    return list(dict.fromkeys(place[0] for place in places if place is not None))


def _store_key(message_id: str) -> str:
    return f"call-client:{message_id}"
