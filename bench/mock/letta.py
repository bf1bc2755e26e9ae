"""Letta's REST API over that state, and an OpenAI API beside it, for a proxy that knows nothing of Letta."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from bench.mock import frames
from bench.mock.speech import Call, Say, script, speak
from bench.mock.state import Agent, State
from bench.mock.wire import LAST_CHUNK, STREAM_HEAD, Exchange, Request, answer, chunk

V1_AGENT = "letta_v1_agent"
_BY_TOKEN = re.compile(rb'"stream_tokens": ?true')
_STREAMED = re.compile(rb'"stream": ?true')
_OBJECT: dict[str, Any] = {"properties": {}}


class Letta:
    """`calls` counts what came, by method and path without ids; `delay` is the seconds that a control call takes."""

    def __init__(self, version: str) -> None:
        self.state = State()
        self.calls: Counter[str] = Counter()
        self.delay = 0.0
        self._health = answer(json.dumps({"version": version, "status": "ok"}).encode())
        self._openapi = answer(json.dumps(_openapi(version)).encode())
        self._routes: list[tuple[str, re.Pattern[str], Callable[..., bytes | None]]] = [
            ("POST", re.compile(r"/v1/agents/([^/]+)/messages/stream"), self._message),
            ("GET", re.compile(r"/v1/agents/([^/]+)"), self._agent),
            ("POST", re.compile(r"/v1/chat/completions"), self._chat),
            ("GET", re.compile(r"/v1/health/"), lambda *_: self._health),
            ("GET", re.compile(r"/openapi.json"), lambda *_: self._openapi),
            ("GET", re.compile(r"/v1/agents/"), self._agents),
            ("PATCH", re.compile(r"/v1/agents/([^/]+)"), self._change),
            ("GET", re.compile(r"/v1/tools/"), self._tools),
            ("PUT", re.compile(r"/v1/tools/"), self._put_tool),
            ("GET", re.compile(r"/v1/agents/([^/]+)/messages"), self._messages),
            ("POST", re.compile(r"/v1/agents/([^/]+)/messages"), self._decide),
            ("PATCH", re.compile(r"/v1/agents/([^/]+)/messages/([^/]+)"), self._rewrite),
            ("GET", re.compile(r"/v1/runs/active"), lambda *_: _json([])),
            ("POST", re.compile(r"/bench"), self._control),
        ]

    def serve(self, request: Request, to: Exchange) -> None:
        for method, path, handle in self._routes:
            found = path.fullmatch(request.path)
            if found is not None and method == request.method:
                if request.path != "/bench":
                    self.calls[f"{method} {path.pattern.replace('([^/]+)', '{id}')}"] += 1
                self._answer(handle(request, to, *found.groups()), request, to)
                return
        to.write(answer(b'{"detail":"Not Found"}', "404 Not Found"))

    def _answer(self, said: bytes | None, request: Request, to: Exchange) -> None:
        if said is None:
            return
        if self.delay and request.path != "/bench":
            asyncio.get_running_loop().call_later(self.delay, to.write, said)
        else:
            to.write(said)

    # --- messages -------------------------------------------------------------------------------------

    def _message(self, request: Request, to: Exchange, agent_id: str) -> None:
        agent = self.state.agents[agent_id]
        wanted = script(request.body)
        if isinstance(wanted, Call) and b'"approvals"' not in request.body:
            self._call(agent, wanted, to)
            return
        said = wanted if isinstance(wanted, Say) else Say(1, 0.0)
        if said.deltas > 1 and not _BY_TOKEN.search(request.body):
            said = Say(1, 0.0)
        speak(to, frames.LETTA, said)

    def _call(self, agent: Agent, wanted: Call, to: Exchange) -> None:
        name = self.state.attached_name(agent, wanted.tool)
        held = any(rule["tool_name"] == name and rule["type"] == "requires_approval" for rule in agent.rules)
        piece = {"name": name, "arguments": '{"path": "notes.txt"}', "tool_call_id": "call_1"}
        kind = "approval_request_message" if held or agent.type == V1_AGENT else "tool_call_message"
        row = self.state.store(agent, kind, tool_call=piece, tool_calls=[piece])
        to.write(STREAM_HEAD + chunk(frames.frame(row)) + frames.letta_end("requires_approval") + LAST_CHUNK)

    def _decide(self, request: Request, to: Exchange, agent_id: str) -> bytes:
        agent = self.state.agents[agent_id]
        (decision,) = json.loads(request.body)["messages"]
        text = decision.get("reason") or "".join(_relayed(agent.variables))
        row = self.state.store(agent, "tool_return_message", tool_return=text, status="success", tool_call_id="call_1")
        return _json({"messages": [row], "stop_reason": {"stop_reason": "max_steps"}})

    def _rewrite(self, request: Request, to: Exchange, agent_id: str, message_id: str) -> bytes:
        """As Letta does: refused, and done."""
        text = json.loads(json.loads(request.body)["content"])["message"]
        for row in self.state.agents[agent_id].stored:
            if row["id"] == message_id:
                row["tool_return"] = text
        return answer(b'{"detail":"Message type got modified"}', "400 Bad Request")

    def _messages(self, request: Request, to: Exchange, agent_id: str) -> bytes:
        return _json(self.state.agents[agent_id].stored[::-1])

    def _chat(self, request: Request, to: Exchange) -> bytes | None:
        said = script(request.body)
        if not _STREAMED.search(request.body):
            return answer(frames.completion("0 0.0;"))
        speak(to, frames.OPENAI, said if isinstance(said, Say) else Say(1, 0.0))
        return None

    # --- agents and tools -----------------------------------------------------------------------------

    def _agent(self, request: Request, to: Exchange, agent_id: str) -> bytes:
        agent = self.state.agents.get(agent_id)
        if agent is None:
            return answer(b'{"detail":"Agent not found"}', "404 Not Found")
        return answer(self.state.agent_bytes(agent))

    def _agents(self, request: Request, to: Exchange) -> bytes:
        names, after = request.named("name"), request.named("after")
        found = self.state.named(names[0]) if names else list(self.state.agents.values())
        found = [agent for agent in found if not after or agent.id > after[0]][: int(request.named("limit")[0])]
        return answer(b"[" + b",".join(map(self.state.agent_bytes, found)) + b"]")

    def _change(self, request: Request, to: Exchange, agent_id: str) -> bytes:
        agent = self.state.agents[agent_id]
        self.state.change(agent, json.loads(request.body))
        return answer(self.state.agent_bytes(agent))

    def _tools(self, request: Request, to: Exchange) -> bytes:
        names = request.named("names")
        return _json(self.state.tools_named(names) if names else list(self.state.tools.values()))

    def _put_tool(self, request: Request, to: Exchange) -> bytes:
        return _json(self.state.put_tool(json.loads(request.body)))

    # --- the benchmark's own --------------------------------------------------------------------------

    def _control(self, request: Request, to: Exchange) -> bytes:
        """Sets what it is told to, and tells the calls since the last time."""
        told = json.loads(request.body)
        self.delay = told.get("delay", self.delay)
        self.state.make_agents(told.get("agents", ()), told.get("type", V1_AGENT))
        for tool in told.get("tools", ()):
            self.state.put_tool(tool)
        if "alike" in told:
            self.state.make_alike(told["alike"])
        calls = dict(self.calls)
        self.calls.clear()
        return _json({"calls": calls, "ids": {agent.name: agent.id for agent in self.state.agents.values()}})


def _json(value: Any) -> bytes:
    return answer(json.dumps(value).encode())


def _relayed(variables: dict[str, str]) -> list[str]:
    """The pieces of a result that wait in an agent's variables, as the stub that runs would read them."""
    return [value.removeprefix("sk-") for key, value in sorted(variables.items()) if re.search(r"_PIECE_\d+$", key)]


def _openapi(version: str) -> dict[str, Any]:
    """What the bridge reads of it."""
    numbers = tuple(map(int, version.split(".")))
    paths: dict[str, Any] = {
        "/v1/tools/": {"get": {"parameters": [{"name": "names"}]}},
        "/v1/agents/{agent_id}/messages/{message_id}": {"patch": {"deprecated": numbers >= (0, 16, 7)}},
    }
    asked: dict[str, Any] = {"properties": {"input": {}, **({"client_tools": {}} if numbers >= (0, 16, 2) else {})}}
    schemas = {"LettaRequest": asked, "ApprovalCreate": {"properties": {"approvals": {}, "group_id": {}}}}
    return {"paths": paths, "components": {"schemas": schemas}}
