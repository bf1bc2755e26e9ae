"""The port to Letta: what the bridge asks of a server, in the bridge's own types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from bridge.letta.capabilities import ServerFeatures
from bridge.turn import Event, JsonObject


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


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent as the server has it now; tools, rules and message ids in the server's order."""

    id: str
    name: str
    type: str
    tools: tuple[Tool, ...] = ()
    rules: tuple[JsonObject, ...] = ()
    message_ids: tuple[str, ...] = ()
    blocks: tuple[Block, ...] = ()


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One message to the agent."""

    role: Literal["user", "system"]
    text: str


class Gateway(Protocol):
    """Every method raises a LettaError when the server can't be reached or refuses."""

    def features(self) -> ServerFeatures:
        """What the server can do; asked once and kept for a while."""

    def agents(self) -> list[AgentSummary]:
        """All agents that are not hidden, whatever the page size of the server."""

    def agents_named(self, name: str) -> list[AgentSummary]:
        """The agents with exactly this name."""

    def agent(self, agent_id: str) -> Agent:
        """One agent; LettaMissing when there is none of that id."""

    def send(self, agent_id: str, messages: Sequence[Outgoing], *, by_token: bool) -> Iterator[Event]:
        """Give the agent messages and yield what happens until its run ends.

        `by_token`: text comes in pieces as the model writes it, where the server can do that without damage.
        Raises before the first event when the server does not accept the messages; a run that fails later raises
        from the iteration.
        """

    def step_prompt_tokens(self, step_id: str) -> int | None:
        """Size of the prompt of one step of a run, when the server knows it."""

    def add_block(self, agent_id: str, label: str, value: str, description: str, metadata: Mapping[str, Any]) -> Block:
        """Make a read-only block that holds `value` and attach it to the agent."""

    def set_block(self, agent_id: str, label: str, value: str) -> None:
        """Change the value of the agent's block so that the model sees it at its next call."""

    def remove_block(self, agent_id: str, block: Block) -> None:
        """Take the block away from the agent and delete it."""
