"""What a dialect is: the API that a kind of clients speaks. The rest of the bridge knows dialects only by this module.

A dialect translates and does nothing else. It is pure: it makes a `Turn` from a request's JSON, and bytes from the
agent's events. To add one, write a class for each of the two protocols, and a route in web/.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from bridge.errors import BridgeError
from bridge.turn import AgentEvent, JsonObject, SideRule, Turn


class Reply(Protocol):
    """Writes the reply to one request: a stream is `frames` for each event and then `end`, or `body` is all of it."""

    def frames(self, event: AgentEvent) -> Iterable[bytes]:
        """Returns the bytes for an event. There are none for events that concern only the agent and its server."""

    def end(self) -> Iterable[bytes]:
        """Returns the end of a stream in which nothing failed."""

    def failure(self, failure: BridgeError) -> Iterable[bytes]:
        """Returns the end of a stream that failed after its first byte. It must not look like success."""

    def body(self, events: Iterable[AgentEvent]) -> JsonObject:
        """Returns the reply to a request that wants no stream."""


@dataclass(frozen=True, slots=True)
class ParsedRequest:
    """A request as a turn, and the writer of its reply."""

    turn: Turn
    reply: Reply


class Dialect(Protocol):
    """One API. `name` is for records and logs."""

    name: str

    def parse(self, body: JsonObject, *, aside: bool = False) -> ParsedRequest:
        """Checks a request and translates it. `aside`: a header says that it must not reach the agent's memory.

        Raises InvalidRequest, which names the wrong field.
        """

    def identity_fields(self, body: JsonObject) -> JsonObject:
        """Returns the fields that must be equal in two requests if the second is the first, sent again."""

    def finish_reason(self, stop_reason: str, called: bool) -> str:
        """Returns Letta's reason for the end of a run in the dialect's words. `called`: it ended with tool calls."""

    def error(self, failure: BridgeError) -> JsonObject:
        """Returns the body of an error reply."""


@dataclass(frozen=True, slots=True)
class RequestRules:
    """The settings for dialects: the limits of a request, and the rules that recognise requests aside."""

    most_tools: int = 512
    longest_result: int = 1_000_000
    image_urls: bool = False
    side_rules: Sequence[SideRule] = ()
