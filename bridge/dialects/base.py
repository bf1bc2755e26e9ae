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
    """Writes the reply to one request: as a stream (`frames` for each event, then `end`), or as one JSON `body`.

    bridge/web/listener.py calls these methods, while it sends the reply to the client.
    """

    def frames(self, event: AgentEvent) -> Iterable[bytes]:
        """Returns the bytes of a stream for one event. Empty if the event concerns only the agent and its server."""

    def end(self) -> Iterable[bytes]:
        """Returns the last bytes of a stream in which nothing failed."""

    def failure(self, failure: BridgeError) -> Iterable[bytes]:
        """Returns the last bytes of a stream that failed after its first byte, instead of `end`.

        A client must not be able to take these bytes for a complete reply.
        """

    def body(self, events: Iterable[AgentEvent]) -> JsonObject:
        """Returns the whole reply as one JSON object, for a request that wants no stream."""


@dataclass(frozen=True, slots=True)
class ParsedRequest:
    """What a client's request asks, as a `Turn`, and the `Reply` that writes the answer to the request."""

    turn: Turn
    reply: Reply


class Dialect(Protocol):
    """Translates between one API and the bridge. `name` is the API's name in records and logs."""

    name: str

    def parse(self, body: JsonObject, *, aside: bool = False) -> ParsedRequest:
        """Translates the JSON of a request. Raises InvalidRequest, which names the wrong field, if the JSON is invalid.

        `aside`: a header of the request says that it must not reach the agent's memory.
        """

    def identity_fields(self, body: JsonObject) -> JsonObject:
        """Returns the fields of a request by which the bridge recognises that a client sends the request again.

        If two requests of a client have the same values in all these fields, the second may be a repeat of the first.
        """

    def finish_reason(self, stop_reason: str, called: bool) -> str:
        """Translates the `stop_reason` of Letta's run into the dialect's word, for the record of the turn.

        `called`: the reply has tool calls.
        """

    def error(self, failure: BridgeError) -> JsonObject:
        """Returns the JSON body of the error reply for `failure`."""


@dataclass(frozen=True, slots=True)
class RequestRules:
    """The settings for all dialects: the limits of a request, and the rules by which side requests are recognised.

    - `most_tools`: the most tools in a request.
    - `longest_result`: the most characters in the result of a tool.
    - `image_urls`: a picture may be given by its web address.
    - `side_rules`: the first rule that fits a request counts.
    """

    most_tools: int = 512
    longest_result: int = 1_000_000
    image_urls: bool = False
    side_rules: Sequence[SideRule] = ()
