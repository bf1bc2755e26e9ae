"""Keeps the client's system prompt in one read-only memory block of the bridge on the agent.

The block is changed before the agent gets the message of the same turn. The agent's own blocks are never touched: the
bridge recognises its block by the metadata, not by the label.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridge.letta.gateway import Agent, Block, Gateway

OWNER = {"owner": "letta-tool-bridge", "purpose": "client-instructions"}
LABEL = "client_instructions"
DESCRIPTION = "Instructions of the application the user talks through. They hold for this conversation: follow them."


@dataclass(frozen=True, slots=True)
class BlockChange:
    """What to do with the bridge's block: `add` a value or `set` a new one ("": nothing), and `remove` blocks."""

    label: str = ""
    add: str = ""
    set: str = ""
    remove: tuple[Block, ...] = ()


def plan_instructions(agent: Agent, wanted: str) -> BlockChange:
    """Returns the change after which the bridge's only block holds `wanted`; for "", the agent gets no block."""
    ours = tuple(block for block in agent.blocks if is_ours(block))
    if not wanted:
        return BlockChange(remove=ours)
    if not ours:
        return BlockChange(label=_free_label(agent), add=wanted)
    kept, *surplus = ours
    return BlockChange(label=kept.label, set="" if kept.value == wanted else wanted, remove=tuple(surplus))


def apply_instructions(gateway: Gateway, agent: Agent, change: BlockChange) -> None:
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
    taken = {block.label for block in agent.blocks}
    labels = (LABEL, *(f"{LABEL}_{number}" for number in range(2, len(taken) + 2)))
    return next(label for label in labels if label not in taken)
