from __future__ import annotations

import pytest

from bridge.letta.gateway import Agent, Block
from bridge.sync.instructions import (
    DESCRIPTION,
    LABEL,
    OWNER,
    BlockChange,
    apply_instructions,
    is_ours,
    plan_instructions,
)
from tests.fakes import FakeGateway

OURS = Block("block-1", LABEL, "be kind", OWNER)
THEIRS = Block("block-2", "persona", "I am Ada.")
LONG = "x" * 1_000_000


def agent(*blocks: Block) -> Agent:
    return Agent("agent-1", "Ada", "letta_v1_agent", blocks=blocks)


@pytest.mark.parametrize(
    ("blocks", "wanted", "change"),
    [
        ((THEIRS,), "", BlockChange()),
        ((THEIRS,), "be kind", BlockChange(label=LABEL, add="be kind")),
        ((THEIRS, OURS), "be kind", BlockChange(label=LABEL)),
        ((THEIRS, OURS), "be brief", BlockChange(label=LABEL, set="be brief")),
        ((THEIRS, OURS), "", BlockChange(remove=(OURS,))),
        ((THEIRS, OURS), LONG, BlockChange(label=LABEL, set=LONG)),
    ],
)
def test_a_change_is_as_small_as_possible(blocks: tuple[Block, ...], wanted: str, change: BlockChange) -> None:
    assert plan_instructions(agent(*blocks), wanted) == change


def test_a_second_block_of_ours_is_removed() -> None:
    surplus = Block("block-3", f"{LABEL}_2", "be brief", OWNER)
    assert plan_instructions(agent(OURS, surplus), "be kind") == BlockChange(label=LABEL, remove=(surplus,))
    assert plan_instructions(agent(OURS, surplus), "") == BlockChange(remove=(OURS, surplus))


def test_a_block_of_somebody_else_with_our_label_is_not_ours() -> None:
    theirs = Block("block-2", LABEL, "mine", {"owner": "somebody"})
    second = Block("block-3", f"{LABEL}_2", "mine too")
    assert plan_instructions(agent(theirs), "be kind") == BlockChange(label=f"{LABEL}_2", add="be kind")
    assert plan_instructions(agent(theirs, second), "be kind").label == f"{LABEL}_3"
    assert plan_instructions(agent(theirs), "") == BlockChange()


def test_our_block_keeps_the_label_that_it_has() -> None:
    renamed = Block("block-1", "notes", "be kind", OWNER)
    assert plan_instructions(agent(renamed), "be brief") == BlockChange(label="notes", set="be brief")


@pytest.mark.parametrize("metadata", [{}, {"owner": "letta-tool-bridge"}, {**OWNER, "purpose": "other"}])
def test_a_block_is_ours_only_with_all_of_our_metadata(metadata: dict[str, str]) -> None:
    assert not is_ours(Block("block-1", LABEL, "x", metadata))
    assert is_ours(Block("block-1", "any", "x", {**OWNER, "more": 1}))


def test_the_model_sees_what_was_applied_and_the_agents_own_blocks_stay(letta: FakeGateway) -> None:
    ada = letta.agents_named("Ada")[0].id
    for wanted in ("be kind", "be kind", "be brief", "", "", LONG):
        found = letta.agent(ada)
        apply_instructions(letta, found, plan_instructions(found, wanted))
        blocks = {block.label: block.value for block in letta.agent(ada).blocks}
        assert blocks == {"persona": "I am Ada.", **({LABEL: wanted} if wanted else {})}


def test_an_unchanged_system_prompt_costs_no_call(letta: FakeGateway) -> None:
    apply_instructions(letta, agent(OURS), plan_instructions(agent(OURS), "be kind"))
    apply_instructions(letta, agent(), plan_instructions(agent(), ""))
    assert letta.calls == []


def test_the_description_tells_the_model_what_the_block_is_for() -> None:
    assert "application" in DESCRIPTION
    assert "follow them" in DESCRIPTION
