"""Keeps the client's system prompt in one read-only memory block of ours on the agent.

The block is written only when the prompt changed, and removed when a client sends none; both hold for the turn that
brings the change. The agent's own blocks are never touched: ours is recognised by its metadata, not by its label.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridge.letta.gateway import Agent, Block, Gateway

OWNER = {"owner": "letta-tool-bridge", "purpose": "client-instructions"}
LABEL = "client_instructions"
DESCRIPTION = "Instructions of the application the user talks through. They hold for this conversation: follow them."


@dataclass(frozen=True, slots=True)
class BlockChange:
    """What to do with our block. `add` and `set` are its new value; "" means that nothing is added or set."""

    label: str = ""
    add: str = ""
    set: str = ""
    remove: tuple[Block, ...] = ()


def plan_instructions(agent: Agent, wanted: str) -> BlockChange:
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
    return all(block.metadata.get(key) == value for key, value in OWNER.items())


def _free_label(agent: Agent) -> str:
    taken = {block.label for block in agent.blocks}
    labels = (LABEL, *(f"{LABEL}_{number}" for number in range(2, len(taken) + 2)))
    return next(label for label in labels if label not in taken)
