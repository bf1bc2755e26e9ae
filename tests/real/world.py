"""A real Letta server with proxy, scripted model and bridge around it, and a client of the bridge."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import openai
import requests

from testbed.agents import create_agent, delete_agent
from testbed.errors import AgentFailed
from testbed.model import ScriptedModel
from testbed.proxy import FaultProxy
from testbed.server import Server
from testbed.service import Service
from tests.letta_replies import LettaReply, read_whole
from tests.letta_replies import read_stream as read_letta_stream
from tests.real import as_letta
from tests.real.as_responses import chat_message, responses_body
from tests.responses_checker import check_response, read_response_stream
from tests.sse_checker import Json, StreamedReply, check_completion, check_error, read_stream

# The API in whose words a test speaks to the bridge.
Api = Literal["chat_completions", "responses", "letta"]


@dataclass(frozen=True, slots=True)
class Reply:
    """A checked answer of the bridge, streamed or whole."""

    status: int
    headers: Mapping[str, str]
    message: Json
    finish_reason: str | None
    usage: Json | None
    error: Json | None
    streamed: StreamedReply | None = None

    @property
    def text(self) -> str:
        return self.message.get("content") or ""

    @property
    def calls(self) -> list[tuple[str, Any]]:
        """Name and parsed arguments of each tool call."""
        found = self.message.get("tool_calls", [])
        return [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in found]

    @property
    def call_ids(self) -> list[str]:
        return [call["id"] for call in self.message.get("tool_calls", [])]

    @property
    def method(self) -> str:
        return self.headers["X-Bridge-Method"]


# Seconds. Letta itself waits for up to half a minute in each attempt.
LOCKED = 200


@dataclass(slots=True)
class World:
    """One server under test. `bridge` reaches it through `proxy`; tests read its state directly."""

    server: Server
    model: ScriptedModel
    proxy: FaultProxy
    bridge: Service
    start_bridge: Callable[..., Service]
    log: Path
    version: str = field(init=False)

    def __post_init__(self) -> None:
        self.version = self.server.version

    @property
    def at_least(self) -> Callable[[str], bool]:
        mine = tuple(map(int, self.version.split(".")))
        return lambda version: mine >= tuple(map(int, version.split(".")))

    def letta(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """Calls Letta directly, once more if the connection breaks: Letta drops connections after its own errors."""
        for attempt in (1, 2):
            try:
                answer = requests.request(method, self.server.base_url + path, json=body, params=query, timeout=60)
                break
            except requests.ConnectionError:
                if attempt == 2:
                    raise
        assert answer.ok, f"{method} {path}: {answer.status_code} {answer.text[:500]}"
        return answer.json() if answer.content else None

    def agent(self, agent_type: str, **more: Any) -> Agent:
        more.setdefault("name", f"agent-of-test-{uuid.uuid4().hex[:8]}")
        more.setdefault("memory_blocks", [{"label": "human", "value": "Nothing known."}])
        create = partial(create_agent, self.server.base_url, agent_type=agent_type, model_url=self.model.url, **more)
        try:
            made = create()
        except AgentFailed as refused:
            if "database is locked" not in str(refused):
                raise
            self.wait_until_letta_writes()
            made = create()
        return Agent(self, made["id"], made["name"], agent_type)

    def wait_until_letta_writes(self) -> None:
        """Servers before 0.12 use SQLite here. A request that is dropped at a bad moment locks it for a minute."""
        if self.at_least("0.12.0"):
            return
        deadline = time.monotonic() + LOCKED
        while not (answer := self._write()).ok:
            assert time.monotonic() < deadline, answer.text

    def _write(self) -> requests.Response:
        """Makes a block and deletes it. Either call fails while the database is locked."""
        blocks = f"{self.server.base_url}/v1/blocks/"
        made = requests.post(blocks, json={"label": "awake", "value": ""}, timeout=LOCKED)
        return requests.delete(f"{blocks}{made.json()['id']}", timeout=LOCKED) if made.ok else made

    def openai(self, **more: Any) -> openai.OpenAI:
        more = {"base_url": f"{self.bridge.url}/v1", "api_key": "none", "max_retries": 0} | more
        return openai.OpenAI(**more)


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent of a test: its state in Letta, and a client of the bridge that talks to it in the words of one API."""

    world: World
    id: str
    name: str
    type: str
    api: Api = "chat_completions"

    def delete(self) -> None:
        delete_agent(self.world.server.base_url, self.id)

    def renamed(self, name: str) -> Agent:
        """Returns the agent with another name on the server."""
        self.world.letta("PATCH", f"/v1/agents/{self.id}", {"name": name})
        return replace(self, name=name)

    def state(self) -> Json:
        query = {"include_relationships": ["tools", "memory", "tool_exec_environment_variables"]}
        found: Json = self.world.letta("GET", f"/v1/agents/{self.id}", **query)
        return found

    def fingerprint(self) -> Json:
        """Returns what a turn must leave as it was: tools, rules, blocks and variables."""
        state = self.state()
        blocks = state["memory"]["blocks"]
        return {
            "tools": sorted(tool["name"] for tool in state["tools"]),
            "rules": [(rule["type"], rule["tool_name"]) for rule in state["tool_rules"]],
            "blocks": sorted((block["label"], block["value"]) for block in blocks),
            "variables": sorted((v["key"], v["value"]) for v in state.get("tool_exec_environment_variables") or ()),
        }

    def story(self, since: str | None = None) -> list[str]:
        """Returns the lines that the model was shown last."""
        return self.world.model.last_request().story(since=since)

    def ask(
        self,
        text: str | None = None,
        *,
        messages: Sequence[Json] | None = None,
        tools: Sequence[Json] | None = None,
        stream: bool = False,
        system: str | None = None,
        bridge: Service | None = None,
        timeout: float = 120,
        **fields: Any,
    ) -> Reply:
        """Sends one request to the bridge: one `text`, or complete `messages`."""
        sent = list(messages) if messages is not None else [{"role": "user", "content": text}]
        if system is not None:
            sent = [{"role": "system", "content": system}, *sent]
        body: Json = {"model": self.name, "messages": sent, "stream": stream, **fields}
        if tools is not None:
            body["tools"] = list(tools)
        if stream:
            body["stream_options"] = {"include_usage": True}
        url = (bridge or self.world.bridge).url
        if self.api == "responses":
            answer = requests.post(f"{url}/v1/responses", json=responses_body(body), timeout=timeout)
            return _reply_of_responses(answer, stream)
        if self.api == "letta":
            path = f"/letta/v1/agents/{self.id}/messages{'/stream' if stream else ''}"
            answer = requests.post(url + path, json=as_letta.letta_body(body), timeout=timeout)
            return _reply_of_letta(answer, stream, of_bridge="X-Bridge-Method" in answer.headers)
        return _reply(requests.post(f"{url}/v1/chat/completions", json=body, timeout=timeout), stream)


def _reply(answer: requests.Response, stream: bool) -> Reply:
    if answer.status_code != 200:
        return Reply(answer.status_code, answer.headers, {}, None, None, check_error(answer.json()))
    if stream:
        read = read_stream(answer.content, include_usage=True)
        message = {"role": "assistant", **read.message}
        return Reply(200, answer.headers, message, read.finish_reason, read.usage, read.failure, read)
    body = answer.json()
    check_completion(body)
    (choice,) = body["choices"]
    return Reply(200, answer.headers, choice["message"], choice["finish_reason"], body["usage"], None)


def _reply_of_responses(answer: requests.Response, stream: bool) -> Reply:
    """Returns the answer as a chat reply would have it, so that tests read both alike."""
    if answer.status_code != 200:
        return Reply(answer.status_code, answer.headers, {}, None, None, check_error(answer.json()))
    response = read_response_stream(answer.content).response if stream else answer.json()
    check_response(response)
    if response["error"] is not None:
        return Reply(200, answer.headers, {}, None, None, response["error"])
    message, finish_reason = chat_message(response)
    usage = response["usage"]
    counts = {"prompt_tokens": usage["input_tokens"], "completion_tokens": usage["output_tokens"]}
    return Reply(200, answer.headers, message, finish_reason, {**counts, "total_tokens": usage["total_tokens"]}, None)


def _reply_of_letta(answer: requests.Response, stream: bool, *, of_bridge: bool) -> Reply:
    """Returns the answer as a chat reply would have it. `of_bridge`: it is the bridge's, and not passed on."""
    if answer.status_code != 200:
        return Reply(answer.status_code, answer.headers, {}, None, None, as_letta.chat_error(answer.json()))
    if not of_bridge:
        read: LettaReply = as_letta.read_letta_answer(answer.content, stream)
    else:
        read = read_letta_stream(answer.content) if stream else read_whole(answer.json())
    if read.failure:
        error = {"code": read.failure.get("error_type"), "message": str(read.failure.get("message"))}
        return Reply(200, answer.headers, {}, None, None, error)
    message, finish_reason = as_letta.chat_message(read.messages, read.stop_reason)
    return Reply(200, answer.headers, message, finish_reason, read.usage, None)
