"""Tries a tool round trip in the words of Letta's own API, for the doctor."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from bridge.dialects.base import RequestRules
from bridge.dialects.letta.dialect import LettaApi
from bridge.dialects.letta.request import Place
from bridge.turn import AgentEvent, JsonObject, ToolSpec, Turn

Run = Callable[[Turn], Iterable[AgentEvent]]


def try_tool(agent_id: str, tool: ToolSpec, question: str, result: str, run: Run) -> str:
    """Asks the agent the question, gives its call of the tool the result, and returns what it then says. "" if it did
    not call the tool, or says nothing. `run` runs a turn.
    """
    dialect = LettaApi(RequestRules(), Place(agent_id))
    described = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}

    def send(message: JsonObject) -> list[Any]:
        parsed = dialect.parse({"messages": [message], "client_tools": [described]})
        messages: list[Any] = parsed.reply.body(run(parsed.turn))["messages"]
        return messages

    said = send({"role": "user", "content": question})
    calls = [message["tool_call"] for message in said if message["message_type"] == "approval_request_message"]
    if not calls:
        return ""
    given = {"type": "tool", "tool_call_id": calls[0]["tool_call_id"], "tool_return": result, "status": "success"}
    answered = send({"type": "approval", "approvals": [given]})
    return "".join(message["content"] for message in answered if message["message_type"] == "assistant_message")
