"""A client of the bridge, as small as one can be: asks, runs the calls that come back, gives the results, until the
answer is there. It shows the protocol; whoever writes a client of his own can begin here.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from bridge import sse

Json = dict[str, Any]
# (name, arguments) -> (what the tool returned, whether it worked)
Run = Callable[[str, Json], tuple[str, bool]]


class Refused(Exception):
    """The bridge did not answer, or answered with an error."""


@dataclass(frozen=True, slots=True)
class Bridge:
    """Where it is, and the key that it wants."""

    url: str
    key: str = ""
    seconds: float = 600.0

    def stream(self, body: Json) -> Iterator[Json]:
        """The chunks of one reply."""
        try:
            yield from self._stream(body)
        except (OSError, http.client.HTTPException, ValueError) as fault:
            raise Refused(f"The bridge at {self.url} does not answer as it should: {fault}") from fault

    def _stream(self, body: Json) -> Iterator[Json]:
        place = urlsplit(self.url)
        kind = http.client.HTTPSConnection if place.scheme == "https" else http.client.HTTPConnection
        connection = kind(place.netloc, timeout=self.seconds)
        headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {self.key}"} if self.key else {})}
        try:
            path = f"{place.path.rstrip('/')}/v1/chat/completions"
            connection.request("POST", path, json.dumps({**body, "stream": True}).encode(), headers)
            with connection.getresponse() as answer:
                if answer.status != 200:
                    raise Refused(_error_in(answer.read().decode("utf-8", "replace")))
                yield from _chunks(iter(lambda: answer.read1(65536), b""))
        finally:
            connection.close()


def _chunks(pieces: Iterator[bytes]) -> Iterator[Json]:
    for _, data in sse.decode(pieces):
        if data == sse.DONE:
            return
        chunk = json.loads(data)
        if "error" in chunk:
            raise Refused(str(chunk["error"]["message"]))
        yield chunk
    raise Refused("The reply was cut off.")


def _error_in(text: str) -> str:
    try:
        return str(json.loads(text)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return f"This is not the bridge: {text:.200}"


@dataclass(slots=True)
class Reply:
    """One reply, put together from its chunks: `tool_calls` come in pieces, told apart by their index."""

    text: str = ""
    calls: dict[int, Json] = field(default_factory=dict)

    def take(self, delta: Mapping[str, Any]) -> str:
        """Add a piece; the text in it."""
        piece = delta.get("content") or ""
        self.text += piece
        for part in delta.get("tool_calls", ()):
            call = self.calls.setdefault(part["index"], {"id": "", "name": "", "arguments": ""})
            call["id"] += part.get("id", "")
            call["name"] += part["function"].get("name", "")
            call["arguments"] += part["function"].get("arguments", "")
        return piece

    def message(self) -> Json:
        """As it goes back to the bridge with the next request."""
        calls = [
            {"id": one["id"], "type": "function", "function": {"name": one["name"], "arguments": one["arguments"]}}
            for one in self.calls.values()
        ]
        return {"role": "assistant", "content": self.text or None, **({"tool_calls": calls} if calls else {})}


@dataclass(slots=True)
class Talk:
    """A conversation with one agent. `hear` is given every piece of text as it comes."""

    bridge: Bridge
    agent: str
    tools: Sequence[Json]
    run: Run
    hear: Callable[[str], None]
    messages: list[Json] = field(default_factory=list)

    def say(self, text: str, most_turns: int) -> bool:
        """Go on until the agent has answered; False when it still calls tools after so many turns."""
        self.messages.append({"role": "user", "content": text})
        for _ in range(most_turns):
            reply = self._turn()
            self.messages.append(reply.message())
            if not reply.calls:
                return True
            self.messages += [self._result(call) for call in reply.calls.values()]
        return False

    def _turn(self) -> Reply:
        reply = Reply()
        body: Json = {"model": self.agent, "messages": self.messages}
        for chunk in self.bridge.stream({**body, **({"tools": list(self.tools)} if self.tools else {})}):
            for choice in chunk["choices"]:
                piece = reply.take(choice["delta"])
                if piece:
                    self.hear(piece)
        return reply

    def _result(self, call: Json) -> Json:
        try:
            arguments = json.loads(call["arguments"] or "{}")
        except ValueError:
            arguments = None
        if isinstance(arguments, dict):
            text, worked = self.run(call["name"], arguments)
        else:
            text, worked = "The arguments are not a JSON object.", False
        result = {"role": "tool", "tool_call_id": call["id"], "content": text}
        return result if worked else {**result, "is_error": True}
