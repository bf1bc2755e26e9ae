"""Keeps responses in the store for a while, so that the client that asked for one can read it again."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from bridge.errors import StoreUnavailable, UnknownResponse
from bridge.store.port import Store
from bridge.turn import JsonObject

log = logging.getLogger(__name__)

# For so many seconds.
KEEP = 3_600.0
# Of each client the newest are kept, and only if their JSON, with that of their input, has not more characters.
MOST = 100
LONGEST = 200_000


@dataclass(frozen=True, slots=True)
class KeptResponse:
    response: JsonObject
    items: list[Any]


class KeptResponses:
    """The responses of all clients. A client is the name of a key, "" without keys; it sees only its own."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def keeper(self, client: str, items: list[Any]) -> Callable[[JsonObject], None]:
        """Returns what keeps the finished response with the items of its input. Until then, it holds their text, or
        nothing if that is too long: a response may take long, and parsed items take ten times more memory.
        """
        return _forget if _is_longer(items, LONGEST) else partial(self._keep, client, json.dumps(items))

    def _keep(self, client: str, items: str, response: JsonObject) -> None:
        """Keeps a response. Only logs a fault of the store: the client has the response."""
        text = f"[{json.dumps(response)}, {items}]"
        if len(text) > LONGEST:
            return
        try:
            index = f"responses:{client}"
            oldest = self._store.items(index)[: -MOST + 1]
            self._store.put(_key(client, response["id"]), text, KEEP)
            self._store.append(index, response["id"], MOST, KEEP)
            self._store.remove(*(_key(client, one) for one in oldest if one != response["id"]))
        except StoreUnavailable as fault:
            log.warning("a response could not be kept: %s", fault.message)

    def read(self, client: str, response_id: str) -> KeptResponse:
        """Returns a response of the client. Raises UnknownResponse if it is not kept, or another client's."""
        text = self._store.get(_key(client, response_id))
        if text is None:
            raise _unknown(response_id)
        return KeptResponse(*json.loads(text))

    def delete(self, client: str, response_id: str) -> None:
        self.read(client, response_id)
        self._store.remove(_key(client, response_id))


def _forget(response: JsonObject) -> None:
    """Keeps nothing."""


def _is_longer(value: Any, most: int) -> bool:
    """Returns whether the JSON of a value certainly has more characters. It reads only as much as that takes."""
    waiting, length = [value], 0
    while waiting and length <= most:
        item = waiting.pop()
        length += len(item) if isinstance(item, str) else 1
        if isinstance(item, dict):
            waiting += [*item.keys(), *item.values()]
        elif isinstance(item, list):
            waiting += item
    return length > most


def _key(client: str, response_id: str) -> str:
    return f"response:{client}:{response_id}"


def _unknown(response_id: str) -> UnknownResponse:
    return UnknownResponse(
        f"No response with the id {response_id!r:.100} is kept for you. Responses are kept for an hour, unless they are"
        " very long or `store` is false.",
        param="response_id",
    )
