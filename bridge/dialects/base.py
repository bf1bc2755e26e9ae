"""Defines what a dialect is: the API that a kind of clients speaks, such as OpenAI's Chat Completions.

A dialect only translates: it makes a `Turn` from a request's JSON, and bytes from the agent's events. The rest of the
bridge knows dialects only by this module. To add a dialect, write a class for each of the two protocols, and a route
in web/.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from bridge.errors import BridgeError
from bridge.turn import AgentEvent, JsonObject, SideRule, Turn


class Reply(Protocol):
    """Writes the reply to one request: as a stream (`frames` for each event, then `end`), or as one JSON `body`."""

    def frames(self, event: AgentEvent) -> Iterable[bytes]:
        """Returns a stream's bytes for one event: none if the event concerns only the agent and its server."""

    def end(self) -> Iterable[bytes]:
        """Returns the last bytes of a stream in which nothing failed."""

    def failure(self, failure: BridgeError) -> Iterable[bytes]:
        """Returns the last bytes of a stream that failed after its first byte. They must not look like success."""

    def body(self, events: Iterable[AgentEvent]) -> JsonObject:
        """Returns the whole reply as one JSON object, for a request that wants no stream."""


@dataclass(frozen=True, slots=True)
class ParsedRequest:
    """A client's request as a `Turn`, and the writer of the reply."""

    turn: Turn
    reply: Reply


class Dialect(Protocol):
    """Translates between one API and the bridge. `name` is the API's name in records and logs."""

    name: str

    def parse(self, body: JsonObject, *, aside: bool = False) -> ParsedRequest:
        """Translates the JSON of a request. Raises InvalidRequest, which names the wrong field.

        `aside`: a header of the request says that it must not reach the agent's memory.
        """

    def identity_fields(self, body: JsonObject) -> JsonObject:
        """Returns the fields by which the bridge recognises a request that a client sends again."""

    def finish_reason(self, stop_reason: str, called: bool) -> str:
        """Translates the `stop_reason` of Letta's run into the dialect's word. `called`: the reply has tool calls."""

    def error(self, failure: BridgeError) -> JsonObject:
        """Returns the JSON body of an error reply."""


@dataclass(frozen=True, slots=True)
class RequestRules:
    """The settings for all dialects: the limits of a request, and the rules by which side requests are recognised."""

    most_tools: int = 512
    longest_result: int = 1_000_000
    image_urls: bool = False
    side_rules: Sequence[SideRule] = ()
