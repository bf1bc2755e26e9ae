"""The client's system prompt as one read-only memory block of ours on the agent.

Written only when it changed, in force in the turn that brings it, gone when a client sends none. The agent's own
blocks are never touched: ours is known by its metadata, not by its label.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridge.letta.gateway import Agent, Block, Gateway

OWNER = {"owner": "letta-tool-bridge", "purpose": "client-instructions"}
LABEL = "client_instructions"
DESCRIPTION = "Instructions of the application the user talks through. They hold for this conversation: follow them."


@dataclass(frozen=True, slots=True)
class BlockChange:
    """What to do with our block; `add` and `set` hold a value, "" means there is nothing to add or set."""

    label: str = ""
    add: str = ""
    set: str = ""
    remove: tuple[Block, ...] = ()


def plan_instructions(agent: Agent, wanted: str) -> BlockChange:
    ours = [block for block in agent.blocks if is_ours(block)]
    if not wanted:
        return BlockChange(remove=tuple(ours))
    if not ours:
        return BlockChange(label=_free_label(agent), add=wanted)
    kept, surplus = ours[0], tuple(ours[1:])
    return BlockChange(label=kept.label, set="" if kept.value == wanted else wanted, remove=surplus)


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
    number = 1
    label = LABEL
    while label in taken:
        number += 1
        label = f"{LABEL}_{number}"
    return label
