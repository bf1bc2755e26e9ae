"""The smallest client of the bridge: it sends a message, runs the calls of the reply and sends their results, until the
agent answers. Read it to learn the protocol, or to write your own client.
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


class RequestFailed(Exception):
    """The bridge did not answer, or answered with an error."""


@dataclass(frozen=True, slots=True)
class Bridge:
    """The bridge's address, and a key for it."""

    url: str
    key: str = ""
    seconds: float = 600.0

    def stream(self, body: Json) -> Iterator[Json]:
        """Yields the chunks of one reply."""
        try:
            yield from self._stream(body)
        except (OSError, http.client.HTTPException, ValueError) as fault:
            raise RequestFailed(f"The bridge at {self.url} does not answer as it should: {fault}") from fault

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
                    raise RequestFailed(_error_in(answer.read().decode("utf-8", "replace")))
                yield from _chunks(iter(lambda: answer.read1(65536), b""))
        finally:
            connection.close()


def _chunks(pieces: Iterator[bytes]) -> Iterator[Json]:
    for _, data in sse.decode_events(pieces):
        if data == sse.DONE:
            return
        chunk = json.loads(data)
        if "error" in chunk:
            raise RequestFailed(str(chunk["error"]["message"]))
        yield chunk
    raise RequestFailed("The reply was cut off.")


def _error_in(text: str) -> str:
    try:
        return str(json.loads(text)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return f"This is not the bridge: {text:.200}"


@dataclass(slots=True)
class Reply:
    """One reply, put together from its chunks. Calls come in pieces, which have the call's index."""

    text: str = ""
    calls: dict[int, Json] = field(default_factory=dict)

    def add(self, delta: Mapping[str, Any]) -> str:
        """Adds a piece, and returns the text in it."""
        piece = delta.get("content") or ""
        self.text += piece
        for part in delta.get("tool_calls", ()):
            call = self.calls.setdefault(part["index"], {"id": "", "name": "", "arguments": ""})
            call["id"] += part.get("id", "")
            call["name"] += part["function"].get("name", "")
            call["arguments"] += part["function"].get("arguments", "")
        return piece

    def message(self) -> Json:
        """Returns the message that goes back to the bridge with the next request."""
        calls = [
            {"id": one["id"], "type": "function", "function": {"name": one["name"], "arguments": one["arguments"]}}
            for one in self.calls.values()
        ]
        return {"role": "assistant", "content": self.text or None, **({"tool_calls": calls} if calls else {})}


@dataclass(slots=True)
class Talk:
    """A conversation with one agent. `on_text` gets every piece of text as it comes."""

    bridge: Bridge
    agent: str
    tools: Sequence[Json]
    run: Run
    on_text: Callable[[str], None]
    messages: list[Json] = field(default_factory=list)

    def say(self, text: str, most_turns: int) -> bool:
        """Continues until the agent answers. Returns False if it still calls tools after `most_turns`."""
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
                if piece := reply.add(choice["delta"]):
                    self.on_text(piece)
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
