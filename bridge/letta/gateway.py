"""The interface to Letta: what the bridge asks of a server, in the bridge's own types. `client.py` implements it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from bridge.letta.capabilities import AgentModel, ServerFeatures
from bridge.turn import AgentCall, AgentEvent, Image, JsonObject, Stub

# The names of the agents that the bridge makes begin so. Clients do not see these agents as models.
HELPER_PREFIX = "letta-tool-bridge-helper-"
# The form of every agent id that Letta makes. From Letta 0.12 on, a request with an id of another form is rejected.
AGENT_ID = re.compile(r"agent-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class AgentSummary:
    """An entry of Letta's list of agents. `created` is in seconds since 1970."""

    id: str
    name: str
    created: int = 0


@dataclass(frozen=True, slots=True)
class Block:
    """A memory block on the Letta server. `metadata` shows whether the bridge made the block."""

    id: str
    label: str
    value: str
    metadata: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool on the Letta server. `type` is Letta's: "custom" for tools made by users, including the bridge's stubs."""

    id: str
    name: str
    type: str = "custom"
    tags: tuple[str, ...] = ()
    json_schema: JsonObject = field(default_factory=dict)
    source: str = ""


@dataclass(frozen=True, slots=True)
class Agent:
    """A Letta agent as the server has it now. Tools, rules and message ids are in the server's order.

    `message_ids` are the messages in the agent's context. `parallel_calls`: the agent's model may make several calls in
    one step, if the agent's loop can do that. `sleeptime`: while the agent rests, another agent edits its memory.
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
    """What to change on an agent. None leaves a field as it is; a list or mapping replaces all that the agent has."""

    tool_ids: Sequence[str] | None = None
    rules: Sequence[JsonObject] | None = None
    message_ids: Sequence[str] | None = None
    variables: Mapping[str, str] | None = None
    parallel_calls: bool | None = None
    metadata: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message as the Letta server stores it.

    `kind` is Letta's `message_type`. `calls` are the calls of a tool call or an approval request. `text` is what the
    user or the agent said, what the agent thought, or what a tool returned. One message can hold the returns of several
    calls: `returns` maps the server's id of each call to the call's return. `otid` is the id that the sender gave the
    message.
    """

    id: str
    kind: str
    calls: tuple[AgentCall, ...] = ()
    text: str = ""
    returns: Mapping[str, str] = field(default_factory=dict)
    otid: str = ""


@dataclass(frozen=True, slots=True)
class Say:
    """A message to an agent. The server stores `otid` with the message, so that the message can be found again."""

    role: Literal["user", "system"]
    text: str
    images: tuple[Image, ...] = ()
    otid: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class CallResult:
    """The result of a held call of an agent. `call_id` is the server's id of the call."""

    call_id: str
    text: str
    ok: bool = True


@dataclass(frozen=True, slots=True)
class Results:
    """The results of all held calls of an agent. They become the returns of the agent's tools."""

    results: tuple[CallResult, ...]


Outgoing = Say | Results


class Gateway(Protocol):
    """One Letta server. Every method raises a LettaError when the server can't be reached or refuses the call."""

    # --- server ---------------------------------------------------------------------------------------

    def features(self) -> ServerFeatures:
        """Returns what the server can do. The features are read from the server once and kept for a while."""

    def check_server(self) -> None:
        """Raises a LettaError unless the server answers now."""

    def server_time(self) -> float | None:
        """Returns the server's time, in seconds since 1970; None when the server does not send its time."""

    # --- agents ---------------------------------------------------------------------------------------

    def agents(self) -> list[AgentSummary]:
        """Returns all agents that are not hidden, whatever the page size of the server."""

    def agents_named(self, name: str) -> list[AgentSummary]:
        """Returns the agents with exactly this name."""

    def agent(self, agent_id: str) -> Agent:
        """Returns one agent. Raises LettaNotFound when no agent has this id."""

    def whole_agents(self, *, blocks: bool = False) -> list[Agent]:
        """Returns all agents, also hidden ones, with tools and rules, and with blocks if `blocks` is set. Expensive."""

    def change_agent(self, agent_id: str, change: AgentChange) -> Agent:
        """Changes the fields of the agent that `change` sets, in one call. Returns the changed agent."""

    def variables(self, agent_id: str) -> dict[str, str]:
        """Returns the agent's environment variables. Its tools get the variables when they run on the server."""

    def make_helper(self, agent_id: str, system: str) -> Agent:
        """Makes a hidden agent for one request and returns the new agent.

        The new agent has the model of `agent_id`, but no memory and no tools of its own. `system` is its system prompt.
        """

    def helpers(self) -> list[AgentSummary]:
        """Returns the agents made by `make_helper` that still exist."""

    def delete_agent(self, agent_id: str) -> None:
        """Deletes an agent made by `make_helper`. An agent that does not exist any more is not an error."""

    # --- messages and runs ----------------------------------------------------------------------------

    def send_messages(
        self,
        agent_id: str,
        messages: Sequence[Outgoing],
        *,
        by_token: bool,
        client_tools: Sequence[JsonObject] = (),
    ) -> Iterator[AgentEvent]:
        """Sends messages to the agent and yields the events of the run that they start, until the run ends.

        `by_token`: text comes in pieces, as the model writes it. Only for agent loops that do not damage such text.
        `client_tools`: schemas with name and description, offered to the agent in this run only. Only for servers with
        that feature. Raises before it returns when the server does not accept the messages. A failure of the run itself
        is raised from the iteration.
        """

    def newest_messages(self, agent_id: str, limit: int, *, including: str = "") -> list[StoredMessage]:
        """Returns the agent's newest stored messages, also those that are not in its context any more.

        `including`: the id of a message that must be found even if the agent's other conversations have newer messages.
        """

    def runs_under_way(self, agent_id: str) -> list[str]:
        """Returns the ids of the agent's runs that have not ended, without the runs of its other conversations.

        The list is empty on servers that do not list runs reliably.
        """

    def cancel_runs(self, agent_id: str, run_id: str) -> None:
        """Ends one run, or with "" all of `runs_under_way`. A run that has ended already is not an error."""

    def step_prompt_tokens(self, step_id: str) -> int | None:
        """Returns the number of tokens in the prompt of one step of a run; None if the server has no such number."""

    # --- held calls and their returns -----------------------------------------------------------------

    def deny_call(self, agent_id: str, request_id: str, reason: str) -> StoredMessage:
        """Denies a held call without asking the model. Returns the stored tool return that closes the call.

        `request_id` is the id of the message with the approval request. On servers where stored messages can be
        changed, the text of the stored return then becomes just `reason`, without Letta's own words; the returned
        message still has Letta's text.
        """

    def approve_call(self, agent_id: str, request_id: str) -> StoredMessage:
        """Approves a held call, so that the server runs its stub, without asking the model.

        `request_id` is the id of the message with the approval request. Returns the stored tool return of the call.
        """

    def give_results(self, agent_id: str, results: Results) -> None:
        """Gives the agent the results of its held calls, without asking the model."""

    def rewrite_return(self, agent_id: str, message_id: str, text: str, ok: bool) -> bool:
        """Changes the text of a stored tool return to `text`. Returns whether the server stores that text afterwards.

        `ok` is false if the tool failed.
        """

    # --- tools ----------------------------------------------------------------------------------------

    def tools(self) -> list[Tool]:
        """Returns all tools of the server, whatever the page size of the server."""

    def tools_named(self, names: Sequence[str]) -> list[Tool]:
        """Returns the tools that have one of these names."""

    def put_tool(self, stub: Stub, tags: Sequence[str]) -> Tool:
        """Makes the tool of the stub on the server and returns the tool. A tool with the same name is overwritten."""

    def tag_tool(self, tool_id: str, tags: Sequence[str]) -> None:
        """Replaces the tags of a tool and changes nothing else."""

    def delete_tool(self, tool_id: str) -> None:
        """Deletes a tool from the server. A tool that does not exist any more is not an error."""

    # --- blocks ---------------------------------------------------------------------------------------

    def blocks(self) -> list[Block]:
        """Returns all memory blocks of the server, attached to an agent or not."""

    def add_block(self, agent_id: str, label: str, value: str, description: str, metadata: Mapping[str, Any]) -> Block:
        """Makes a read-only block with `value`, attaches the block to the agent, and returns the block."""

    def set_block(self, agent_id: str, label: str, value: str) -> None:
        """Changes the value of the agent's block with this label. The model sees the new value at its next call."""

    def remove_block(self, agent_id: str, block: Block) -> None:
        """Detaches the block from the agent and deletes the block from the server."""

    def delete_block(self, block_id: str) -> None:
        """Deletes a block that no agent has. A block that does not exist any more is not an error."""
