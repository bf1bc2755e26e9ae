"""A client that runs its own tools and keeps a transcript, and what the agent's model was shown of it.

A script calls a tool as `weather*`, because the stub has a longer name if another tool has the plain one. The story
has plain names, and only the first line of a user's message.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from bridge.stubs.source import PLACEHOLDER
from testbed.service import Service
from tests.real.world import Agent, Reply
from tests.sse_checker import Json

ANSWER = "!next\n!answer"
NO_RESULT = PLACEHOLDER
NUDGE = "system: [The tool has returned.]"


def tool(name: str, description: str = "A tool of the client.", **properties: Json) -> Json:
    """Returns a tool in OpenAI's form. All its parameters are required."""
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


WEATHER = tool("weather", "Tells the weather.", city={"type": "string"})
CLOCK = tool("clock", "Tells the time.")
# One of the agent's own tools, which the server runs.
MEMORY_TOOL = "core_memory_append"


def calling(name: str = "weather*", **arguments: Any) -> str:
    """Returns the line of a script that makes the model call a tool."""
    return f"!call {name} {json.dumps(arguments)}"


def ask_weather(city: str = "Oslo") -> str:
    """Returns a message that leads to one call. The answer repeats its result."""
    return f"Weather?\n{calling(city=city)}\n{ANSWER}"


OSLO = 'call weather {"city": "Oslo"}'


class Talk:
    """One conversation of one client with an agent."""

    def __init__(
        self, agent: Agent, *tools: Json, stream: bool = False, bridge: Service | None = None, **fields: Any
    ) -> None:
        self.agent = agent
        self.tools: Sequence[Json] = tools
        self.messages: list[Json] = []
        self._stream = stream
        self._bridge = bridge
        self._fields = fields
        self.before = agent.fingerprint()

    def say(self, text: str, **fields: Any) -> Reply:
        """Sends a user's message, and expects an answer."""
        return self._answered({"role": "user", "content": text}, **fields)

    def give(self, *results: str | Json, then: str | None = None, **fields: Any) -> Reply:
        """Sends results for the calls of the last reply, in their order, perhaps with a user's message after them."""
        ids = [call["id"] for call in self.messages[-1]["tool_calls"]]
        given = [result(call_id, one) for call_id, one in zip(ids, results, strict=False)]
        return self._answered(*given, *([{"role": "user", "content": then}] if then else []), **fields)

    def _answered(self, *messages: Json, **fields: Any) -> Reply:
        reply = self.send(*messages, **fields)
        assert reply.error is None, reply.error
        return reply

    def send(self, *messages: Json, **fields: Any) -> Reply:
        """Sends messages as they are. They become part of the transcript if they are answered."""
        reply = self.agent.ask(
            messages=[*self.messages, *messages],
            **{"tools": self.tools or None, "stream": self._stream, "bridge": self._bridge} | self._fields | fields,
        )
        if reply.error is None:
            self.messages += [*messages, echo(reply)]
        return reply

    def refuses(self, late: Json) -> None:
        """Expects that a late result alone is refused, asks no model, and changes nothing in the agent's memory."""
        model, before = self.agent.world.model, self.agent.state()["message_ids"]
        asked = len(model.requests())
        refused = self.send(late)
        assert (refused.status, refused.error and refused.error["code"]) == (400, "no_pending_call")
        assert late["tool_call_id"] in (refused.error or {})["message"]
        assert len(model.requests()) == asked
        assert self.agent.state()["message_ids"] == before

    def story(self) -> list[str]:
        """Returns what the model was shown last."""
        return story_of(self.agent, self.tools)

    def ends_with(self, *expected: str) -> None:
        """Expects an answer to a plain message, these lines in the agent's memory, and nothing left of the bridge."""
        reply = self.agent.ask("bye", bridge=self._bridge)
        assert reply.error is None, reply.error
        assert reply.text == "You said: bye"
        assert self.story() == [*expected, "user: bye"]
        assert self.agent.fingerprint() == self.before


def story_of(agent: Agent, tools: Sequence[Json]) -> list[str]:
    names = "|".join(re.escape(one["function"]["name"]) for one in tools)
    story = []
    for line in agent.story():
        if line.startswith("result of send_message: "):
            continue
        plain = re.sub(rf"^(call|result of) ({names})_[0-9a-f]{{8}}\b", r"\1 \2", line) if names else line
        story.append(_on_one_line(plain.split("\n!")[0]) if plain.startswith("user: ") else plain)
    return story


def _on_one_line(line: str) -> str:
    """Returns the line with the arguments of a quoted call on one line: servers before 0.8 store them in several."""
    if not line.startswith('user: {"type": "tool_result"'):
        return line
    quoted = json.loads(line.removeprefix("user: "))
    if not quoted["arguments"]:
        return line
    arguments = json.dumps(json.loads(quoted["arguments"]), ensure_ascii=False)
    return f"user: {json.dumps({**quoted, 'arguments': arguments}, ensure_ascii=False)}"


def result(call_id: str, given: str | Json) -> Json:
    """Returns a message with a tool's result."""
    content = given if isinstance(given, dict) else {"content": given}
    return {"role": "tool", "tool_call_id": call_id, **content}


def echo(reply: Reply) -> Json:
    """Returns the answer as clients repeat it in their transcripts: with calls that have fields of their own."""
    message: Json = {"role": "assistant", "content": reply.message.get("content"), "annotations": []}
    calls = reply.message.get("tool_calls")
    if calls:
        message["tool_calls"] = [{**call, "index": place} for place, call in enumerate(calls)]
    return message


def method_of(agent: Agent) -> str:
    """Returns the method that the bridge should choose for the agent."""
    at_least = agent.world.at_least
    if agent.type == "letta_v1_agent" and at_least("0.14.0"):
        return "native" if at_least("0.16.2") else "approval"
    return "relay" if at_least("0.16.7") else "rewrite"


def nudge(agent: Agent) -> list[str]:
    """Returns the message that ends the context where a result alone does not make the agent go on."""
    needed = method_of(agent) in ("rewrite", "relay") and agent.world.at_least("0.9.0")
    return [NUDGE] if needed else []


def given_up(agent: Agent, call: str = OSLO) -> list[str]:
    """Returns what the model is shown of a call that the client never answered, once the client has gone on."""
    return [] if method_of(agent) == "relay" else [call, f"result of {call.split()[1]}: {NO_RESULT}"]


def quote(text: str, tool: str = "weather", arguments: str = '{"city": "Oslo"}') -> str:
    """Returns what the model is shown of a result that comes too late for its call."""
    said = {"type": "tool_result", "tool": tool, "arguments": arguments, "status": "success", "result": text}
    return f"user: {json.dumps(said, ensure_ascii=False)}"
