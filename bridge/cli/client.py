"""The smallest client of the bridge. Read it to learn the protocol, or to write your own client.
The client sends a message, runs the tool calls of the reply and sends their results, until the agent answers.
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
# Runs a tool call: (name, arguments) -> (what the tool returned, whether the tool worked).
Run = Callable[[str, Json], tuple[str, bool]]


class RequestFailed(Exception):
    """The bridge did not answer a request, or answered with an error."""


@dataclass(frozen=True, slots=True)
class BridgeClient:
    """Sends requests to the bridge at `url`. Without a key, `key` is "". A silence of `seconds` is a failure."""

    url: str
    key: str = ""
    seconds: float = 600.0

    def stream_chunks(self, body: Json) -> Iterator[Json]:
        """Sends a request and yields the chunks of its streamed reply. Raises RequestFailed for every failure."""
        try:
            yield from self._request_chunks(body)
        except (OSError, http.client.HTTPException, ValueError) as fault:
            raise RequestFailed(f"The bridge at {self.url} does not answer as it should: {fault}") from fault

    def _request_chunks(self, body: Json) -> Iterator[Json]:
        place = urlsplit(self.url)
        kind = http.client.HTTPSConnection if place.scheme == "https" else http.client.HTTPConnection
        connection = kind(place.netloc, timeout=self.seconds)
        headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {self.key}"} if self.key else {})}
        try:
            path = f"{place.path.rstrip('/')}/v1/chat/completions"
            connection.request("POST", path, json.dumps({**body, "stream": True}).encode(), headers)
            with connection.getresponse() as answer:
                if answer.status != 200:
                    raise RequestFailed(_error_message(answer.read().decode("utf-8", "replace")))
                yield from _decode_chunks(iter(lambda: answer.read1(65536), b""))
        finally:
            connection.close()


def _decode_chunks(pieces: Iterator[bytes]) -> Iterator[Json]:
    """Yields the chunks of a streamed reply, which arrives in `pieces` of any size."""
    for _, data in sse.decode_events(pieces):
        if data == sse.DONE:
            return
        chunk = json.loads(data)
        if "error" in chunk:
            raise RequestFailed(str(chunk["error"]["message"]))
        yield chunk
    raise RequestFailed("The reply was cut off.")


def _error_message(text: str) -> str:
    try:
        return str(json.loads(text)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return f"This is not the bridge: {text:.200}"


@dataclass(slots=True)
class Reply:
    """One reply of the agent, put together from its chunks. `calls` are the tool calls by their index in the reply."""

    text: str = ""
    calls: dict[int, Json] = field(default_factory=dict)

    def add_delta(self, delta: Mapping[str, Any]) -> str:
        """Adds the `delta` of a chunk to the reply. Returns its text, "" if there is none."""
        piece = delta.get("content") or ""
        self.text += piece
        for part in delta.get("tool_calls", ()):
            call = self.calls.setdefault(part["index"], {"id": "", "name": "", "arguments": ""})
            call["id"] += part.get("id", "")
            call["name"] += part["function"].get("name", "")
            call["arguments"] += part["function"].get("arguments", "")
        return piece

    def as_message(self) -> Json:
        """Returns the reply as the assistant's message, which the next request must contain."""
        calls = [
            {"id": one["id"], "type": "function", "function": {"name": one["name"], "arguments": one["arguments"]}}
            for one in self.calls.values()
        ]
        return {"role": "assistant", "content": self.text or None, **({"tool_calls": calls} if calls else {})}


@dataclass(slots=True)
class Talk:
    """A conversation with one agent. `run` runs the agent's tool calls; `on_text` gets each piece of text at once.
    `messages` is the conversation so far, which every request sends.
    """

    bridge: BridgeClient
    agent: str
    tools: Sequence[Json]
    run: Run
    on_text: Callable[[str], None]
    messages: list[Json] = field(default_factory=list)

    def say(self, text: str, most_turns: int) -> bool:
        """Sends a text and runs the agent's tool calls. Returns False if the agent has no answer after `most_turns`."""
        self.messages.append({"role": "user", "content": text})
        for _ in range(most_turns):
            reply = self._send_messages()
            self.messages.append(reply.as_message())
            if not reply.calls:
                return True
            self.messages += [self._result_message(call) for call in reply.calls.values()]
        return False

    def _send_messages(self) -> Reply:
        reply = Reply()
        body: Json = {"model": self.agent, "messages": self.messages}
        for chunk in self.bridge.stream_chunks({**body, **({"tools": list(self.tools)} if self.tools else {})}):
            for choice in chunk["choices"]:
                if piece := reply.add_delta(choice["delta"]):
                    self.on_text(piece)
        return reply

    def _result_message(self, call: Json) -> Json:
        """Returns the message with the result of a tool call. Arguments that are not a JSON object are not run."""
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
