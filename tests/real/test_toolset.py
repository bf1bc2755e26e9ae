"""The agent gets the toolset of the request. Everything that is not the bridge's stays as it is."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from testbed.proxy import Before
from testbed.service import Service
from testbed.versions import V1_AGENT, agent_types
from tests.real.choice import IS_WHOLE
from tests.real.toolsets import (
    delete_tool,
    make_tool,
    offered,
    post,
    stubs_of,
    stubs_on,
    tool,
    unique,
    whole_state,
)
from tests.real.world import Agent, World
from tests.sse_checker import Json

pytestmark = [pytest.mark.real, pytest.mark.strict]

# More than OpenAI's limit of 128.
HUNDREDS = 512 if IS_WHOLE else 130


@pytest.fixture
def agent(world: World, agent: Agent) -> Iterator[Agent]:
    """An agent with tools and rules of its own, of every type that the version has."""
    rules = [
        {"type": "max_count_per_step", "tool_name": "mine", "max_count_limit": 3},
        {"type": "constrain_child_tools", "tool_name": "mine", "children": ["core_memory_append"]},
        {"type": "continue_loop", "tool_name": "core_memory_append"},
        {"type": "max_count_per_step", "tool_name": "never_there", "max_count_limit": 1},
    ]
    if world.at_least("0.11.7"):
        rules.append({"type": "requires_approval", "tool_name": "mine"})
    mine = make_tool(world, unique("mine"), ["letta", "theirs"])
    memory = world.letta("GET", "/v1/tools/", name="core_memory_append")
    state = agent.state()
    for rule in rules:
        if rule["tool_name"] == "mine":
            rule["tool_name"] = mine["name"]
    change = {
        "tool_ids": [row["id"] for row in (*state["tools"], mine, *memory)],
        "tool_rules": [*state["tool_rules"], *rules],
    }
    world.letta("PATCH", f"/v1/agents/{agent.id}", change)
    yield agent
    delete_tool(world, mine["id"])


@pytest.fixture(scope="session")
def automatic(world: World) -> Iterator[Service]:
    with world.start_bridge(WEB_CONCURRENCY="1") as bridge:
        yield bridge


@pytest.fixture(scope="session")
def approving(world: World) -> Iterator[Service]:
    with world.start_bridge(WEB_CONCURRENCY="1", BRIDGE_METHOD="approval") as bridge:
        yield bridge


@pytest.fixture
def single(world: World, agent_type: str, request: pytest.FixtureRequest) -> Service:
    """A bridge of one worker that uses stubs, even where the native method is possible."""
    is_native = agent_type == V1_AGENT and world.at_least("0.16.2")
    found: Service = request.getfixturevalue("approving" if is_native else "automatic")
    return found


def own_tools(agent: Agent) -> list[str]:
    return sorted(row["name"] for row in agent.state()["tools"])


# The toolset of the request


def test_the_model_is_offered_the_agents_own_tools_and_the_requests(world: World, agent: Agent) -> None:
    own, one, two = own_tools(agent), tool(unique("read")), tool(unique("write"))
    before = whole_state(agent)
    for wanted in ([one, two], [two], [two, one], [], [one]):
        assert agent.ask("!say ok", tools=wanted).text == "ok"
        assert sorted(offered(world)) == sorted([*own, *(each["function"]["name"] for each in wanted)])
    agent.ask("!say ok")
    assert whole_state(agent) == before


@pytest.mark.two_servers
@pytest.mark.parametrize("none", [{}, {"tools": None}, {"tools": []}, {"tool_choice": "none"}], ids=str)
def test_without_tools_the_stubs_are_removed_before_the_agent_runs(world: World, agent: Agent, none: Json) -> None:
    before, own, one = whole_state(agent), own_tools(agent), tool(unique("read"))
    agent.ask("!say ok", tools=[one])
    assert one["function"]["name"] in offered(world)
    if none == {"tool_choice": "none"}:
        none = {"tools": [one], **none}
    post(agent, messages=[{"role": "user", "content": "!say ok"}], **none)
    assert sorted(offered(world)) == own
    assert whole_state(agent) == before


def test_a_changed_schema_applies_in_the_turn_that_brings_it(world: World, agent: Agent) -> None:
    name = unique("read")
    agent.ask("!say ok", tools=[tool(name, "Old.")])
    agent.ask("!say ok", tools=[tool(name, "New.", file={"type": "integer"})])
    (shown,) = [one for one in world.model.last_request().tools.values() if one.name.startswith(name)]
    assert (shown.description, "file" in shown.properties, "path" in shown.properties) == ("New.", True, False)
    reply = agent.ask(f'!call {shown.name} {{"file": 7}}', tools=[tool(name, "New.", file={"type": "integer"})])
    assert reply.calls == [(name, {"file": 7})]


@pytest.mark.one_server
def test_hundreds_of_tools_in_one_request(world: World) -> None:
    types = agent_types(world.version)
    agent = world.agent("memgpt_v2_agent" if world.at_least("0.16.2") else types[-1], context_window=200_000)
    before, part = whole_state(agent), unique("many")
    many = [tool(f"{part}_{number}", f"Tool {number}.") for number in range(HUNDREDS)]
    with world.start_bridge(WEB_CONCURRENCY="1", BRIDGE_TOOL_SEARCH="0") as bridge:
        reply = agent.ask(f'!call {part}_{HUNDREDS - 1} {{"path": "x"}}', tools=many, bridge=bridge)
        assert reply.error is None, reply.error
        assert reply.calls == [(f"{part}_{HUNDREDS - 1}", {"path": "x"})]
        assert len([name for name in offered(world) if name.startswith(part)]) == HUNDREDS
        agent.ask("!say ok", tools=many[:1], bridge=bridge)
        assert [name for name in offered(world) if name.startswith(part)] == [f"{part}_0"]
        agent.ask("!say ok", bridge=bridge)
    assert whole_state(agent) == before
    for row in stubs_on(world, part):
        delete_tool(world, row["id"])
    agent.delete()


# Names


@pytest.mark.one_type
def test_another_owners_tool_with_the_same_name_stays_unchanged(world: World, agent: Agent) -> None:
    name = unique("weather")
    theirs = make_tool(world, name, ["theirs"])
    for _ in range(2):
        agent.ask("!say ok", tools=[tool(name, "The client's.")])
    shown = [name for name, description in offered(world).items() if description == "The client's."]
    assert len(shown) == 1
    reply = agent.ask(f'!call {shown[0]} {{"path": "x"}}', tools=[tool(name, "The client's.")])
    assert reply.calls == [(name, {"path": "x"})]
    agent.ask("!say ok")
    assert world.letta("GET", f"/v1/tools/{theirs['id']}") == theirs
    delete_tool(world, theirs["id"])


@pytest.mark.two_servers
def test_a_tool_that_replaces_a_stub_stays_unchanged(world: World, agent: Agent) -> None:
    """Letta keeps the stub's tags on it if the new tool has none."""
    name = unique("weather")
    agent.ask("!say ok", tools=[tool(name)])
    theirs = make_tool(world, name, tags=None)
    for _ in range(2):
        reply = agent.ask(f'!call {name}* {{"path": "x"}}', tools=[tool(name, "The client's.")])
        assert reply.error is None
        agent.ask("!say ok")
    found = world.letta("GET", f"/v1/tools/{theirs['id']}")
    assert (found["source_code"], found["json_schema"]) == (theirs["source_code"], theirs["json_schema"])
    delete_tool(world, theirs["id"])


@pytest.mark.two_servers
@pytest.mark.parametrize("name", ["send_message", "core_memory_append", "archival_memory_insert"])
def test_a_tool_of_letta_with_the_same_name_stays_unchanged(world: World, agent: Agent, name: str) -> None:
    (built_in,) = world.letta("GET", "/v1/tools/", name=name)
    before = whole_state(agent)
    agent.ask("!say ok", tools=[tool(name, "The client's.")])
    shown = [name for name, description in offered(world).items() if description.startswith("The client's.")]
    assert len(shown) == 1
    reply = agent.ask(f'!call {shown[0]} {{"path": "x"}}', tools=[tool(name, "The client's.")])
    assert reply.calls == [(name, {"path": "x"})]
    assert world.letta("GET", f"/v1/tools/{built_in['id']}") == built_in
    assert agent.ask("!say ok").text == "ok"
    assert whole_state(agent) == before


@pytest.mark.one_type
def test_two_agents_use_one_name_with_different_schemas_in_turn(world: World, agent: Agent) -> None:
    other, name = world.agent(agent.type), unique("read")
    for _ in range(2):
        for one, description in ((agent, "Hers."), (other, "His.")):
            one.ask("!say ok", tools=[tool(name, description)])
            assert [said for shown, said in offered(world).items() if shown.startswith(name)] == [description]
    other.delete()


@pytest.mark.one_server
def test_many_agents_use_one_name_with_different_schemas_at_once(world: World, agent_type: str) -> None:
    """Through two workers, each of which would find the name free."""
    name = unique("read")
    agents = [world.agent(agent_type) for _ in range(8)]

    def turn(number: int) -> None:
        for _ in range(2):  # under load Letta sometimes gets no connection to its database
            reply = agents[number].ask(f"!say ok {number}", tools=[tool(name, f"Of agent {number}.")])
            if reply.status != 502:
                break
        assert reply.text == f"ok {number}", reply.error

    # Up to 0.7, a Letta on SQLite ends itself if two agents write at once (db_error_handler in its db.py).
    at_once = 8 if world.at_least("0.8.0") else 1
    for _ in range(2):
        with ThreadPoolExecutor(at_once) as pool:
            list(pool.map(turn, range(8)))
    for number in range(8):
        shown = world.model.last_request(containing=f"!say ok {number}").tools.values()
        assert [one.description for one in shown if one.name.startswith(name)] == [f"Of agent {number}."]
    for agent in agents:
        agent.delete()


# Changes by others on the same server


@pytest.mark.two_servers
def test_a_turn_with_new_tools_does_not_wait_for_the_new_tools_of_another_agent(
    world: World, agent: Agent, agent_type: str, single: Service
) -> None:
    """It comes while the first tool of the other agent is put, and ends before that."""
    other, part = world.agent(agent_type), unique("part")
    many, one = [tool(f"{part}_{number}") for number in range(40)], f"{part}_one"
    stubs: list[int] = []

    def come(_: object) -> None:
        assert other.ask("!say ok", tools=[tool(one)], bridge=single).text == "ok"
        stubs.append(len([row for row in stubs_on(world, part) if row["name"] != one]))

    with world.proxy.inject(Before(come), "PUT", "/v1/tools/", times=1) as rule:
        assert agent.ask("!say ok", tools=many, bridge=single).text == "ok"
    assert rule.applied == 1
    assert stubs[0] < len(many)
    assert len(stubs_on(world, part)) == len(many) + 1
    other.delete()


@pytest.mark.two_servers
def test_a_tool_that_is_attached_during_the_synchronisation_is_kept(
    world: World, agent: Agent, single: Service
) -> None:
    theirs, name = make_tool(world, unique("theirs")), unique("read")
    attach = Before(lambda _: world.letta("PATCH", f"/v1/agents/{agent.id}/tools/attach/{theirs['id']}"))
    with world.proxy.inject(attach, "PUT", "/v1/tools/", times=1) as rule:
        agent.ask("!say ok", tools=[tool(name)], bridge=single)
    assert rule.applied == 1
    assert {theirs["name"], name} <= offered(world).keys()
    agent.ask("!say ok", bridge=single)
    assert theirs["name"] in own_tools(agent)
    delete_tool(world, theirs["id"])


@pytest.mark.one_type
def test_a_stub_that_is_deleted_before_it_is_attached_is_made_again(
    world: World, agent: Agent, single: Service
) -> None:
    name = unique("read")
    delete = Before(lambda _: [delete_tool(world, row["id"]) for row in stubs_on(world, name)])
    with world.proxy.inject(delete, "PATCH", f"/v1/agents/{agent.id}", times=2) as rule:
        reply = agent.ask(f'!call {name} {{"path": "x"}}', tools=[tool(name)], bridge=single)
    assert reply.calls == [(name, {"path": "x"})]
    assert rule.applied == 2
    assert agent.ask("!say ok", tools=[tool(name)], bridge=single).text == "ok"


@pytest.mark.two_servers
def test_a_stub_that_is_deleted_repeatedly_ends_in_an_error(world: World, agent: Agent, single: Service) -> None:
    name = unique("read")
    agent.ask("!say ok", bridge=single)
    before = whole_state(agent)
    delete = Before(lambda _: [delete_tool(world, row["id"]) for row in stubs_on(world, name)])
    with world.proxy.inject(delete, "PATCH", f"/v1/agents/{agent.id}") as rule:
        reply = agent.ask("!say ok", tools=[tool(name)], bridge=single)
    assert (reply.status, rule.applied) == (503, 3)
    assert agent.ask("!say ok", bridge=single).text == "ok"
    assert whole_state(agent) == before


@pytest.mark.one_type
def test_a_stub_that_is_deleted_just_before_the_run_is_back_in_the_next_turn(
    world: World, agent: Agent, single: Service
) -> None:
    name = unique("read")
    delete = Before(lambda _: [delete_tool(world, row["id"]) for row in stubs_on(world, name)])
    with world.proxy.inject(delete, "POST", f"/v1/agents/{agent.id}/messages/stream", times=1):
        assert agent.ask("!say ok", tools=[tool(name)], bridge=single).text == "ok"
    reply = agent.ask(f'!call {name} {{"path": "x"}}', tools=[tool(name)], bridge=single)
    assert reply.calls == [(name, {"path": "x"})]


@pytest.mark.one_type
def test_a_stub_that_was_changed_by_hand_is_restored_before_the_run(
    world: World, agent: Agent, single: Service
) -> None:
    name = unique("read")
    agent.ask("!say ok", tools=[tool(name)], bridge=single)
    row = stubs_of(agent)[name]
    changed = {**row["json_schema"], "description": "Changed."}
    world.letta("PATCH", f"/v1/tools/{row['id']}", {"json_schema": changed, "source_code": row["source_code"]})
    assert stubs_of(agent)[name]["json_schema"]["description"] == "Changed."
    agent.ask("!say ok", tools=[tool(name)], bridge=single)
    assert offered(world)[name] == "Reads a file."


@pytest.mark.two_servers
def test_the_rules_of_a_detached_stub_are_removed(world: World, agent: Agent, single: Service) -> None:
    """Also by a bridge that did not attach the stub. The agent answers in between."""
    name, before = unique("read"), whole_state(agent)
    choice = {"type": "function", "function": {"name": name}}
    reply = agent.ask(f'!call {name} {{"path": "x"}}', tools=[tool(name)], tool_choice=choice, bridge=single)
    assert reply.calls == [(name, {"path": "x"})]
    world.letta("PATCH", f"/v1/agents/{agent.id}/tools/detach/{stubs_of(agent)[name]['id']}")
    assert any(rule["tool_name"] == name for rule in agent.state()["tool_rules"])
    with world.start_bridge() as another:
        assert agent.ask("!say ok", bridge=another).text == "ok"
    assert whole_state(agent) == before
