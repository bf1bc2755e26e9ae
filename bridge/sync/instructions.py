"""Keeps the client's system prompt in one read-only memory block of the bridge on the agent.

The block is written only when the system prompt has changed, and removed when a client sends no system prompt. Both are
done before the agent gets the message of the same turn. The agent's own blocks are never touched: the bridge recognises
its block by the metadata, not by the label.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridge.letta.gateway import Agent, Block, Gateway

OWNER = {"owner": "letta-tool-bridge", "purpose": "client-instructions"}
LABEL = "client_instructions"
DESCRIPTION = "Instructions of the application the user talks through. They hold for this conversation: follow them."


@dataclass(frozen=True, slots=True)
class BlockChange:
    """What to do with the bridge's memory block on an agent. `label` is the label of that block.

    `add` is the value of a new block, `set` the new value of the existing block; "" means that nothing is added or set.
    `remove` are blocks of the bridge to be removed.
    """

    label: str = ""
    add: str = ""
    set: str = ""
    remove: tuple[Block, ...] = ()


def plan_instructions(agent: Agent, wanted: str) -> BlockChange:
    """Returns the change after which the bridge's one block on the agent holds `wanted`, the client's system prompt.

    If `wanted` is "", the agent gets no block of the bridge. Other blocks of the bridge are removed. If the block holds
    `wanted` already, the change is empty.
    """
    ours = tuple(block for block in agent.blocks if is_ours(block))
    if not wanted:
        return BlockChange(remove=ours)
    if not ours:
        return BlockChange(label=_free_label(agent), add=wanted)
    kept, *surplus = ours
    return BlockChange(label=kept.label, set="" if kept.value == wanted else wanted, remove=tuple(surplus))


def apply_instructions(gateway: Gateway, agent: Agent, change: BlockChange) -> None:
    """Makes the change to the agent's blocks on the Letta server."""
    for block in change.remove:
        gateway.remove_block(agent.id, block)
    if change.add:
        gateway.add_block(agent.id, change.label, change.add, DESCRIPTION, OWNER)
    if change.set:
        gateway.set_block(agent.id, change.label, change.set)


def is_ours(block: Block) -> bool:
    """Whether the bridge made a memory block for a client's system prompt."""
    return all(block.metadata.get(key) == value for key, value in OWNER.items())


def _free_label(agent: Agent) -> str:
    """Returns a label for the bridge's block that no block of the agent has."""
    taken = {block.label for block in agent.blocks}
    labels = (LABEL, *(f"{LABEL}_{number}" for number in range(2, len(taken) + 2)))
    return next(label for label in labels if label not in taken)
