"""The port to Letta: what the bridge asks of a server, in the bridge's own types."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from bridge.letta.capabilities import AgentModel, ServerFeatures
from bridge.turn import AgentCall, AgentEvent, Image, JsonObject, Stub

# Agents whose names begin so are the bridge's own, and no models.
HELPER_PREFIX = "letta-tool-bridge-helper-"
# Letta makes them all so, and from 0.12 on calls anything else a fault of the request.
AGENT_ID = re.compile(r"agent-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class AgentSummary:
    """A row of the list of agents."""

    id: str
    name: str
    created: int = 0


@dataclass(frozen=True, slots=True)
class Block:
    """A memory block; `metadata` is where the bridge marks its own."""

    id: str
    label: str
    value: str
    metadata: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool on the server. `type` is Letta's: "custom" for tools that people (or we) made."""

    id: str
    name: str
    type: str = "custom"
    tags: tuple[str, ...] = ()
    json_schema: JsonObject = field(default_factory=dict)
    source: str = ""


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent as the server has it now; tools, rules and message ids in the server's order.

    `parallel_calls`: its model may make several calls in one step, where the loop can do that. `sleeptime`: another
    agent works over its memory while it rests.
    """

    id: str
    name: str
    type: str
    tools: tuple[Tool, ...] = ()
    rules: tuple[JsonObject, ...] = ()
    message_ids: tuple[str, ...] = ()
    blocks: tuple[Block, ...] = ()
    parallel_calls: bool = False
    metadata: JsonObject = field(default_factory=dict)
    model: AgentModel = field(default_factory=AgentModel)
    sleeptime: bool = False


@dataclass(frozen=True, slots=True)
class AgentChange:
    """What to set on an agent; None leaves as it is. Each list and mapping replaces all that the agent has."""

    tool_ids: Sequence[str] | None = None
    rules: Sequence[JsonObject] | None = None
    message_ids: Sequence[str] | None = None
    variables: Mapping[str, str] | None = None
    parallel_calls: bool | None = None
    metadata: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message as the server keeps it.

    `calls` of a tool call or an approval request, `text` of what somebody said or thought, or a tool returned. Where
    one message holds what several calls returned, `returns` has all of them by the server's id of the call.
    """

    id: str
    kind: str
    calls: tuple[AgentCall, ...] = ()
    text: str = ""
    returns: Mapping[str, str] = field(default_factory=dict)
    otid: str = ""


@dataclass(frozen=True, slots=True)
class Say:
    """A message to the agent. By its `otid`, which the server stores with it, it can be found again."""

    role: Literal["user", "system"]
    text: str
    images: tuple[Image, ...] = ()
    otid: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class CallResult:
    """What a held call of the agent returned, by the server's id of the call."""

    call_id: str
    text: str
    ok: bool = True


@dataclass(frozen=True, slots=True)
class Results:
    """The results of all the calls that the agent is held at; they become its tools' own returns."""

    results: tuple[CallResult, ...]


Outgoing = Say | Results


class Gateway(Protocol):
    """Every method raises a LettaError when the server can't be reached or refuses."""

    def features(self) -> ServerFeatures:
        """What the server can do; asked once and kept for a while."""

    def check(self) -> None:
        """Raise what keeps the server from answering, now."""

    def clock(self) -> float | None:
        """The server's time, in seconds since 1970; None when it does not tell."""

    def agents(self) -> list[AgentSummary]:
        """All agents that are not hidden, whatever the page size of the server."""

    def agents_named(self, name: str) -> list[AgentSummary]:
        """The agents with exactly this name."""

    def agent(self, agent_id: str) -> Agent:
        """One agent; LettaNotFound when there is none of that id."""

    def make_helper(self, agent_id: str, system: str) -> Agent:
        """A hidden agent with the same model, no memory and no tools of its own, for one request."""

    def helpers(self) -> list[AgentSummary]:
        """Agents that `make_helper` made and nobody removed yet."""
        ...

    def delete_agent(self, agent_id: str) -> None:
        """Remove an agent that `make_helper` made."""

    def cancel(self, agent_id: str, run_id: str) -> None:
        """End a run; all that `runs_under_way` has when `run_id` is "". One that has ended meanwhile is no error."""

    def send(
        self,
        agent_id: str,
        messages: Sequence[Outgoing],
        *,
        by_token: bool,
        client_tools: Sequence[JsonObject] = (),
    ) -> Iterator[AgentEvent]:
        """Give the agent messages and yield what happens until its run ends.

        `by_token`: text comes in pieces as the model writes it, where the server can do that without damage.
        `client_tools`: schemas with name and description, offered in this run only, on servers that know of them.
        Raises before the first event when the server does not accept the messages; a run that fails later raises
        from the iteration.
        """

    def deny(self, agent_id: str, request_id: str, reason: str) -> StoredMessage:
        """Close a held call without asking the model; the return that the agent now has for it.

        It says `reason` and nothing else where the server's stored messages can be changed.
        """

    def approve(self, agent_id: str, request_id: str) -> StoredMessage:
        """Let a held stub run, without asking the model; the return that the agent now has for it."""

    def give(self, agent_id: str, results: Results) -> None:
        """Give a held agent what its calls returned, without asking the model."""

    def variables(self, agent_id: str) -> dict[str, str]:
        """The agent's variables for tools that run on the server."""

    def rewrite_return(self, agent_id: str, message_id: str, text: str, ok: bool) -> bool:
        """Make the stored return of a call say `text`; whether the server has it so afterwards."""

    def newest_messages(self, agent_id: str, limit: int, *, including: str = "") -> list[StoredMessage]:
        """The agent's newest messages as stored, those that are no more in its context included.

        `including`: the id of one that is to be among them, also where the agent's other conversations have newer ones.
        """

    def change_agent(self, agent_id: str, change: AgentChange) -> Agent:
        """Set what `change` names, in one call, and return the agent as it is then."""

    def tools(self) -> list[Tool]:
        """All tools of the server, whatever its page size."""

    def tools_named(self, names: Sequence[str]) -> list[Tool]:
        """The tools that have one of these names."""

    def put_tool(self, stub: Stub, tags: Sequence[str]) -> Tool:
        """Make the stub's tool, or make the tool of that name equal to it."""

    def tag_tool(self, tool_id: str, tags: Sequence[str]) -> None:
        """Replace the tags of a tool, and nothing else of it."""

    def delete_tool(self, tool_id: str) -> None:
        """Remove a tool from the server; one that is gone already is no error."""

    def whole_agents(self, *, blocks: bool = False) -> list[Agent]:
        """All agents with their tools and rules, hidden ones too, by wish also with their blocks; costly."""

    def runs_under_way(self, agent_id: str) -> list[str]:
        """The ids of the agent's runs that have not ended, where the server tells; none of other conversations."""

    def step_prompt_tokens(self, step_id: str) -> int | None:
        """Size of the prompt of one step of a run, when the server knows it."""

    def add_block(self, agent_id: str, label: str, value: str, description: str, metadata: Mapping[str, Any]) -> Block:
        """Make a read-only block that holds `value` and attach it to the agent."""

    def set_block(self, agent_id: str, label: str, value: str) -> None:
        """Change the value of the agent's block so that the model sees it at its next call."""

    def remove_block(self, agent_id: str, block: Block) -> None:
        """Take the block away from the agent and delete it."""

    def blocks(self) -> list[Block]:
        """All memory blocks of the server, attached or not."""

    def delete_block(self, block_id: str) -> None:
        """Remove a block that no agent has; one that is gone already is no error."""
