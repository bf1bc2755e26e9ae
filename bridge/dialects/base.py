"""Defines what a dialect is: the API that a kind of clients speaks, such as OpenAI's Chat Completions.

A dialect only translates: a request's JSON into a `Turn`, and the agent's events into bytes. The rest of the bridge
knows dialects only by this module. To add one, write a class for each of the two protocols, and a route in web/.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from bridge.errors import BridgeError
from bridge.turn import AgentEvent, JsonObject, SideRule, Turn


class Reply(Protocol):
    """Writes the reply to one request: as a stream (`frames` for each event, then `end`), or as one JSON `body`.
    `breaks_connection`: clients ask again after a broken connection, but not after `failure`; so a temporary failure
    in the middle of a stream breaks the connection.
    """

    breaks_connection: bool

    def begin(self, turn_id: str) -> None:
        """Says which turn the reply is of; several requests may get one turn's reply. Called before all others."""

    def frames(self, event: AgentEvent) -> Iterable[bytes]:
        """Returns the bytes of a stream for one event. Empty if the event concerns only the agent and its server."""

    def ping(self) -> Iterable[bytes]:
        """Returns bytes that keep a quiet stream open."""

    def end(self) -> Iterable[bytes]:
        """Returns the last bytes of a stream in which nothing failed."""

    def failure(self, failure: BridgeError) -> Iterable[bytes]:
        """Returns the last bytes of a stream that failed after its first byte. They must not look like a normal end."""

    def body(self, events: Iterable[AgentEvent]) -> JsonObject:
        """Returns the whole reply as one JSON object, for a request that wants no stream."""


@dataclass(frozen=True, slots=True)
class ParsedRequest:
    """What a client's request asks, and the `Reply` that writes the answer to it."""

    turn: Turn
    reply: Reply


class Dialect(Protocol):
    """Translates between one API and the bridge. `name` is the API's name in records and logs."""

    name: str

    def parse(self, body: JsonObject, *, aside: bool = False) -> ParsedRequest:
        """Translates a request. Raises InvalidRequest, which names the wrong field, if the JSON is invalid. `aside`: a
        header says that the request must not reach the agent's memory.
        """

    def identity_fields(self, body: JsonObject, turn: Turn) -> JsonObject:
        """Returns the fields that stay the same in a repeated request, so that the bridge recognises the repeat. `turn`
        is what `parse` made of the body.
        """

    def finish_reason(self, stop_reason: str, called: bool) -> str:
        """Translates the `stop_reason` of Letta's run, for the turn's record. `called`: the reply has tool calls."""

    def error(self, failure: BridgeError) -> JsonObject:
        """Returns the JSON body of the error reply for `failure`."""


@dataclass(frozen=True, slots=True)
class RequestRules:
    """The settings for all dialects: the most tools in a request, the most characters in a tool's result, whether a
    picture may be given by its web address, and the rules for side requests, of which the first that fits counts.
    """

    most_tools: int = 5_000
    longest_result: int = 1_000_000
    image_urls: bool = False
    side_rules: Sequence[SideRule] = ()
