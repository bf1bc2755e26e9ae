"""An in-memory Letta server that does what a test dictates."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bridge import errors
from bridge.letta.capabilities import ServerFeatures
from bridge.letta.foreign import ForeignBody
from bridge.letta.gateway import (
    HELPER_PREFIX,
    Agent,
    AgentChange,
    AgentSummary,
    Block,
    ForeignAnswer,
    ForeignCall,
    Outgoing,
    Results,
    Say,
    StoredMessage,
    Tool,
)
from bridge.stubs.source import RELAY_COUNT, RELAY_PIECE, RELAY_PREFIX
from bridge.turn import AgentCall, AgentEvent, AgentReturn, JsonObject, Message, Stopped, Stub, Text, Used
from tests.fake_agent import StoredAgent, new_id

JSON_HEADERS = (("Content-Type", "application/json"),)
# An event is yielded, an exception is raised, and a callable is called, so that a test can wait or look.
ScriptedStep = AgentEvent | BaseException | Callable[[], object]

FEATURES = ServerFeatures(
    version=(0, 16, 1),
    client_tools=False,
    approvals=True,
    tool_returns=True,
    message_rewrite=True,
    recompile=False,
    tools_by_names=True,
)


@dataclass(frozen=True, slots=True)
class Prompt:
    """What an agent's model was shown: the memory, the tools, and the new messages. `history` is what the agent was
    made with.
    """

    agent_id: str
    memory: Mapping[str, str]
    messages: tuple[Outgoing, ...]
    tools: tuple[str, ...]
    by_token: bool
    history: tuple[Message, ...] = ()

    @property
    def texts(self) -> list[str]:
        return [message.text for message in self.messages if isinstance(message, Say)]


class FakeGateway:
    """Implements bridge.letta.gateway.Gateway. `calls` lists the methods called, `prompts` what the models saw."""

    def __init__(self, features: ServerFeatures = FEATURES) -> None:
        self.calls: list[str] = []
        self.prompts: list[Prompt] = []
        self.step_sizes: dict[str, int] = {}
        self.time: float | None = None
        self.loose_blocks: list[Block] = []
        self.cancelled: list[tuple[str, str]] = []
        self.under_way: list[str] = []
        self.forwarded: list[ForeignCall] = []
        self.patience: list[bool] = []
        self.closed_answers = 0
        self._features = features
        self._agents: dict[str, StoredAgent] = {}
        self._tools: dict[str, Tool] = {}
        self._runs: deque[tuple[ScriptedStep, ...]] = deque()
        self._answers: deque[tuple[int, Sequence[tuple[str, str]], tuple[bytes | BaseException, ...]]] = deque()
        self._failures: list[tuple[int | str, BaseException]] = []
        self._lock = threading.RLock()

    # --- what a test dictates -------------------------------------------------------------------------

    def has_agent(
        self,
        name: str,
        type: str = "letta_v1_agent",
        *,
        created: int = 1_700_000_000,
        hidden: bool = False,
        sleeptime: bool = False,
    ) -> Agent:
        persona = Block(new_id("block"), "persona", f"I am {name}.")
        agent = Agent(new_id("agent"), name, type, blocks=(persona,), sleeptime=sleeptime)
        kept = StoredAgent(agent, created, hidden=hidden)
        kept.store(StoredMessage(new_id("message"), "system_message"))
        self._agents[kept.agent.id] = kept
        return kept.agent

    def has_tool(self, name: str, type: str = "custom", *, tags: Sequence[str] = ()) -> Tool:
        tool = Tool(new_id("tool"), name, type, tuple(tags), {"name": name, "parameters": {}})
        self._tools[tool.id] = tool
        return tool

    def loses_agent(self, agent_id: str) -> None:
        """Deletes the agent, as another user of the server may do."""
        del self._agents[agent_id]

    def renames_agent(self, agent_id: str, name: str) -> None:
        kept = self._agents[agent_id]
        kept.agent = replace(kept.agent, name=name)

    def talks_elsewhere(self, agent_id: str, count: int) -> None:
        """Adds so many messages of other conversations of the agent."""
        kept = self._agents[agent_id]
        others = [StoredMessage(new_id("message"), "user_message", text="Elsewhere.") for _ in range(count)]
        kept.messages += others
        kept.elsewhere.update(message.id for message in others)

    def will(self, *steps: ScriptedStep) -> None:
        """Dictates the next run that is not dictated yet."""
        self._runs.append(steps)

    def will_say(self, *pieces: str) -> None:
        self.will(*map(Text, pieces), Used(100, 10), Stopped("end_turn"))

    def will_answer(
        self, status: int, body: Any, headers: Sequence[tuple[str, str]] = JSON_HEADERS, *more: bytes | BaseException
    ) -> None:
        """Dictates the next answer to a forwarded call. A `body` other than bytes is sent as JSON. `more` are further
        pieces of the body, and an exception with which it breaks off.
        """
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        self._answers.append((status, headers, (sent, *more)))

    def fails(self, failure: BaseException, *, at: int | str) -> None:
        """Raises at every call of the method `at`, or at the call of that number, counted from 1 over all methods."""
        self._failures.append((at, failure))

    def recovers(self) -> None:
        """Fails no more."""
        self._failures.clear()

    # --- server and agents ----------------------------------------------------------------------------

    def features(self) -> ServerFeatures:
        self._called("features")
        return self._features

    def check_server(self) -> None:
        self._called("check_server")

    def server_time(self) -> float | None:
        self._called("server_time")
        return self.time

    def forward(self, call: ForeignCall, *, patient: bool = False) -> ForeignAnswer:
        """Gives the dictated answer; without one, the row of an agent, or Letta's 404."""
        self._called("forward")
        self.forwarded.append(call)
        self.patience.append(patient)
        if not self._answers:
            kept = self._agents.get(call.path.removeprefix("/v1/agents/")) if call.verb == "GET" else None
            row = {"id": kept.agent.id, "name": kept.agent.name} if kept else {"detail": "Not Found"}
            self.will_answer(200 if kept else 404, row)
        status, headers, pieces = self._answers.popleft()
        return ForeignAnswer(status, headers, ForeignBody(_pieces_of(pieces), self._close_answer))

    def _close_answer(self) -> None:
        self.closed_answers += 1

    def agents(self) -> list[AgentSummary]:
        self._called("agents")
        return [kept.summary for kept in self._agents.values() if not kept.hidden]

    def agents_named(self, name: str) -> list[AgentSummary]:
        self._called("agents_named")
        return [kept.summary for kept in self._agents.values() if kept.agent.name == name and not kept.hidden]

    def agent(self, agent_id: str) -> Agent:
        self._called("agent")
        return self._kept(agent_id).agent

    def make_helper(self, agent_id: str, system: str, history: Sequence[Message] = ()) -> Agent:
        self._called("make_helper")
        model = self._kept(agent_id).agent.model
        name = f"{HELPER_PREFIX}{len(self._agents)}"
        kept = StoredAgent(Agent(new_id("agent"), name, self._features.helper_type, model=model), 0, hidden=True)
        kept.store(StoredMessage(new_id("message"), "system_message", text=system))
        kept.remember(history)
        self._agents[kept.agent.id] = kept
        return kept.agent

    def helpers(self) -> list[AgentSummary]:
        self._called("helpers")
        return [kept.summary for kept in self._agents.values() if kept.agent.name.startswith(HELPER_PREFIX)]

    def delete_agent(self, agent_id: str) -> None:
        self._called("delete_agent")
        self._agents.pop(agent_id, None)

    def cancel_runs(self, agent_id: str, run_id: str) -> None:
        self._called("cancel_runs")
        self.cancelled.append((agent_id, run_id))

    def whole_agents(self, *, blocks: bool = False) -> list[Agent]:
        self._called("whole_agents")
        return [kept.agent for kept in self._agents.values()]

    def change_agent(self, agent_id: str, change: AgentChange) -> Agent:
        self._called("change_agent")
        kept = self._kept(agent_id)
        wanted = list(dict.fromkeys(change.tool_ids or ()))
        if any(tool_id not in self._tools for tool_id in wanted):
            raise errors.LettaConflict("The agent was given a tool that does not exist.")
        kept.change(change, [self._tools[tool_id] for tool_id in wanted])
        return kept.agent

    def variables(self, agent_id: str) -> dict[str, str]:
        self._called("variables")
        return dict(self._kept(agent_id).variables)

    # --- messages -------------------------------------------------------------------------------------

    def send_messages(
        self,
        agent_id: str,
        messages: Sequence[Outgoing],
        *,
        by_token: bool,
        client_tools: Sequence[JsonObject] = (),
    ) -> Iterator[AgentEvent]:
        self._called("send_messages")
        kept = self._kept(agent_id)
        kept.take(messages)
        memory = {block.label: block.value for block in kept.agent.blocks}
        tools = (*(tool.name for tool in kept.agent.tools), *(str(tool["name"]) for tool in client_tools))
        self.prompts.append(Prompt(agent_id, memory, tuple(messages), tools, by_token, kept.history))
        said = [message.text for message in messages if isinstance(message, Say)]
        echo = (Text(f"You said: {said[-1] if said else ''}"), Used(100, 10), Stopped("end_turn"))
        return self._run(kept, self._runs.popleft() if self._runs else echo)

    def deny_call(self, agent_id: str, request_id: str, reason: str) -> StoredMessage:
        self._called("deny_call")
        text = f"Error: request to call tool denied. User reason: {reason}"
        return self._kept(agent_id).close_held(request_id, text)

    def approve_call(self, agent_id: str, request_id: str) -> StoredMessage:
        """Runs the stub, which returns what the agent's variables have for it."""
        self._called("approve_call")
        kept = self._kept(agent_id)
        pieces = [kept.variables[f"{RELAY_PIECE}{number}"] for number in range(int(kept.variables[RELAY_COUNT]))]
        return kept.close_held(request_id, "".join(piece.removeprefix(RELAY_PREFIX) for piece in pieces))

    def give_results(self, agent_id: str, results: Results) -> None:
        self._called("give_results")
        self._kept(agent_id).take([results])

    def rewrite_return(self, agent_id: str, message_id: str, text: str, ok: bool) -> bool:
        self._called("rewrite_return")
        kept = self._kept(agent_id)
        return self._features.message_rewrite and kept.rewrite(message_id, text)

    def newest_messages(
        self, agent_id: str, limit: int, *, including: str = "", further: int = 0
    ) -> list[StoredMessage]:
        self._called("newest_messages")
        kept = self._kept(agent_id)
        newest = kept.messages[-limit:]
        if not including or any(message.id == including for message in newest):
            return newest
        own = [message for message in kept.messages if message.id not in kept.elsewhere]
        found = any(message.id == including for message in own[-limit:])
        return own[-limit:] if found else own[-max(limit, further) :]

    def runs_under_way(self, agent_id: str) -> list[str]:
        self._called("runs_under_way")
        return list(self.under_way)

    def step_prompt_tokens(self, step_id: str) -> int | None:
        self._called("step_prompt_tokens")
        return self.step_sizes.get(step_id)

    # --- tools ----------------------------------------------------------------------------------------

    def tools(self) -> list[Tool]:
        self._called("tools")
        return list(self._tools.values())

    def tools_named(self, names: Sequence[str]) -> list[Tool]:
        self._called("tools_named")
        return [tool for tool in self._tools.values() if tool.name in names]

    def put_tool(self, stub: Stub, tags: Sequence[str]) -> Tool:
        """Overwrites any tool of that name. It keeps its id and its agents."""
        self._called("put_tool")
        with self._lock:
            held = next((tool for tool in self._tools.values() if tool.name == stub.name), None)
            tool_id = held.id if held else new_id("tool")
            return self._set_tool(Tool(tool_id, stub.name, "custom", tuple(tags), stub.json_schema, stub.source_code))

    def tag_tool(self, tool_id: str, tags: Sequence[str]) -> None:
        self._called("tag_tool")
        if tool_id not in self._tools:
            raise _missing(tool_id)
        self._set_tool(replace(self._tools[tool_id], tags=tuple(tags)))

    def delete_tool(self, tool_id: str) -> None:
        """Detaches the tool from its agents. Their rules for it remain."""
        self._called("delete_tool")
        self._tools.pop(tool_id, None)
        for kept in self._agents.values():
            left = tuple(tool for tool in kept.agent.tools if tool.id != tool_id)
            kept.agent = replace(kept.agent, tools=left)

    # --- blocks ---------------------------------------------------------------------------------------

    def add_block(self, agent_id: str, label: str, value: str, description: str, metadata: Mapping[str, Any]) -> Block:
        self._called("add_block")
        kept = self._kept(agent_id)
        if any(block.label == label for block in kept.agent.blocks):
            raise errors.LettaConflict(f"The agent has a block {label!r}.")
        block = Block(new_id("block"), label, value, dict(metadata))
        kept.agent = replace(kept.agent, blocks=(*kept.agent.blocks, block))
        return block

    def set_block(self, agent_id: str, label: str, value: str) -> None:
        self._called("set_block")
        kept = self._kept(agent_id)
        if all(block.label != label for block in kept.agent.blocks):
            raise _missing(label)
        blocks = [replace(block, value=value) if block.label == label else block for block in kept.agent.blocks]
        kept.agent = replace(kept.agent, blocks=tuple(blocks))

    def remove_block(self, agent_id: str, block: Block) -> None:
        self._called("remove_block")
        kept = self._kept(agent_id)
        left = tuple(one for one in kept.agent.blocks if one.id != block.id)
        if len(left) == len(kept.agent.blocks):
            raise _missing(block.id)
        kept.agent = replace(kept.agent, blocks=left)

    def blocks(self) -> list[Block]:
        self._called("blocks")
        return [*(block for kept in self._agents.values() for block in kept.agent.blocks), *self.loose_blocks]

    def delete_block(self, block_id: str) -> None:
        self._called("delete_block")
        self.loose_blocks = [block for block in self.loose_blocks if block.id != block_id]

    # --------------------------------------------------------------------------------------------------

    def _called(self, method: str) -> None:
        with self._lock:
            self.calls.append(method)
            number = len(self.calls)
        for at, failure in self._failures:
            if at in (method, number):
                raise failure

    def _kept(self, agent_id: str) -> StoredAgent:
        if agent_id not in self._agents:
            raise _missing(agent_id)
        return self._agents[agent_id]

    def _run(self, kept: StoredAgent, steps: Sequence[ScriptedStep]) -> Iterator[AgentEvent]:
        said: list[Text] = []
        for step in steps:
            if isinstance(step, BaseException):
                raise step
            said = [*said, step] if isinstance(step, Text) else said
            if isinstance(step, AgentCall | Stopped) and said:
                text = "".join(one.text for one in said)
                kept.store(StoredMessage(said[-1].item_id or new_id("message"), "assistant_message", text=text))
                said = []
            if isinstance(step, AgentCall | AgentReturn):
                kept.record(step)
            if callable(step):
                step()
            else:
                yield step

    def _set_tool(self, tool: Tool) -> Tool:
        self._tools[tool.id] = tool
        for kept in self._agents.values():
            tools = tuple(tool if held.id == tool.id else held for held in kept.agent.tools)
            kept.agent = replace(kept.agent, tools=tools)
        return tool


def _pieces_of(pieces: Sequence[bytes | BaseException]) -> Iterator[bytes]:
    for piece in pieces:
        if isinstance(piece, BaseException):
            raise piece
        yield piece


def _missing(what: str) -> errors.LettaNotFound:
    return errors.LettaNotFound(f"There is no {what}.")
