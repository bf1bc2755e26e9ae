"""The seam for the APIs that clients speak: all that the rest of the bridge knows of them.

A dialect is a translation and nothing else. It is pure: it makes a `Turn` from a request's JSON, and bytes from the
agent's events. To add one, write a class for each of the two protocols and a route in web/.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from bridge.errors import BridgeError
from bridge.turn import AgentEvent, JsonObject, SideRule, Turn


class Reply(Protocol):
    """Writes the reply to one request. A stream calls `frames` for each event and `end` at last; `body` is its fold."""

    def frames(self, event: AgentEvent) -> Iterable[bytes]:
        """What the client is sent for the event; nothing for events that concern only the agent and its server."""

    def end(self) -> Iterable[bytes]:
        """What ends a stream in which nothing failed."""

    def failure(self, failure: BridgeError) -> Iterable[bytes]:
        """What ends a stream that failed after its first byte: never an end that looks like success."""

    def body(self, events: Iterable[AgentEvent]) -> JsonObject:
        """The reply to a request that wants no stream."""


@dataclass(frozen=True, slots=True)
class ParsedRequest:
    """A request as a turn, and what writes the reply to it."""

    turn: Turn
    reply: Reply


class Dialect(Protocol):
    """One API. `name` stands in records and logs."""

    name: str

    def parse(self, body: JsonObject, *, aside: bool = False) -> ParsedRequest:
        """The request, checked. `aside`: a header says that it must not reach the agent's memory.

        Raises InvalidRequest, which names the field that is wrong.
        """

    def identity_fields(self, body: JsonObject) -> JsonObject:
        """The fields in which two requests have to be equal to be the same request, sent again."""

    def finish_reason(self, stop_reason: str, called: bool) -> str:
        """How the client is told that a run ended: Letta's reason in the dialect's words. `called`: with tool calls."""

    def error(self, failure: BridgeError) -> JsonObject:
        """The body of an error reply."""


@dataclass(frozen=True, slots=True)
class RequestRules:
    """What a dialect has to know of the settings: limits of a request, and how requests aside are recognised."""

    most_tools: int = 512
    longest_result: int = 1_000_000
    image_urls: bool = False
    side_rules: Sequence[SideRule] = ()
