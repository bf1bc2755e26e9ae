"""The toolset of an agent on a server that other people and other bridges change, too."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from unittest.mock import Mock

import pytest

from bridge import errors
from bridge.letta.gateway import Agent, AgentChange, Tool
from bridge.stubs.converter import make_stub
from bridge.sync.made_stubs import MadeStubs
from bridge.sync.names import possible_names
from bridge.sync.new_stubs import NewStubs
from bridge.sync.ownership import (
    OWNER,
    idle_since,
    is_leaving,
    is_ours,
    key_of,
    stub_tags,
    tags_when_idle,
    tags_when_leaving,
)
from bridge.sync.registry import bindings_beside_own_tools
from bridge.sync.toolset import sync_toolset
from bridge.turn import SchemaForm, Stub, ToolSpec
from tests.stores import MemoryStore
from tests.toolsets import (
    GATE,
    Bridge,
    SharedLetta,
    gates,
    lasting,
    new_registry,
    offered,
    rules_of,
    second_name,
    stub,
    tool_of,
)
from tests.waiting import SOON

READ, WRITE = stub("read_file"), stub("write_file")
OTHER_READ = stub("read_file", "Reads another file.")
FIFTY = [stub(f"tool_{number}") for number in range(50)]


@pytest.fixture
def letta() -> SharedLetta:
    return SharedLetta()


@pytest.fixture
def ada(letta: SharedLetta) -> Agent:
    """An agent with tools and rules of its own."""
    agent = letta.has_agent("Ada", "memgpt_v2_agent")
    letta.attaches(
        agent,
        letta.has_tool("send_message", "letta_core"),
        letta.has_tool("mine"),
        rules=[{"type": "exit_loop", "tool_name": "send_message"}, {"type": GATE, "tool_name": "mine"}],
    )
    return letta.agent(agent.id)


@pytest.fixture
def bob(letta: SharedLetta) -> Agent:
    return letta.has_agent("Bob")


@pytest.fixture
def bridge(letta: SharedLetta) -> Bridge:
    return Bridge(letta)


# --- exactly the request's --------------------------------------------------------------------------------


def test_the_toolset_is_the_agents_own_and_the_requests(letta: SharedLetta, bridge: Bridge, ada: Agent) -> None:
    for wanted in ([READ, WRITE], [WRITE], [WRITE, READ], [], [READ]):
        assert bridge.sync(ada, *wanted) == [one.name for one in wanted]
        assert [*offered(letta, ada)] == ["send_message", "mine", *(one.name for one in wanted)]
        own = [("exit_loop", "send_message"), (GATE, "mine")]
        assert rules_of(letta, ada) == [*own, *((GATE, one.name) for one in wanted)]


def test_an_agent_without_clients_is_as_it_was_before_the_first_client(
    letta: SharedLetta, bridge: Bridge, ada: Agent
) -> None:
    bridge.sync(ada, *FIFTY)
    bridge.sync(ada)
    assert letta.agent(ada.id) == ada


def test_a_tool_that_somebody_adds_at_the_same_time_is_kept(letta: SharedLetta, bridge: Bridge, ada: Agent) -> None:
    new = letta.has_tool("new")
    rule = {"type": "max_count_per_step", "tool_name": "new", "max_count_limit": 1}
    letta.before_call("put_tool", lambda: letta.attaches(ada, new, rules=[rule]))
    bridge.sync(ada, READ)
    assert [*offered(letta, ada)] == ["send_message", "mine", "new", "read_file"]
    assert ("max_count_per_step", "new") in rules_of(letta, ada)


def test_a_tool_that_somebody_detaches_at_the_same_time_stays_away(
    letta: SharedLetta, bridge: Bridge, ada: Agent
) -> None:
    letta.before_call("put_tool", lambda: letta.detaches(ada, "mine"))
    bridge.sync(ada, READ)
    assert [*offered(letta, ada)] == ["send_message", "read_file"]


# --- what it costs ----------------------------------------------------------------------------------------


def test_an_unchanged_toolset_costs_no_call(bridge: Bridge, ada: Agent) -> None:
    bridge.sync(ada, *FIFTY)
    bridge.sync(ada, *FIFTY)
    assert bridge.counts == {}
    bridge.sync(ada, *reversed(FIFTY))
    assert bridge.counts == {}


def test_new_tools_cost_one_lookup_one_put_each_one_reading_and_one_change(bridge: Bridge, ada: Agent) -> None:
    bridge.sync(ada, *FIFTY)
    assert bridge.counts == {"tools_named": 1, "put_tool": 50, "agent": 1, "change_agent": 1}


def test_one_changed_of_fifty_costs_one_put(bridge: Bridge, ada: Agent) -> None:
    bridge.sync(ada, *FIFTY)
    bridge.sync(ada, stub("tool_0", "Changed."), *FIFTY[1:])
    assert bridge.counts == {"tools_named": 1, "put_tool": 1, "agent": 1, "change_agent": 1}


def test_tools_that_leave_and_come_back_cost_one_change_each(bridge: Bridge, ada: Agent) -> None:
    bridge.sync(ada, *FIFTY)
    bridge.sync(ada)
    assert bridge.counts == {"change_agent": 1}
    bridge.sync(ada)
    assert bridge.counts == {}
    bridge.sync(ada, *FIFTY)
    assert bridge.counts == {"change_agent": 1}


def test_tools_that_another_agent_has_are_not_put_again(bridge: Bridge, ada: Agent, bob: Agent) -> None:
    bridge.sync(ada, *FIFTY)
    assert bridge.sync(bob, *FIFTY) == [one.name for one in FIFTY]
    assert bridge.counts == {"change_agent": 1}


def test_a_restarted_bridge_knows_what_the_agent_has(letta: SharedLetta, bridge: Bridge, ada: Agent) -> None:
    bridge.sync(ada, *FIFTY)
    second = Bridge(letta)
    second.sync(ada, *FIFTY)
    assert second.counts == {}
    second.sync(ada, *FIFTY[1:])
    assert second.counts == {"change_agent": 1}


def test_a_restarted_bridge_finds_stubs_that_no_agent_has(letta: SharedLetta, bridge: Bridge, ada: Agent) -> None:
    bridge.sync(ada, *FIFTY)
    bridge.sync(ada)
    second = Bridge(letta)
    assert second.sync(ada, *FIFTY) == [one.name for one in FIFTY]
    assert second.counts == {"tools_named": 1, "agent": 1, "change_agent": 1}


# --- names ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("type", "tags"),
    [
        ("custom", ()),
        ("custom", ("weather",)),
        ("external_mcp", ("mcp:files",)),
        ("letta_core", ()),
        ("letta_builtin", ()),
        ("external_mcp", (OWNER,)),
    ],
)
def test_a_foreign_tool_of_the_same_name_is_untouched(
    letta: SharedLetta, bridge: Bridge, ada: Agent, type: str, tags: tuple[str, ...]
) -> None:
    foreign = letta.has_tool("read_file", type, tags=tags)
    (name,) = bridge.sync(ada, READ)
    assert name == second_name(READ)
    assert letta.tool("read_file") == foreign
    assert offered(letta, ada)[name]["description"] == "Reads a file."
    assert rules_of(letta, ada)[-1] == (GATE, name)
    bridge.sync(ada, READ)
    assert bridge.counts == {}


def test_a_foreign_tool_of_the_same_name_that_the_agent_has_stays_beside_the_stub(
    letta: SharedLetta, bridge: Bridge, ada: Agent
) -> None:
    letta.attaches(ada, letta.has_tool("read_file"), rules=[{"type": GATE, "tool_name": "read_file"}])
    (name,) = bridge.sync(ada, READ)
    assert {"read_file", name} <= {*offered(letta, ada)}
    bridge.sync(ada)
    assert [*offered(letta, ada)] == ["send_message", "mine", "read_file"]
    assert rules_of(letta, ada)[-1] == (GATE, "read_file")


def test_a_stub_whose_tags_somebody_removed_is_foreign(letta: SharedLetta, bridge: Bridge, ada: Agent) -> None:
    bridge.sync(ada, READ)
    theirs = letta.edits(letta.tool("read_file"), tags=("adopted",))
    assert bridge.sync(ada, READ) == [second_name(READ)]
    assert letta.tool("read_file") == theirs
    assert bridge.sync(ada) == []
    assert "read_file" in offered(letta, ada)


def test_two_schemas_of_one_name_are_two_tools_and_the_first_keeps_the_plain_name(
    letta: SharedLetta, bridge: Bridge, ada: Agent, bob: Agent
) -> None:
    for _ in range(2):
        assert bridge.sync(ada, READ) == ["read_file"]
        assert bridge.sync(bob, OTHER_READ) == [second_name(OTHER_READ)]
    assert offered(letta, ada)["read_file"]["description"] == "Reads a file."
    assert offered(letta, bob)[second_name(OTHER_READ)]["description"] == "Reads another file."


def test_a_changed_schema_replaces_the_old_one_on_the_agent_at_once(
    letta: SharedLetta, bridge: Bridge, ada: Agent
) -> None:
    bridge.sync(ada, READ)
    (name,) = bridge.sync(ada, OTHER_READ)
    assert [*offered(letta, ada)] == ["send_message", "mine", name]
    assert rules_of(letta, ada)[2:] == [(GATE, name)]
    assert letta.tool("read_file").json_schema == READ.json_schema


def test_a_stub_has_nine_possible_names(letta: SharedLetta, bridge: Bridge, ada: Agent) -> None:
    names = possible_names(READ)
    assert len(set(names)) == 9
    for name in names[:-1]:
        letta.has_tool(name)
    assert bridge.sync(ada, READ) == [names[-1]]
    bridge.sync(ada)
    letta.delete_tool(letta.tool(names[-1]).id)
    letta.has_tool(names[-1])
    with pytest.raises(errors.LettaRejected, match="Every name for the tool 'read_file' is taken"):
        bridge.sync(ada, READ)


def test_a_tool_cannot_take_the_second_name_of_another_tool_in_the_request(
    letta: SharedLetta, bridge: Bridge, ada: Agent
) -> None:
    letta.has_tool("read_file")
    rival = stub(second_name(READ), "A rival.")
    names = bridge.sync(ada, READ, rival)
    assert names[0] == second_name(READ)
    assert len(set(names)) == 2
    assert offered(letta, ada)[names[1]]["description"] == "A rival."
    bridge.sync(ada, rival, READ)
    assert bridge.counts == {}


def test_stubs_of_another_version_of_the_bridge_are_renewed_and_keep_their_names(
    letta: SharedLetta, bridge: Bridge, ada: Agent
) -> None:
    bridge.sync(ada, READ)
    older = replace(READ, digest="0" * 64, source_code=f"# {OWNER}, older\n")
    letta.edits(letta.tool("read_file"), tags=tuple(stub_tags(older)), source=older.source_code)
    assert bridge.sync(ada, READ) == ["read_file"]
    assert letta.tool("read_file").source == READ.source_code
    assert bridge.counts == {"put_tool": 1, "agent": 1}


def test_a_stub_that_returns_something_else_has_a_name_of_its_own(
    letta: SharedLetta, bridge: Bridge, ada: Agent, bob: Agent
) -> None:
    relay = stub("read_file", kind="relay")
    bridge.sync(ada, READ)
    (name,) = bridge.sync(bob, relay)
    assert name != "read_file"
    assert letta.tool(name).source != letta.tool("read_file").source


def test_a_method_does_not_use_a_name_that_it_cannot_use(
    letta: SharedLetta, bridge: Bridge, ada: Agent, bob: Agent
) -> None:
    """If the server runs stubs, their names must be valid in Python. The stubs are equal in everything else."""
    spec = ToolSpec("read-file", "", {"type": "object", "properties": {}})
    any_name = make_stub(spec, SchemaForm())
    python_name = make_stub(spec, SchemaForm(python_names=True))
    assert any_name.digest == python_name.digest
    assert bridge.sync(ada, any_name) == ["read-file"]
    for agent, one in ((bob, python_name), (ada, any_name), (bob, python_name)):
        (name,) = bridge.sync(agent, one)
        assert name.isidentifier() == (one is python_name)


def test_tools_that_are_only_in_the_request_avoid_the_names_of_the_agents_own(letta: SharedLetta, ada: Agent) -> None:
    mine = stub("mine")
    rival = stub(second_name(mine), "A rival.")
    names = [binding.stub.name for binding in bindings_beside_own_tools(ada, [mine, READ, rival])]
    assert names == [second_name(mine), "read_file", second_name(rival)]
    assert [binding.stub.json_schema["name"] for binding in bindings_beside_own_tools(ada, [mine])] == names[:1]


# --- repair -----------------------------------------------------------------------------------------------


def test_a_stub_changed_by_hand_is_put_back_before_the_agent_runs(
    letta: SharedLetta, bridge: Bridge, ada: Agent
) -> None:
    bridge.sync(ada, READ, WRITE)
    for change in (
        {"json_schema": {"name": "read_file", "parameters": {}}},
        {"source": f"{READ.source_code}\nimport os"},
    ):
        letta.edits(letta.tool("read_file"), **change)
        assert bridge.sync(ada, READ, WRITE) == ["read_file", "write_file"]
        assert bridge.counts == {"put_tool": 1, "agent": 1}
        assert (letta.tool("read_file").json_schema, letta.tool("read_file").source) == (
            READ.json_schema,
            READ.source_code,
        )


def test_a_stub_changed_by_hand_while_no_agent_has_it_is_put_back_too(
    letta: SharedLetta, bridge: Bridge, ada: Agent
) -> None:
    bridge.sync(ada, READ)
    bridge.sync(ada)
    letta.edits(letta.tool("read_file"), json_schema={"name": "read_file", "parameters": {}})
    assert bridge.sync(ada, READ) == ["read_file"]
    assert offered(letta, ada)["read_file"] == READ.json_schema


def test_a_tool_that_somebody_puts_under_a_stubs_name_is_foreign(
    letta: SharedLetta, bridge: Bridge, ada: Agent
) -> None:
    """Letta keeps the stub's tags on that tool."""
    bridge.sync(ada, READ, WRITE)
    schema = {"name": "read_file", "description": "Theirs.", "parameters": {}}
    theirs = letta.edits(letta.tool("read_file"), source="def read_file():\n    return 1\n", json_schema=schema)
    assert bridge.sync(ada, READ, WRITE) == [second_name(READ), "write_file"]
    assert letta.tool("read_file") == theirs
    assert offered(letta, ada)["read_file"] == schema
    assert "read_file" not in [rule["tool_name"] for rule in letta.agent(ada.id).rules]
    bridge.sync(ada)
    assert [*offered(letta, ada)] == ["send_message", "mine", "read_file"]


def test_a_stub_renamed_by_hand_is_replaced(letta: SharedLetta, bridge: Bridge, ada: Agent) -> None:
    bridge.sync(ada, READ)
    letta.edits(letta.tool("read_file"), name="renamed", json_schema={**READ.json_schema, "name": "renamed"})
    assert bridge.sync(ada, READ) == ["read_file"]
    assert [*offered(letta, ada)] == ["send_message", "mine", "read_file"]


def test_a_stub_detached_by_hand_is_attached_again_and_leaves_with_its_rule(
    letta: SharedLetta, bridge: Bridge, ada: Agent
) -> None:
    bridge.sync(ada, READ)
    letta.detaches(ada, "read_file")
    bridge.sync(ada, READ)
    assert "read_file" in offered(letta, ada)
    letta.detaches(ada, "read_file")
    bridge.sync(ada)
    assert letta.agent(ada.id) == ada


def test_the_rule_of_a_stub_deleted_by_hand_is_removed(letta: SharedLetta, bridge: Bridge, ada: Agent) -> None:
    bridge.sync(ada, READ)
    letta.delete_tool(letta.tool("read_file").id)
    bridge.sync(ada)
    assert letta.agent(ada.id) == ada


def test_the_rule_of_a_stub_detached_by_hand_is_removed_even_if_another_bridge_made_it(
    letta: SharedLetta, bridge: Bridge, ada: Agent
) -> None:
    bridge.sync(ada, READ)
    letta.detaches(ada, "read_file")
    second = Bridge(letta)
    second.sync(ada)
    assert letta.agent(ada.id) == ada
    assert second.counts == {"tools_named": 1, "change_agent": 1}


def test_somebody_elses_rule_for_a_missing_tool_stays_and_is_looked_up_once(
    letta: SharedLetta, bridge: Bridge, ada: Agent
) -> None:
    letta.has_tool("theirs")
    loose = [{"type": "run_first", "tool_name": name} for name in ("theirs", "nobodys")]
    letta.attaches(ada, rules=loose)
    bridge.sync(ada)
    assert bridge.counts == {"tools_named": 1}
    bridge.sync(ada, READ)
    bridge.sync(ada)
    assert bridge.counts == {"change_agent": 1}
    assert rules_of(letta, ada)[2:] == [("run_first", "theirs"), ("run_first", "nobodys")]


def test_a_stub_deleted_by_hand_is_made_again(letta: SharedLetta, bridge: Bridge, ada: Agent) -> None:
    bridge.sync(ada, READ, WRITE)
    letta.delete_tool(letta.tool("read_file").id)
    assert bridge.sync(ada, READ, WRITE) == ["read_file", "write_file"]
    assert bridge.counts["put_tool"] == 1


GONE = [
    errors.LettaConflict("foreign key"),
    errors.LettaNotFound("Items not found in tools"),
    errors.LettaError("The Letta server failed (500)."),
]


@pytest.mark.parametrize("fault", GONE)
@pytest.mark.parametrize("verb", ["change_agent", "put_tool", "tools_named", "tag_tool"])
def test_a_race_is_repaired_by_reading_again(
    letta: SharedLetta, bridge: Bridge, ada: Agent, fault: errors.LettaError, verb: str
) -> None:
    bridge.sync(ada, READ)
    bridge.sync(ada)
    letta.edits(letta.tool("read_file"), tags=(*letta.tool("read_file").tags, f"{OWNER}:idle-since=5"))
    letta.before_call(verb, Mock(side_effect=fault))
    assert bridge.sync(ada, READ, WRITE) == ["read_file", "write_file"]
    assert [*offered(letta, ada)] == ["send_message", "mine", "read_file", "write_file"]


def test_a_stub_that_vanishes_between_put_and_change_is_made_again(
    letta: SharedLetta, bridge: Bridge, ada: Agent
) -> None:
    for nth in (1, 2):
        letta.before_call("change_agent", lambda: letta.delete_tool(letta.tool("read_file").id), nth)
    assert bridge.sync(ada, READ, WRITE) == ["read_file", "write_file"]
    assert bridge.counts["put_tool"] == 4
    assert bridge.counts["change_agent"] == 3


def test_an_own_tool_of_the_agent_that_vanishes_is_left_out(letta: SharedLetta, bridge: Bridge, ada: Agent) -> None:
    letta.before_call("change_agent", lambda: letta.delete_tool(letta.tool("mine").id))
    assert bridge.sync(ada, READ) == ["read_file"]
    assert [*offered(letta, ada)] == ["send_message", "read_file"]


def test_a_server_that_ignores_a_deleted_tool_is_not_believed(
    letta: SharedLetta, bridge: Bridge, ada: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0.7 answers 200 and sets the tools that exist."""
    strict = letta.change_agent

    def lenient(agent_id: str, change: AgentChange) -> Agent:
        there = {tool.id for tool in letta._tools.values()}
        return strict(agent_id, replace(change, tool_ids=[one for one in change.tool_ids or () if one in there]))

    monkeypatch.setattr(letta, "change_agent", lenient)
    bridge.sync(ada, READ)
    bridge.sync(ada)
    letta.delete_tool(letta.tool("read_file").id)
    assert bridge.sync(ada, READ) == ["read_file"]
    assert "read_file" in offered(letta, ada)


def test_after_two_repairs_the_client_is_asked_to_try_again(letta: SharedLetta, bridge: Bridge, ada: Agent) -> None:
    for nth in (1, 2, 3):
        letta.before_call("change_agent", lambda: letta.delete_tool(letta.tool("read_file").id), nth)
    with pytest.raises(errors.LettaUnavailable, match="could not be set, 3 times in a row") as caught:
        bridge.sync(ada, READ)
    assert caught.value.status == 503
    assert caught.value.retry_after
    assert bridge.counts["change_agent"] == 3
    assert bridge.sync(ada, READ) == ["read_file"]


@pytest.mark.parametrize(
    "fault",
    [
        errors.LettaUnreachable("It is down."),
        errors.LettaTimeout("It is slow."),
        errors.LettaRefusedCredentials("It wants another key."),
        errors.ModelOverloaded("Rate limited."),
    ],
)
@pytest.mark.parametrize("verb", ["change_agent", "put_tool", "tools_named", "agent"])
def test_a_failure_that_is_not_a_race_is_raised_at_once(
    letta: SharedLetta, bridge: Bridge, ada: Agent, fault: errors.BridgeError, verb: str
) -> None:
    letta.before_call(verb, Mock(side_effect=fault), nth=2 if verb == "agent" else 1)
    with pytest.raises(type(fault)):
        bridge.sync(ada, READ, WRITE)
    assert bridge.sync(ada, READ, WRITE) == ["read_file", "write_file"]


def test_an_agent_deleted_at_the_same_time_is_missing(letta: SharedLetta, bridge: Bridge, ada: Agent) -> None:
    letta.before_call("put_tool", lambda: letta.loses_agent(ada.id))
    with pytest.raises(errors.LettaNotFound):
        bridge.sync(ada, READ)


def test_the_error_names_a_tool_that_letta_rejects(letta: SharedLetta, bridge: Bridge, ada: Agent) -> None:
    fault = errors.LettaRejected("422")
    fault.add_note("Letta said: no")
    letta.before_call("put_tool", Mock(side_effect=fault))
    with pytest.raises(errors.LettaRejected, match="'read_file'") as caught:
        bridge.sync(ada, READ)
    assert caught.value.__notes__ == ["Letta said: no"]


# --- marks of the sweep -----------------------------------------------------------------------------------


def test_a_stub_marked_idle_is_used_again_and_loses_the_mark(letta: SharedLetta, bridge: Bridge, ada: Agent) -> None:
    bridge.sync(ada, *FIFTY[:3])
    bridge.sync(ada)
    for one in FIFTY[:2]:
        letta.edits(letta.tool(one.name), tags=tuple(tags_when_idle(letta.tool(one.name), 1_800_000_000)))
    assert bridge.sync(ada, *FIFTY[:3]) == [one.name for one in FIFTY[:3]]
    assert bridge.counts == {"change_agent": 1, "tag_tool": 2}
    assert [idle_since(tool) for tool in letta.agent(ada.id).tools] == [None] * 5
    assert lasting(letta.tool(FIFTY[0].name).tags) == lasting(stub_tags(FIFTY[0]))


def test_a_leaving_stub_is_not_used_any_more(letta: SharedLetta, bridge: Bridge, ada: Agent) -> None:
    bridge.sync(ada, READ)
    bridge.sync(ada)
    leaving = letta.edits(letta.tool("read_file"), tags=tuple(tags_when_leaving(letta.tool("read_file"))))
    assert bridge.sync(ada, READ) == [second_name(READ)]
    assert letta.tool("read_file") == leaving
    letta.delete_tool(leaving.id)
    assert bridge.sync(ada, READ) == [second_name(READ)]
    assert bridge.counts == {}


def test_a_leaving_stub_is_replaced_on_its_agent(letta: SharedLetta, bridge: Bridge, ada: Agent) -> None:
    bridge.sync(ada, READ)
    letta.edits(letta.tool("read_file"), tags=tuple(tags_when_leaving(letta.tool("read_file"))))
    for one in (bridge, Bridge(letta)):
        assert one.sync(ada, READ) == [second_name(READ)]
        assert not any(is_leaving(tool) for tool in letta.agent(ada.id).tools)


# --- several bridges and threads --------------------------------------------------------------------------


def test_a_tool_that_another_bridge_overwrote_before_it_was_attached_is_not_offered(
    letta: SharedLetta, bridge: Bridge, ada: Agent, bob: Agent
) -> None:
    """Both bridges looked at the same time and found the name free."""
    other = Bridge(letta)
    letta.before_call("change_agent", lambda: letta.put_tool(OTHER_READ, stub_tags(OTHER_READ)))
    (name,) = bridge.sync(ada, READ)
    assert offered(letta, ada)[name]["description"] == "Reads a file."
    assert other.sync(bob, OTHER_READ) == ["read_file"]
    assert offered(letta, bob)["read_file"]["description"] == "Reads another file."


def test_many_agents_get_their_own_schemas_for_one_name_at_the_same_time(
    letta: SharedLetta, monkeypatch: pytest.MonkeyPatch
) -> None:
    looking = letta.tools_named

    def slow(names: Sequence[str]) -> list[Tool]:
        found = looking(names)
        time.sleep(0.005)
        return found

    monkeypatch.setattr(letta, "tools_named", slow)
    agents = [letta.has_agent(f"Ada {number}") for number in range(16)]
    stubs = [stub("read_file", f"Reads file {number}.") for number in range(16)]
    start = threading.Barrier(16)
    registry = new_registry(letta)

    def turn(number: int) -> None:
        bridge = Bridge(letta)
        bridge.registry = registry
        start.wait()
        bridge.sync(agents[number], stubs[number])

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(turn, range(16)))
    descriptions = [[schema["description"] for schema in offered(letta, agent).values()] for agent in agents]
    assert descriptions == [[f"Reads file {number}."] for number in range(16)]
    assert letta.has("read_file")


def test_a_turn_stands_behind_no_put_of_another_agents_tools(
    letta: SharedLetta, ada: Agent, bob: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, begun, go_on, put = MemoryStore(), threading.Event(), threading.Event(), letta.put_tool
    many = [stub(f"tool_{number}") for number in range(300)]

    def slow(one: Stub, tags: Sequence[str]) -> Tool:
        if one.name != "read_file":
            begun.set()
            assert go_on.wait(SOON)
        return put(one, tags)

    monkeypatch.setattr(letta, "put_tool", slow)
    first, second = Bridge(letta, store), Bridge(letta, store)
    with ThreadPoolExecutor(2) as pool:
        others = pool.submit(first.sync, ada, *many)
        assert begun.wait(SOON)
        assert pool.submit(second.sync, bob, READ).result(SOON) == ["read_file"]
        assert not any(letta.has(one.name) for one in many)
        go_on.set()
        assert len(others.result(SOON)) == 300


def test_a_name_that_another_turn_is_about_to_take_is_not_waited_for(
    letta: SharedLetta, ada: Agent, bob: Agent
) -> None:
    store = MemoryStore()
    first, second = Bridge(letta, store), Bridge(letta, store)
    names: list[list[str]] = []
    letta.before_call("put_tool", lambda: names.append(second.sync(bob, OTHER_READ)))
    assert first.sync(ada, READ) == ["read_file"]
    assert names == [[second_name(OTHER_READ)]]
    assert offered(letta, ada)["read_file"]["description"] == "Reads a file."
    assert offered(letta, bob)[second_name(OTHER_READ)]["description"] == "Reads another file."


def test_a_stub_keeps_its_name_while_another_turn_looks_for_a_name(letta: SharedLetta, ada: Agent, bob: Agent) -> None:
    store = MemoryStore()
    Bridge(letta, store).sync(bob, OTHER_READ)
    Bridge(letta, store).sync(bob)
    names: list[list[str]] = []
    letta.before_call("put_tool", lambda: names.append(Bridge(letta, store).sync(bob, OTHER_READ)))
    assert Bridge(letta, store).sync(ada, READ) == [second_name(READ)]
    assert names == [["read_file"]]


def test_names_are_reserved_before_they_are_looked_up_and_until_they_are_taken(
    letta: SharedLetta, bridge: Bridge, ada: Agent
) -> None:
    reserved: list[list[str]] = []
    for verb in ("tools_named", "put_tool", "change_agent"):
        letta.before_call(verb, lambda: reserved.append([name.rpartition(":")[2] for name in bridge.store.values]))
    bridge.sync(ada, READ)
    assert reserved == [["read_file"], ["read_file"], []]


def test_a_put_that_fails_frees_its_names(letta: SharedLetta, bridge: Bridge, ada: Agent) -> None:
    letta.before_call("put_tool", Mock(side_effect=errors.LettaRejected("no")))
    with pytest.raises(errors.LettaRejected):
        bridge.sync(ada, READ)
    assert bridge.store.values == {}
    assert bridge.sync(ada, READ) == ["read_file"]


def test_turns_that_bring_the_same_new_tools_at_the_same_time_put_each_once(letta: SharedLetta) -> None:
    agents = [letta.has_agent(f"Ada {number}") for number in range(8)]
    start, registry = threading.Barrier(8), new_registry(letta)

    def turn(agent: Agent) -> None:
        bridge = Bridge(letta)
        bridge.registry = registry
        start.wait()
        bridge.sync(agent, *FIFTY)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(turn, agents))
    assert letta.calls.count("put_tool") == 50


def test_the_stubs_that_are_made_are_counted_for_the_clients_key(letta: SharedLetta, ada: Agent) -> None:
    made = MadeStubs(2)
    registry = new_registry(letta, made=made)
    for stubs in (FIFTY[:2], FIFTY[:2], FIFTY[2:3]):
        assert not made.are_many()
        sync_toolset(letta, registry, letta.agent(ada.id), stubs, gates, NewStubs("alice"))
    assert made.are_many()
    assert {key_of(tool) for tool in letta.tools() if is_ours(tool)} == {key_of(tool_of(READ, "alice"))} != {""}
