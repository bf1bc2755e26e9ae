"""The interface to Letta: what the bridge asks of a server, in the bridge's own types. `client.py` implements it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from bridge import errors
from bridge.letta.capabilities import AgentModel, ServerFeatures
from bridge.turn import AgentCall, AgentEvent, Image, JsonObject, Message, Stub

# The names of the agents that the bridge makes begin so. Clients do not see these agents as models.
HELPER_PREFIX = "letta-tool-bridge-helper-"
# The name of the bridge's entry in an agent's metadata with the lists of its chats (see chats/lists.py).
CHATS_ENTRY = "letta-tool-bridge-chats"
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
    """A Letta agent; lists are in the server's order. `message_ids` are the messages in its context. `parallel_calls`:
    its model may make several calls in a step. `sleeptime`: another agent edits its memory. `clears_context`: Letta
    keeps no messages in its context from one turn to the next (message_buffer_autoclear).
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
    clears_context: bool = False

    @property
    def has_chats(self) -> bool:
        """Whether its stored messages are of several chats, of which one is in the context."""
        return CHATS_ENTRY in self.metadata


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
    """A message that Letta stores. `kind` is Letta's `message_type`, `text` what was said, thought or returned by a
    tool, `returns` each call's return by the server's call id, `otid` the id that the sender gave the message.
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
    """The result of an agent's held call. `call_id` is the server's id of the call."""

    call_id: str
    text: str
    ok: bool = True


@dataclass(frozen=True, slots=True)
class Results:
    """The results of all held calls of an agent."""

    results: tuple[CallResult, ...]


Outgoing = Say | Results


@dataclass(frozen=True, slots=True)
class ForeignCall:
    """A client's request in Letta's own API, passed on as it is. `path` begins with "/v1/" and is percent-encoded,
    `query` is as the client sent it, and `headers` has only those that may be passed on.
    """

    verb: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None


class Pieces(Iterator[bytes], Protocol):
    """The pieces of a body as it arrives."""

    def close(self) -> None:
        """Ends the connection unless the body was read to its end."""

    def abort(self) -> None:
        """Makes a read that waits in another thread end soon. The answer must be closed all the same."""


@dataclass(frozen=True, slots=True)
class ForeignAnswer:
    """Letta's answer to a ForeignCall, whatever its status. `headers` are without those of the connection itself.
    `pieces` is the body as it arrives, not decoded. Who gets an answer reads it to its end or closes it.
    """

    status: int
    headers: Sequence[tuple[str, str]]
    pieces: Pieces

    def read(self, limit: int) -> bytes:
        """Returns the whole body. Raises LettaError if it has more than `limit` bytes."""
        found = bytearray()
        try:
            for piece in self.pieces:
                found += piece
                if len(found) > limit:
                    raise errors.LettaError(f"The Letta server's answer has more than {limit} bytes.")
        finally:
            self.close()
        return bytes(found)

    def close(self) -> None:
        self.pieces.close()

    def abort(self) -> None:
        self.pieces.abort()


class Gateway(Protocol):
    """One Letta server. Every method raises a LettaError when the server can't be reached or refuses the call."""

    # --- server ---------------------------------------------------------------------------------------

    def features(self) -> ServerFeatures:
        """Returns what the server can do, read from the server once and kept for a while."""

    def check_server(self) -> None:
        """Raises a LettaError unless the server answers now."""

    def server_time(self) -> float | None:
        """Returns the server's time, in seconds since 1970; None when the server does not send its time."""

    def forward(self, call: ForeignCall, *, patient: bool = False) -> ForeignAnswer:
        """Passes a client's call on as it is. Any status is an answer, not an error. `patient`: the answer may take as
        long as a turn.
        """

    # --- agents ---------------------------------------------------------------------------------------

    def agents(self) -> list[AgentSummary]:
        """Returns all agents that are not hidden, whatever the page size of the server."""

    def agents_named(self, name: str) -> list[AgentSummary]:
        """Returns the agents with exactly this name."""

    def agent(self, agent_id: str) -> Agent:
        """Returns one agent. Raises LettaNotFound when no agent has this id."""

    def whole_agents(self, *, blocks: bool = False) -> list[Agent]:
        """Returns all agents, also hidden ones, with tools and rules, and if wanted with blocks. Expensive."""

    def change_agent(self, agent_id: str, change: AgentChange) -> Agent:
        """Changes the fields of the agent that `change` sets, in one call. Returns the changed agent."""

    def variables(self, agent_id: str) -> dict[str, str]:
        """Returns the environment variables that the agent's tools get when they run on the server."""

    def make_helper(self, agent_id: str, system: str, history: Sequence[Message] = ()) -> Agent:
        """Makes a hidden agent with the model of `agent_id`, the prompt `system`, no memory and no tools of its own.
        `history` is in its context; each call there has one result, next after it. Only the calls of the last message
        may have none, if the server `imports_held_calls`: then the agent waits for their results.
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
        """Sends messages to the agent and yields the events of the run that they start. Raises at once if the server
        refuses the messages, and from the iteration if the run fails; RunBrokenOff if the agent may have run although
        the server says otherwise. `by_token`: text comes in pieces; only for loops that do not damage it.
        `client_tools`: schemas for this run only, on servers with that feature.
        """

    def newest_messages(
        self, agent_id: str, limit: int, *, including: str = "", further: int = 0
    ) -> list[StoredMessage]:
        """Returns the agent's newest stored messages, in its context or not. The message with the id `including` is
        found even if the agent's other conversations have newer messages. If it is not there, reads `further` messages.
        """

    def runs_under_way(self, agent_id: str) -> list[str]:
        """Returns the unfinished runs of the bridge's conversation; [] if the server does not list runs reliably."""

    def cancel_runs(self, agent_id: str, run_id: str) -> None:
        """Ends one run, or with "" all of `runs_under_way`. A run that has ended already is not an error."""

    def step_prompt_tokens(self, step_id: str) -> int | None:
        """Returns the number of tokens in the prompt of one step of a run; None if the server has no such number."""

    # --- held calls and their returns -----------------------------------------------------------------

    def deny_call(self, agent_id: str, request_id: str, reason: str) -> StoredMessage:
        """Denies a held call without asking the model; returns the stored tool return, with Letta's text. Where
        messages can be changed, the stored text then becomes `reason`, without a failure. `request_id` is the id of the
        approval request's message.
        """

    def approve_call(self, agent_id: str, request_id: str) -> StoredMessage:
        """Approves a held call without asking the model: the server runs its stub. Returns the stored tool return."""

    def give_results(self, agent_id: str, results: Results) -> None:
        """Gives the agent the results of its held calls, without asking the model."""

    def rewrite_return(self, agent_id: str, message_id: str, text: str, ok: bool) -> bool:
        """Changes a stored tool return; `ok` false: the tool failed. Returns whether the server then has `text`."""

    # --- tools ----------------------------------------------------------------------------------------

    def tools(self) -> list[Tool]:
        """Returns all tools of the server, whatever the page size of the server."""

    def tools_named(self, names: Sequence[str]) -> list[Tool]:
        """Returns the tools that have one of these names."""

    def put_tool(self, stub: Stub, tags: Sequence[str]) -> Tool:
        """Makes the stub's tool on the server and returns it. A tool with the same name is overwritten."""

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
