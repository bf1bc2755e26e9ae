"""The state of a Letta server that the bridge asks for: agents, their tools, rules and messages."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.mock.frames import MESSAGE_ID, letta_message

Row = dict[str, Any]

_SYSTEM = "You are a helpful agent with a long memory. " * 60
_BLOCK = "The user likes short answers and works on several things at once. " * 10
OLD_MESSAGES = 40


@dataclass(slots=True)
class MockAgent:
    id: str
    name: str
    type: str
    tool_ids: list[str] = field(default_factory=list)
    rules: list[Row] = field(default_factory=list)
    message_ids: list[str] = field(default_factory=list)
    variables: Row = field(default_factory=dict)
    metadata: Row = field(default_factory=dict)
    parallel_calls: bool = False
    stored: list[Row] = field(default_factory=list)


class MockState:
    def __init__(self) -> None:
        self.agents: dict[str, MockAgent] = {}
        self.tools: dict[str, Row] = {}
        self._ids: dict[str, str] = {}
        self._encoded: dict[str, bytes] = {}
        self._messages = 1000

    def make_agents(self, names: Sequence[str], agent_type: str) -> None:
        for name in names:
            number = len(self.agents)
            agent = MockAgent(f"agent-00000000-0000-4000-8000-{number:012x}", name, agent_type)
            agent.message_ids = [MESSAGE_ID.format(1000 + old) for old in range(OLD_MESSAGES)]
            self.agents[agent.id] = agent
            self._messages += OLD_MESSAGES

    def named(self, name: str) -> list[MockAgent]:
        return [agent for agent in self.agents.values() if agent.name == name]

    def agent_bytes(self, agent: MockAgent) -> bytes:
        encoded = self._encoded.get(agent.id)
        if encoded is None:
            encoded = self._encoded[agent.id] = json.dumps(self._agent_row(agent)).encode()
        return encoded

    def change(self, agent: MockAgent, change: Row) -> None:
        agent.tool_ids = change.get("tool_ids", agent.tool_ids)
        agent.rules = change.get("tool_rules", agent.rules)
        agent.message_ids = change.get("message_ids", agent.message_ids)
        agent.variables = change.get("tool_exec_environment_variables", agent.variables)
        agent.metadata = change.get("metadata", agent.metadata)
        agent.parallel_calls = change.get("parallel_tool_calls", agent.parallel_calls)
        self._encoded.pop(agent.id, None)

    def give_same_tools(self, name: str) -> None:
        """Gives every agent the toolset of this one."""
        (model,) = self.named(name)
        toolset = {"tool_ids": model.tool_ids, "tool_rules": model.rules, "metadata": model.metadata}
        for agent in self.agents.values():
            self.change(agent, {**toolset, "parallel_tool_calls": model.parallel_calls})

    def put_tool(self, body: Row) -> Row:
        name = body["json_schema"]["name"]
        tool_id = self._ids.setdefault(name, f"tool-00000000-0000-4000-8000-{len(self._ids):012x}")
        fixed = {"id": tool_id, "name": name, "tool_type": "custom", "created_by_id": "user-1", "metadata_": {}}
        self.tools[tool_id] = {**fixed, **body}
        self._encoded.clear()
        return self.tools[tool_id]

    def tools_named(self, names: Sequence[str]) -> list[Row]:
        return [self.tools[self._ids[name]] for name in names if name in self._ids]

    def attached_name(self, agent: MockAgent, wanted: str) -> str:
        """Returns the name of the agent's tool for `wanted`, which may have a suffix if another tool has the name."""
        names = [self.tools[tool_id]["name"] for tool_id in agent.tool_ids]
        return next((name for name in names if re.fullmatch(rf"{wanted}(_[0-9a-f]{{8}})?", name)), wanted)

    def store(self, agent: MockAgent, kind: str, **fields: Any) -> Row:
        """Stores a message at the end of the agent's context."""
        self._messages += 1
        row = letta_message(kind, self._messages, **fields)
        agent.stored.append(row)
        del agent.stored[:-30]
        self.change(agent, {"message_ids": [*agent.message_ids[-OLD_MESSAGES:], row["id"]]})
        return row

    def _agent_row(self, agent: MockAgent) -> Row:
        config = {"model": "gpt-4o-mini", "model_endpoint_type": "openai", "parallel_tool_calls": agent.parallel_calls}
        blocks = [
            {"id": f"block-{n}", "label": f"b{n}", "value": _BLOCK, "metadata": {}, "limit": 20000} for n in (1, 2)
        ]
        variables = [{"key": key, "value": value} for key, value in agent.variables.items()]
        return {
            "id": agent.id,
            "name": agent.name,
            "agent_type": agent.type,
            "system": _SYSTEM,
            "created_at": "2026-11-18T12:07:23+00:00",
            "llm_config": {**config, "context_window": 64000, "model_endpoint": "http://127.0.0.1:9/v1"},
            "embedding_config": {"embedding_model": "text-embedding-3-small", "embedding_dim": 1536},
            "memory": {"blocks": blocks},
            "tools": [self.tools[tool_id] for tool_id in agent.tool_ids],
            "tool_rules": agent.rules,
            "message_ids": agent.message_ids,
            "tool_exec_environment_variables": variables,
            "metadata": agent.metadata,
            "tags": [],
            "sources": [],
        }
