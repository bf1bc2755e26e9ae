"""The sweep removes unused stubs from the server, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from unittest.mock import Mock

import pytest

from bridge import errors
from bridge.letta.gateway import Agent, Tool
from bridge.sync.cleanup import GRACE, Sweep, plan_sweep, sweep_server
from bridge.sync.inventory import OwnTool, list_own_tools
from bridge.sync.ownership import (
    OWNER,
    has_sweep_tag,
    idle_since,
    is_leaving,
    stub_tags,
    tags_when_idle,
    tags_when_leaving,
)
from tests.toolsets import Bridge, SharedLetta, lasting, offered, rules_of, second_name, stub, tool_of

DAY = 86_400.0
NOW = 1_800_000_000.0
MOST_IDLE = 100
READ, WRITE = stub("read_file"), stub("write_file")
STUB = tool_of(READ)
ADA = Agent("agent-1", "Ada", "letta_v1_agent")


@pytest.fixture
def letta() -> SharedLetta:
    return SharedLetta()


@pytest.fixture
def ada(letta: SharedLetta) -> Agent:
    agent = letta.has_agent("Ada")
    letta.attaches(agent, letta.has_tool("mine"))
    return letta.agent(agent.id)


@pytest.fixture
def bridge(letta: SharedLetta) -> Bridge:
    return Bridge(letta)


def swept(letta: SharedLetta, at: float, pause: Callable[[float], None] = lambda _: None, **more: bool) -> Sweep:
    return sweep_server(letta, DAY, MOST_IDLE, clock=lambda: at, pause=pause, **more)


def names(tools: tuple[Tool, ...]) -> list[str]:
    return [tool.name for tool in tools]


def idle(seconds: float, tool: Tool = STUB) -> Tool:
    return replace(tool, tags=tuple(tags_when_idle(tool, int(NOW - seconds))))


def leaving(tool: Tool) -> Tool:
    return replace(tool, tags=tuple(tags_when_leaving(tool)))


# --- the plan ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "agents", "fate"),
    [
        (STUB, (ADA,), "kept"),
        (idle(5), (ADA,), "unmarked"),
        (idle(DAY * 9), (ADA,), "unmarked"),
        (leaving(idle(DAY * 9)), (ADA,), "unmarked"),
        (STUB, (), "marked"),
        (leaving(STUB), (), "marked"),
        (idle(-60), (), "marked"),
        (idle(0), (), "kept"),
        (idle(DAY - 1), (), "kept"),
        (idle(DAY), (), "deleted"),
        (leaving(idle(DAY)), (), "deleted"),
    ],
)
def test_a_sweep_decides_by_the_stubs_mark_and_agents(tool: Tool, agents: tuple[Agent, ...], fate: str) -> None:
    assert plan_sweep([OwnTool(tool, agents)], NOW, DAY, MOST_IDLE) == Sweep(**{fate: (tool,)})


def test_without_stubs_nothing_is_planned() -> None:
    assert plan_sweep([], NOW, DAY, MOST_IDLE) == Sweep()


def numbered(key_name: str, number: int) -> Tool:
    """A stub that was made for the key; a higher number for a later one."""
    tool = tool_of(stub(f"{key_name}_{number}"), key_name)
    return replace(tool, tags=(*(tag for tag in tool.tags if ":made=" not in tag), f"{OWNER}:made={1000 + number}"))


def test_of_each_key_the_newest_idle_stubs_stay() -> None:
    alice, bob, nobody = ([OwnTool(numbered(key, number)) for number in range(5)] for key in ("alice", "bob", ""))
    plan = plan_sweep([*alice, *bob[:2], *nobody], NOW, DAY, 3)
    assert names(plan.deleted) == ["alice_0", "alice_1", "_0", "_1"]


def test_stubs_that_are_idle_for_longest_go_first_whenever_they_were_made() -> None:
    owned = [OwnTool(idle(10.0 * number, numbered("alice", number))) for number in range(5)]
    assert names(plan_sweep(owned, NOW, DAY, 3).deleted) == ["alice_3", "alice_4"]


def test_stubs_that_agents_have_do_not_count_and_stay() -> None:
    owned = [OwnTool(numbered("alice", number), (ADA,) if number < 4 else ()) for number in range(6)]
    plan = plan_sweep(owned, NOW, DAY, 1)
    assert names(plan.deleted) == ["alice_4"]
    assert names(plan.kept) == [f"alice_{number}" for number in range(4)]


def test_stubs_of_a_clock_that_was_put_back_count_as_idle_since_now() -> None:
    owned = [OwnTool(idle(seconds, numbered("alice", number))) for number, seconds in enumerate((-DAY, 5.0, -DAY))]
    assert names(plan_sweep(owned, NOW, DAY, 1).deleted) == ["alice_0", "alice_1"]


def test_the_inventory_lists_only_tools_of_ours(letta: SharedLetta, bridge: Bridge, ada: Agent) -> None:
    letta.has_tool("theirs", tags=["letta-tool-bridges"])
    letta.has_tool("from_mcp", "external_mcp", tags=["letta-tool-bridge"])
    bridge.sync(ada, WRITE, READ)
    assert [(own.tool.name, [agent.name for agent in own.agents]) for own in list_own_tools(letta)] == [
        ("read_file", ["Ada"]),
        ("write_file", ["Ada"]),
    ]


def test_without_stubs_the_agents_are_not_listed(letta: SharedLetta, ada: Agent) -> None:
    assert swept(letta, NOW) == Sweep()
    assert letta.calls[-1] == "tools"


# --- the sweep --------------------------------------------------------------------------------------------


def test_a_stub_is_deleted_a_day_after_it_was_first_seen_unused(letta: SharedLetta, bridge: Bridge, ada: Agent) -> None:
    bridge.sync(ada, READ, WRITE)
    assert names(swept(letta, NOW).kept) == ["read_file", "write_file"]
    bridge.sync(ada, WRITE)
    assert names(swept(letta, NOW).marked) == ["read_file"]
    assert idle_since(letta.tool("read_file")) == NOW
    assert names(swept(letta, NOW + DAY - 1).kept) == ["read_file", "write_file"]
    done = swept(letta, NOW + DAY)
    assert (names(done.deleted), names(done.kept)) == (["read_file"], ["write_file"])
    assert not letta.has("read_file")
    assert [*offered(letta, ada)] == ["mine", "write_file"]


def test_a_stub_that_is_used_again_stays_another_day(letta: SharedLetta, bridge: Bridge, ada: Agent) -> None:
    bridge.sync(ada, READ)
    bridge.sync(ada)
    swept(letta, NOW)
    bridge.sync(ada, READ)
    bridge.sync(ada)
    assert names(swept(letta, NOW + DAY).marked) == ["read_file"]
    assert names(swept(letta, NOW + 2 * DAY).deleted) == ["read_file"]


def test_a_stub_of_a_hidden_agent_or_of_one_without_a_bridge_is_used(
    letta: SharedLetta, bridge: Bridge, ada: Agent
) -> None:
    hidden = letta.has_agent("Hid", hidden=True)
    bridge.sync(hidden, READ)
    bob = letta.has_agent("Bob")
    letta.attaches(bob, letta.put_tool(WRITE, stub_tags(WRITE)))
    assert swept(letta, NOW) == swept(letta, NOW + 9 * DAY)
    assert letta.has("read_file")
    assert letta.has("write_file")


def test_a_helper_agent_is_removed_when_its_request_must_be_over(letta: SharedLetta, ada: Agent) -> None:
    helper = letta.make_helper(ada.id, "Answer in one word.")
    assert swept(letta, 3599).helpers == ()
    assert [agent.id for agent in swept(letta, 3600, dry_run=True).helpers] == [helper.id]
    assert [agent.id for agent in swept(letta, 3600).helpers] == [helper.id]
    assert letta.helpers() == []
    assert letta.agent(ada.id)


def test_a_stub_that_somebody_detached_stays_until_its_rule_is_gone(
    letta: SharedLetta, bridge: Bridge, ada: Agent
) -> None:
    """A bridge that was restarted recognises the rule by the stub."""
    bridge.sync(ada, READ)
    letta.detaches(ada, "read_file")
    assert names(swept(letta, NOW).kept) == names(swept(letta, NOW + 9 * DAY).kept) == ["read_file"]
    Bridge(letta).sync(ada)
    assert rules_of(letta, ada) == []
    assert names(swept(letta, NOW).marked) == ["read_file"]


def test_an_attached_stub_loses_its_mark(letta: SharedLetta, bridge: Bridge, ada: Agent) -> None:
    bridge.sync(ada, READ)
    letta.edits(letta.tool("read_file"), tags=tuple(tags_when_leaving(idle(DAY * 9, letta.tool("read_file")))))
    assert names(swept(letta, NOW).unmarked) == ["read_file"]
    assert lasting(letta.tool("read_file").tags) == lasting(stub_tags(READ))


def test_foreign_tools_are_never_touched(letta: SharedLetta, bridge: Bridge, ada: Agent) -> None:
    letta.has_tool("read_file")
    letta.has_tool("lonely", tags=["letta-tool-bridge:idle-since=5", "letta-tool-bridge:leaving"])
    letta.has_tool("from_mcp", "external_mcp", tags=["letta-tool-bridge", "letta-tool-bridge:idle-since=5"])
    foreign = [*letta._tools.values()]
    bridge.sync(ada, READ)
    bridge.sync(ada)
    for day in range(3):
        swept(letta, NOW + day * DAY)
    assert [*letta._tools.values()] == foreign


def test_a_dry_run_reports_the_same_and_changes_nothing(letta: SharedLetta, bridge: Bridge, ada: Agent) -> None:
    bridge.sync(ada, READ, WRITE)
    bridge.sync(ada, READ)
    letta.edits(letta.tool("write_file"), tags=tuple(tags_when_idle(letta.tool("write_file"), 5)))
    before = dict(letta._tools)
    planned = swept(letta, NOW, dry_run=True)
    assert letta._tools == before
    assert swept(letta, NOW) == planned
    assert names(planned.deleted) == ["write_file"]


def test_two_sweeps_at_once_do_not_disturb_each_other(letta: SharedLetta, bridge: Bridge, ada: Agent) -> None:
    bridge.sync(ada, READ, WRITE)
    bridge.sync(ada)
    letta.before_call("tag_tool", lambda: swept(letta, NOW))
    swept(letta, NOW)
    second: list[Sweep] = []
    first = swept(letta, NOW + DAY, pause=lambda _: second.append(swept(letta, NOW + DAY)))
    assert (names(first.deleted), names(second[0].deleted)) == ([], ["read_file", "write_file"])
    assert not letta.has("read_file")


# --- a sweep and a turn at the same time ------------------------------------------------------------------


@pytest.fixture
def overdue(letta: SharedLetta, bridge: Bridge, ada: Agent) -> Tool:
    """A stub of a known client that is about to be deleted."""
    bridge.sync(ada, READ)
    bridge.sync(ada)
    return letta.edits(letta.tool("read_file"), tags=tuple(tags_when_idle(letta.tool("read_file"), 5)))


@pytest.mark.usefixtures("overdue")
def test_a_stub_attached_before_it_was_marked_as_leaving_stays(letta: SharedLetta, bridge: Bridge, ada: Agent) -> None:
    offers: list[list[str]] = []
    letta.before_call("tag_tool", lambda: offers.append(bridge.sync(ada, READ)))
    assert names(swept(letta, NOW).deleted) == []
    assert offers == [["read_file"]]
    assert "read_file" in offered(letta, ada)
    assert not has_sweep_tag(letta.tool("read_file"))


@pytest.mark.usefixtures("overdue")
def test_a_stub_attached_while_the_sweep_waits_stays_as_long_as_it_is_used(
    letta: SharedLetta, bridge: Bridge, ada: Agent
) -> None:
    """The turn does not know whether the sweep will see it, so it takes another stub."""
    offers: list[list[str]] = []
    done = swept(letta, NOW, pause=lambda _: offers.append(bridge.sync(ada, READ)))
    assert offers == [[second_name(READ)]]
    assert names(done.deleted) == ["read_file"]
    assert [*offered(letta, ada)] == ["mine", second_name(READ)]
    assert rules_of(letta, ada) == [("requires_approval", second_name(READ))]
    assert bridge.sync(ada, READ) == offers[0]
    assert bridge.counts == {}


@pytest.mark.parametrize("verb", ["whole_agents", "tools_named", "delete_tool"])
@pytest.mark.usefixtures("overdue")
def test_a_stub_that_a_turn_begins_to_use_is_not_deleted(
    letta: SharedLetta, bridge: Bridge, ada: Agent, verb: str
) -> None:
    offers: list[list[str]] = []
    letta.before_call(verb, lambda: offers.append(bridge.sync(ada, READ)), nth=2 if verb == "whole_agents" else 1)
    swept(letta, NOW)
    assert [[*offered(letta, ada)]] == [["mine", *offer] for offer in offers]


@pytest.mark.usefixtures("overdue")
def test_a_stub_attached_by_hand_while_the_sweep_waits_stays(letta: SharedLetta, ada: Agent) -> None:
    done = swept(letta, NOW, pause=lambda _: letta.attaches(ada, letta.tool("read_file")))
    assert names(done.deleted) == []
    assert "read_file" in offered(letta, ada)
    assert not has_sweep_tag(letta.tool("read_file"))


@pytest.mark.usefixtures("overdue")
def test_a_stub_put_again_while_the_sweep_waits_stays(letta: SharedLetta) -> None:
    done = swept(letta, NOW, pause=lambda _: letta.put_tool(READ, stub_tags(READ)))
    assert names(done.deleted) == []
    assert lasting(letta.tool("read_file").tags) == lasting(stub_tags(READ))


def test_a_stub_deleted_between_put_and_attaching_is_made_again(letta: SharedLetta, bridge: Bridge, ada: Agent) -> None:
    letta.before_call("change_agent", lambda: letta.delete_tool(letta.tool("read_file").id))
    assert bridge.sync(ada, READ) == ["read_file"]
    assert offered(letta, ada)["read_file"] == READ.json_schema


def test_the_sweep_waits_only_if_a_stub_is_leaving(letta: SharedLetta, overdue: Tool) -> None:
    waits: list[float] = []
    swept(letta, NOW, pause=waits.append)
    assert waits == [GRACE]
    swept(letta, NOW, pause=waits.append)
    assert waits == [GRACE]


@pytest.mark.usefixtures("overdue")
def test_a_sweep_that_was_killed_is_finished_by_the_next_one(letta: SharedLetta) -> None:
    with pytest.raises(KeyboardInterrupt):
        swept(letta, NOW, pause=Mock(side_effect=KeyboardInterrupt))
    assert is_leaving(letta.tool("read_file"))
    assert names(swept(letta, NOW).deleted) == ["read_file"]


# --- failures ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [errors.LettaNotFound("gone"), errors.LettaError("500"), errors.LettaConflict("409")])
def test_the_sweep_goes_on_after_a_stub_that_cannot_be_changed(
    letta: SharedLetta, bridge: Bridge, ada: Agent, fault: errors.LettaError
) -> None:
    bridge.sync(ada, READ, WRITE)
    bridge.sync(ada)
    letta.before_call("tag_tool", Mock(side_effect=fault))
    assert names(swept(letta, NOW).marked) == ["write_file"]
    assert names(swept(letta, NOW).marked) == ["read_file"]
    letta.before_call("delete_tool", Mock(side_effect=fault))
    assert names(swept(letta, NOW + DAY).deleted) == ["write_file"]
    assert names(swept(letta, NOW + DAY).deleted) == ["read_file"]


@pytest.mark.parametrize("verb", ["tools", "whole_agents", "tag_tool"])
def test_a_server_that_is_down_ends_the_sweep(letta: SharedLetta, bridge: Bridge, ada: Agent, verb: str) -> None:
    bridge.sync(ada, READ)
    bridge.sync(ada)
    letta.before_call(verb, Mock(side_effect=errors.LettaUnreachable("It is down.")))
    with pytest.raises(errors.LettaUnreachable):
        swept(letta, NOW)
    assert letta.has("read_file")
