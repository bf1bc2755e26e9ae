"""The smallest client of the bridge. Read it to learn the protocol, or to write your own client.
The client sends a message, runs the tool calls of the reply and sends their results, until the agent answers.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

from bridge import sse

Json = dict[str, Any]
# Runs a tool call: (name, arguments) -> (what the tool returned, whether the tool worked).
Run = Callable[[str, Json], tuple[str, bool]]
OTHER_BRIDGE = " `make run` starts a bridge; `--url` or BRIDGE_URL names another one."


class RequestFailed(Exception):
    """The bridge did not answer a request, or answered with an error. `code` is the error's code, "" if it has none."""

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class BridgeClient:
    """Sends requests to the bridge at `url`, with or without `/v1`. Without a key, `key` is "". A silence of `seconds`
    is a failure. All methods raise RequestFailed for every failure.
    """

    url: str
    key: str = ""
    seconds: float = 600.0

    def stream_chunks(self, body: Json) -> Iterator[Json]:
        """Sends a request and yields the chunks of its streamed reply."""
        with self._answer("POST", "chat/completions", {**body, "stream": True}) as answer:
            yield from _decode_chunks(iter(lambda: answer.read1(65536), b""))

    def list_agents(self) -> list[str]:
        """Returns the agents that this client may talk to, as they are named in requests."""
        with self._answer("GET", "models") as answer:
            text = answer.read().decode("utf-8", "replace")
        try:
            return [str(model["id"]) for model in json.loads(text)["data"]]
        except (ValueError, KeyError, TypeError):
            raise _failure(text) from None

    def check_agent(self, name: str) -> None:
        """Raises RequestFailed if there is no agent with this name or id."""
        with self._answer("GET", f"models/{quote(name, safe='')}"):
            """The status says all."""

    @contextmanager
    def _answer(self, method: str, path: str, body: Json | None = None) -> Iterator[http.client.HTTPResponse]:
        """Sends a request and yields its answer, with the status 200."""
        try:
            with self._connection() as (connection, folder):
                connection.request(
                    method, f"{folder}/v1/{path}", json.dumps(body).encode() if body else None, self._headers
                )
                with connection.getresponse() as answer:
                    if answer.status != 200:
                        raise _failure(answer.read().decode("utf-8", "replace"))
                    yield answer
        except (OSError, http.client.HTTPException, ValueError) as fault:
            raise RequestFailed(
                f"The bridge at {self.url} does not answer as it should: {fault}.{OTHER_BRIDGE}"
            ) from fault

    @contextmanager
    def _connection(self) -> Iterator[tuple[http.client.HTTPConnection, str]]:
        """Yields a connection to the bridge, and the path below which the bridge serves."""
        place = urlsplit(self.url if "://" in self.url else f"http://{self.url}")
        kind = http.client.HTTPSConnection if place.scheme == "https" else http.client.HTTPConnection
        with closing(kind(place.netloc, timeout=self.seconds)) as connection:
            yield connection, place.path.rstrip("/").removesuffix("/v1")

    @property
    def _headers(self) -> dict[str, str]:
        return {"Content-Type": "application/json", **({"Authorization": f"Bearer {self.key}"} if self.key else {})}


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


def _failure(text: str) -> RequestFailed:
    """Returns the failure that the body of an answer describes."""
    try:
        error = json.loads(text)["error"]
        return RequestFailed(str(error["message"]), str(error.get("code") or ""))
    except (ValueError, KeyError, TypeError):
        return RequestFailed(f"This is not the bridge: {text:.200}")


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
