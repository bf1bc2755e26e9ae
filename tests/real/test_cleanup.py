"""Unused stubs are removed from the server, and nothing else is, even while others work on the server."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner

from app import assemble_parts
from bridge.cli.group import make_command_group
from bridge.config import read_settings
from bridge.errors import LettaRejected
from bridge.letta.client import LettaServer
from bridge.letta.connection import Connection
from bridge.sync.cleanup import GRACE
from bridge.sync.ownership import OWNER
from bridge.turn import Message, ToolSpec
from testbed.proxy import Before, Status
from testbed.service import ROOT
from tests.asked import turn_of
from tests.real.toolsets import delete_tool, make_tool, offered, stubs_of, stubs_on, tool, whole_state
from tests.real.world import Agent, World
from tests.sse_checker import Json

pytestmark = [pytest.mark.real, pytest.mark.strict]
# A type whose tools are stubs on every version.
AGENT_TYPE = "memgpt_agent"

IDLE, LEAVING = f"{OWNER}:idle-since=", f"{OWNER}:leaving"
LONG_AGO = 1_500_000_000


def command(world: World, *arguments: str) -> list[Json]:
    """Runs a command with --json; returns its rows."""
    settings = read_settings(world.bridge.environment)
    with closing(Connection(settings)) as connection:
        server = LettaServer(settings, connection)
        group = make_command_group(lambda: settings, lambda known: assemble_parts(known, server))
        done = CliRunner().invoke(group, [*arguments, "--json"])
    assert done.exit_code == 0, done.output
    rows: list[Json] = json.loads(done.output)
    return rows


def sweep(world: World, part: str, *arguments: str) -> dict[str, str]:
    """Runs a sweep; returns what it did with the test's own tools."""
    return {
        row["client_name"]: row["done"] for row in command(world, "sweep", *arguments) if part in row["client_name"]
    }


def row_of(world: World, name: str) -> Json:
    (row,) = [row for row in stubs_on(world, name) if row["name"] == name]
    return row


def age(world: World, name: str) -> None:
    """Marks a stub as if a sweep had found it unused long ago."""
    row = row_of(world, name)
    tags = [tag for tag in row["tags"] if not tag.startswith(IDLE)]
    world.letta("PATCH", f"/v1/tools/{row['id']}", {"tags": [*tags, f"{IDLE}{LONG_AGO}"]})


@pytest.mark.one_server
def test_a_stub_is_marked_idle_and_later_deleted_unless_it_is_used_again(world: World, agent: Agent, part: str) -> None:
    """Attached, unused, used again, unused for long, deleted."""
    name, state = f"{part}_read", whole_state(agent)
    agent.ask("!say ok", tools=[tool(name)])
    fresh = row_of(world, name)
    assert sweep(world, part) == {}
    (listed,) = [row for row in command(world, "tools") if row["client_name"] == name]
    assert (listed["server_name"], listed["idle_since"]) == (name, None)
    assert listed["agents"] == [{"id": agent.id, "name": agent.name}]

    agent.ask("!say ok")
    before = int(time.time())
    assert sweep(world, part, "--dry-run") == {name: "marked idle"}
    assert row_of(world, name) == fresh
    assert sweep(world, part) == {name: "marked idle"}
    marked = row_of(world, name)
    assert {**marked, "tags": None} == {**fresh, "tags": None}
    assert before <= int(marked["tags"][-1].removeprefix(IDLE)) <= time.time()
    assert sweep(world, part) == {}

    agent.ask("!say ok", tools=[tool(name)])
    assert row_of(world, name) == fresh
    agent.ask("!say ok")
    age(world, name)
    assert sweep(world, part, "--dry-run") == {name: "deleted"}
    assert sweep(world, part) == {name: "deleted"}
    assert stubs_on(world, name) == []
    assert whole_state(agent) == state


@pytest.mark.two_servers
def test_attached_stubs_and_tools_of_others_stay_even_if_they_are_marked(world: World, agent: Agent, part: str) -> None:
    hidden = world.agent(agent.type, hidden=True)
    names = used, secret = f"{part}_used", f"{part}_secret"
    for one, name in ((agent, used), (hidden, secret)):
        assert one.ask("!say ok", model=one.id, tools=[tool(name)]).text == "ok"
        age(world, name)
        row = row_of(world, name)
        world.letta("PATCH", f"/v1/tools/{row['id']}", {"tags": [*row["tags"], LEAVING]})
    theirs = make_tool(world, f"{part}_theirs", [f"{IDLE}{LONG_AGO}", LEAVING, "mine"])
    assert sweep(world, part) == {used: "in use again", secret: "in use again"}
    for name in names:
        assert not any(tag.startswith(IDLE) or tag == LEAVING for tag in row_of(world, name)["tags"])
    assert world.letta("GET", f"/v1/tools/{theirs['id']}") == theirs
    assert stubs_of(agent).keys() == {used}
    assert stubs_of(hidden).keys() == {secret}
    delete_tool(world, theirs["id"])
    hidden.delete()


@pytest.mark.two_servers
def test_a_detached_stub_stays_until_its_rule_is_removed(world: World, agent: Agent, part: str) -> None:
    name, state = f"{part}_read", whole_state(agent)
    agent.ask("!say ok", tools=[tool(name)])
    world.letta("PATCH", f"/v1/agents/{agent.id}/tools/detach/{row_of(world, name)['id']}")
    age(world, name)
    assert sweep(world, part) == {name: "in use again"}
    agent.ask("!say ok")
    assert whole_state(agent) == state
    assert sweep(world, part) == {name: "marked idle"}


@pytest.mark.one_server
def test_a_turn_during_a_deletion_has_all_its_tools(world: World, agent: Agent, part: str) -> None:
    """The turn begins just before the deletion. It sees the mark for deletion and makes another stub."""
    name = f"{part}_read"
    agent.ask("!say ok", tools=[tool(name)])
    agent.ask("!say ok")
    age(world, name)
    texts: list[Any] = []

    def turn(_: object) -> None:
        texts.append(agent.ask("!say ok", tools=[tool(name)]).text)

    with world.proxy.inject(Before(turn), "DELETE", f"/v1/tools/{row_of(world, name)['id']}", times=1) as rule:
        assert sweep(world, part) == {name: "deleted"}
    assert (texts, rule.applied) == (["ok"], 1)
    (shown,) = [one for one in offered(world) if one.startswith(name)]
    assert stubs_of(agent)[name]["name"] == shown != name
    reply = agent.ask(f'!call {shown} {{"path": "x"}}', tools=[tool(name)])
    assert reply.calls == [(name, {"path": "x"})]


@pytest.mark.one_server
def test_a_refused_turn_takes_back_its_new_stubs_only(world: World, agent: Agent, part: str) -> None:
    old, shared, new = names = [f"{part}_{name}" for name in ("old", "shared", "new")]
    agent.ask("!say ok", tools=[tool(old)])
    state, neighbour = whole_state(agent), world.agent(agent.type)
    settings = read_settings(world.bridge.environment)
    with closing(Connection(settings)) as connection:
        parts = assemble_parts(settings, LettaServer(settings, connection))
        turn = turn_of(Message("user", "!say ok"), model=agent.id, tools=(ToolSpec(shared), ToolSpec(new)))
        with (
            world.proxy.inject(Status(422), "POST", f"/v1/agents/{agent.id}/messages/stream"),
            pytest.raises(LettaRejected),
        ):
            list(parts.conversation.events(turn, threading.Event()))
        assert stubs_of(agent) == {}
        assert len(stubs_on(world, part)) == 3
        taken_over = replace(turn, model=neighbour.id, tools=turn.tools[:1])
        list(parts.conversation.events(taken_over, threading.Event()))
        parts.offering.refused_stubs.remove(lambda seconds: time.sleep(min(seconds, GRACE)))
    assert sorted(row["name"] for row in stubs_on(world, part)) == [old, shared]
    assert stubs_of(neighbour).keys() == {shared}
    assert agent.ask("!say ok", tools=[tool(old)]).text == "ok"
    assert whole_state(agent) == state
    reply = agent.ask(f'!call {new} {{"path": "x"}}', tools=[tool(name) for name in names])
    assert reply.calls == [(new, {"path": "x"})]
    neighbour.delete()


@pytest.mark.one_server
def test_a_bridge_sweeps_by_itself_during_turns(world: World, agent: Agent, part: str) -> None:
    name = f"{part}_read"
    agent.ask("!say ok", tools=[tool(name)])
    agent.ask("!say ok")
    age(world, name)
    with world.start_bridge({"sweep_interval": 1.0}) as bridge:
        deadline = time.monotonic() + 60
        while stubs_on(world, name):
            assert time.monotonic() < deadline
            assert agent.ask("!say ok", bridge=bridge).text == "ok"
            time.sleep(0.5)


@pytest.mark.one_server
def test_every_tool_of_a_large_server_is_listed(world: World, part: str) -> None:
    """More tools than one page holds, whose order differs between versions; through the command line."""
    tags = [OWNER, f"{OWNER}:digest=0", f"{OWNER}:client-name={part}"]
    names = [f"{part}_{number}" for number in range(230)]
    for name in names:
        make_tool(world, name, tags, source_code=f"# {OWNER}\ndef {name}(**kwargs):\n    return ''\n")
    done = subprocess.run(
        [ROOT / "letta-bridge", "tools"],
        cwd=ROOT,
        env=world.bridge.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(line.split()[1] for line in done.stdout.splitlines() if part in line) == sorted(names)
