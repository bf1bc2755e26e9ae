"""Recognises a request that a client sends again: the same client asks the same agent the same, as a stream or not."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from bridge.dialects.base import Dialect
from bridge.directory import Directory
from bridge.errors import InvalidRequest, UnknownModel
from bridge.journal.claims import Identity
from bridge.letta.identity import ServerIdentity
from bridge.turn import JsonObject, Turn

KEY_HEADER = "Idempotency-Key"
LONGEST_KEY = 255


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
        content = [dialect.name, turn.client, turn.aside, dialect.identity_fields(body)]
        if named:
            return Identity(_digest([self.server.read(), turn.client, named]), _digest(content), kept=True, keyed=True)
        digest = _digest([self._agent_of(turn), *content])
        return Identity(digest, digest, kept=turn.ends_with_result)

    def _agent_of(self, turn: Turn) -> str:
        """Returns the agent's id, or its name if there is no such agent: the turn then fails by itself."""
        try:
            return self.directory.find_id(turn.model)
        except UnknownModel:
            return turn.model


def _digest(value: object) -> str:
    return hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=16).hexdigest()
