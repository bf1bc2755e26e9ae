"""Recognises a request that a client sends again: the same client asks the same agent the same, as a stream or not."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Thread

from bridge.dialects.base import Dialect
from bridge.directory import Directory
from bridge.errors import InvalidRequest, LettaTimeout, UnknownModel
from bridge.journal.claims import Identity
from bridge.letta.failures import NO_ANSWER_IN_TIME
from bridge.letta.identity import ServerIdentity
from bridge.trace import bind_to_current_trace
from bridge.turn import JsonObject, Turn

KEY_HEADER = "Idempotency-Key"
LONGEST_KEY = 255
# Seconds that a request waits until Letta says which agent it means. Its client has nothing of the reply until then.
LONGEST_LOOKUP = 10.0


@dataclass(frozen=True, slots=True)
class Identities:
    """Identifies turns among those of all bridges that share a store, also of bridges in front of other Lettas."""

    directory: Directory
    server: ServerIdentity

    def identify(self, named: str, dialect: Dialect, body: JsonObject, turn: Turn) -> Identity:
        """Returns the identity of the turn that a request asks for. `named` is its Idempotency-Key, "" if missing.
        Requests of one client are the same turn if they have the same key, or without a key the same agent and content,
        in whatever order its fields are.
        """
        if len(named) > LONGEST_KEY:
            raise InvalidRequest(f"`{KEY_HEADER}` may have {LONGEST_KEY} characters at most.", param=KEY_HEADER)
        session = [turn.session] if turn.session else []
        content = [dialect.name, turn.client, turn.aside, dialect.identity_fields(body, turn), *session]
        if named:
            return Identity(_digest([self._server_id(), turn.client, named]), _digest(content), kept=True, keyed=True)
        digest = _digest([self._agent_id(turn), *content])
        return Identity(digest, digest, kept=turn.comes_once)

    def _server_id(self) -> str:
        known = self.server.known
        return _answer_in_time(self.server.read) if known is None else known

    def _agent_id(self, turn: Turn) -> str:
        """Returns the agent's id, or its name if there is no such agent: the turn then fails by itself."""
        try:
            return self.directory.known_id(turn.model) or _answer_in_time(lambda: self.directory.find_id(turn.model))
        except UnknownModel:
            return turn.model


def _answer_in_time(ask: Callable[[], str]) -> str:
    """Returns Letta's answer. Raises LettaTimeout after LONGEST_LOOKUP, while the answer is waited for in a thread: the
    same request finds it in memory later.
    """

    def look_up(answer: Future[str]) -> None:
        try:
            answer.set_result(ask())
        except BaseException as fault:
            answer.set_exception(fault)

    found: Future[str] = Future()
    Thread(target=bind_to_current_trace(look_up), args=(found,), name="identity", daemon=True).start()
    try:
        return found.result(LONGEST_LOOKUP)
    except TimeoutError:
        raise LettaTimeout(NO_ANSWER_IN_TIME, retry_after=5) from None


def _digest(value: object) -> str:
    return hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=16).hexdigest()
