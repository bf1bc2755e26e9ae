"""Letta's REST API with the mock's state, and an OpenAI API, for proxies that do not know Letta."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from bench.mock import frames
from bench.mock.script import CallScript, SayScript, script, send_stream
from bench.mock.state import MockAgent, MockState
from bench.mock.wire import LAST_CHUNK, STREAM_HEAD, MockConnection, Request, answer, chunk

V1_AGENT = "letta_v1_agent"
_BY_TOKEN = re.compile(rb'"stream_tokens": ?true')
_STREAMED = re.compile(rb'"stream": ?true')


class MockLetta:
    """`calls` counts the requests by method and path without ids. `delay` is the seconds that a call takes."""

    def __init__(self, version: str) -> None:
        self.state = MockState()
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

    def serve(self, request: Request, connection: MockConnection) -> None:
        for method, path, handle in self._routes:
            found = path.fullmatch(request.path)
            if found is not None and method == request.method:
                if request.path != "/bench":
                    self.calls[f"{method} {path.pattern.replace('([^/]+)', '{id}')}"] += 1
                self._answer(handle(request, connection, *found.groups()), request, connection)
                return
        connection.write(answer(b'{"detail":"Not Found"}', "404 Not Found"))

    def _answer(self, data: bytes | None, request: Request, connection: MockConnection) -> None:
        if data is None:
            return
        if self.delay and request.path != "/bench":
            asyncio.get_running_loop().call_later(self.delay, connection.write, data)
        else:
            connection.write(data)

    # --- messages -------------------------------------------------------------------------------------

    def _message(self, request: Request, connection: MockConnection, agent_id: str) -> None:
        agent = self.state.agents[agent_id]
        wanted = script(request.body)
        if isinstance(wanted, CallScript) and b'"approvals"' not in request.body:
            self._call(agent, wanted, connection)
            return
        dictated = wanted if isinstance(wanted, SayScript) else SayScript(1, 0.0)
        if dictated.deltas > 1 and not _BY_TOKEN.search(request.body):
            dictated = SayScript(1, 0.0)
        send_stream(connection, frames.LETTA, dictated)

    def _call(self, agent: MockAgent, wanted: CallScript, connection: MockConnection) -> None:
        name = self.state.attached_name(agent, wanted.tool)
        held = any(rule["tool_name"] == name and rule["type"] == "requires_approval" for rule in agent.rules)
        piece = {"name": name, "arguments": '{"path": "notes.txt"}', "tool_call_id": "call_1"}
        kind = "approval_request_message" if held or agent.type == V1_AGENT else "tool_call_message"
        row = self.state.store(agent, kind, tool_call=piece, tool_calls=[piece])
        connection.write(STREAM_HEAD + chunk(frames.frame(row)) + frames.letta_end("requires_approval") + LAST_CHUNK)

    def _decide(self, request: Request, connection: MockConnection, agent_id: str) -> bytes:
        agent = self.state.agents[agent_id]
        (decision,) = json.loads(request.body)["messages"]
        text = decision.get("reason") or "".join(_relayed(agent.variables))
        row = self.state.store(agent, "tool_return_message", tool_return=text, status="success", tool_call_id="call_1")
        return _json({"messages": [row], "stop_reason": {"stop_reason": "max_steps"}})

    def _rewrite(self, request: Request, connection: MockConnection, agent_id: str, message_id: str) -> bytes:
        """Answers 400 and yet changes the message, as Letta does."""
        text = json.loads(json.loads(request.body)["content"])["message"]
        for row in self.state.agents[agent_id].stored:
            if row["id"] == message_id:
                row["tool_return"] = text
        return answer(b'{"detail":"Message type got modified"}', "400 Bad Request")

    def _messages(self, request: Request, connection: MockConnection, agent_id: str) -> bytes:
        return _json(self.state.agents[agent_id].stored[::-1])

    def _chat(self, request: Request, connection: MockConnection) -> bytes | None:
        dictated = script(request.body)
        if not _STREAMED.search(request.body):
            return answer(frames.completion("0 0.0;"))
        send_stream(connection, frames.OPENAI, dictated if isinstance(dictated, SayScript) else SayScript(1, 0.0))
        return None

    # --- agents and tools -----------------------------------------------------------------------------

    def _agent(self, request: Request, connection: MockConnection, agent_id: str) -> bytes:
        agent = self.state.agents.get(agent_id)
        if agent is None:
            return answer(b'{"detail":"MockAgent not found"}', "404 Not Found")
        return answer(self.state.agent_bytes(agent))

    def _agents(self, request: Request, connection: MockConnection) -> bytes:
        names, after = request.query_values("name"), request.query_values("after")
        found = self.state.named(names[0]) if names else list(self.state.agents.values())
        found = [agent for agent in found if not after or agent.id > after[0]][: int(request.query_values("limit")[0])]
        return answer(b"[" + b",".join(map(self.state.agent_bytes, found)) + b"]")

    def _change(self, request: Request, connection: MockConnection, agent_id: str) -> bytes:
        agent = self.state.agents[agent_id]
        self.state.change(agent, json.loads(request.body))
        return answer(self.state.agent_bytes(agent))

    def _tools(self, request: Request, connection: MockConnection) -> bytes:
        names = request.query_values("names")
        return _json(self.state.tools_named(names) if names else list(self.state.tools.values()))

    def _put_tool(self, request: Request, connection: MockConnection) -> bytes:
        return _json(self.state.put_tool(json.loads(request.body)))

    # --- the benchmark's own --------------------------------------------------------------------------

    def _control(self, request: Request, connection: MockConnection) -> bytes:
        """Does what the benchmark asks for, and returns the calls since the last time."""
        commands = json.loads(request.body)
        self.delay = commands.get("delay", self.delay)
        self.state.make_agents(commands.get("agents", ()), commands.get("type", V1_AGENT))
        for tool in commands.get("tools", ()):
            self.state.put_tool(tool)
        if "same_tools_as" in commands:
            self.state.give_same_tools(commands["same_tools_as"])
        calls = dict(self.calls)
        self.calls.clear()
        return _json({"calls": calls, "ids": {agent.name: agent.id for agent in self.state.agents.values()}})


def _json(value: Any) -> bytes:
    return answer(json.dumps(value).encode())


def _relayed(variables: dict[str, str]) -> list[str]:
    """Returns the pieces of a result in an agent's variables, as the running stub would read them."""
    return [value.removeprefix("sk-") for key, value in sorted(variables.items()) if re.search(r"_PIECE_\d+$", key)]


def _openapi(version: str) -> dict[str, Any]:
    """Returns the parts of the OpenAPI document that the bridge reads."""
    numbers = tuple(map(int, version.split(".")))
    paths: dict[str, Any] = {
        "/v1/tools/": {"get": {"parameters": [{"name": "names"}]}},
        "/v1/agents/{agent_id}/messages/{message_id}": {"patch": {"deprecated": numbers >= (0, 16, 7)}},
    }
    fields: dict[str, Any] = {"input": {}, **({"client_tools": {}} if numbers >= (0, 16, 2) else {})}
    approval: dict[str, Any] = {"approvals": {}, "group_id": {}}
    schemas = {"LettaRequest": {"properties": fields}, "ApprovalCreate": {"properties": approval}}
    return {"paths": paths, "components": {"schemas": schemas}}
