"""Every command against a real server, called as a program."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bridge.letta.gateway import HELPER_PREFIX
from testbed.service import ROOT
from tests.real.toolsets import delete_tool, make_tool, stubs_of, stubs_on, tool, unique, whole_state
from tests.real.world import Agent, World

pytestmark = pytest.mark.real
# A type whose tools are stubs on every version.
AGENT_TYPE = "memgpt_agent"

TOOLS = '''
def read_note(name: str) -> str:
    """Reads a note."""
    return f"The note {name} says: buy milk."
'''


@pytest.fixture
def name(part: str) -> str:
    return f"{part}_read"


def bridge(world: World, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ROOT / "letta-bridge", *arguments],
        cwd=ROOT,
        env=world.bridge.environment,
        input=given,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def rows_of(world: World, *arguments: str) -> Any:
    done = bridge(world, *arguments, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.mark.one_server
def test_the_doctor_makes_a_round_trip_and_leaves_nothing_behind(world: World, agent: Agent) -> None:
    before = whole_state(agent)
    done = bridge(world, "doctor", "--agent", agent.id)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"✓ Letta: {world.version} at {world.proxy.url}" in done.stdout
    assert f"✓ agent {agent.name}: memgpt_agent: " in done.stdout
    assert "✓ clock: as Letta's" in done.stdout
    one, other = done.stdout.splitlines()[-2:]
    assert one.startswith("✓ tool round trip: call, result and answer by ")
    assert other.startswith("✓ tool round trip by Letta's own API: call, result and answer by ")
    assert whole_state(agent) == before
    assert stubs_on(world, "bridge_doctor") == []
    listed = world.letta("GET", "/v1/agents/", show_hidden_agents=True, limit=1000)
    assert not [row["name"] for row in listed if row["name"].startswith(HELPER_PREFIX)]


@pytest.mark.one_server
def test_tools_and_agents_are_listed_and_shown(world: World, agent: Agent, name: str) -> None:
    reply = agent.ask(f'!call {name} {{"path": "notes.txt"}}', tools=[tool(name)])
    (call_id,) = reply.call_ids
    messages = [
        {"role": "user", "content": "Read."},
        {**reply.message, "role": "assistant"},
        {"role": "tool", "tool_call_id": call_id, "content": "Buy milk."},
    ]
    agent.ask(messages=messages, tools=[tool(name)])
    (row,) = [row for row in rows_of(world, "tools", "list") if row["client_name"] == name]
    assert row["state"] == "attached"
    assert row["agents"] == [{"id": agent.id, "name": agent.name}]
    (whole,) = rows_of(world, "tools", "show", name)
    assert whole["as_sent"]["parameters"]["properties"] == {"path": {"type": "string", "description": "Which file"}}
    calls = [(json.loads(one["arguments"]), one["result"]) for one in whole["last_calls"]]
    assert calls == [({"path": "notes.txt"}, "Buy milk.")]
    (mine,) = [row for row in rows_of(world, "agents") if row["id"] == agent.id]
    assert (mine["type"], mine["our_tools"]) == ("memgpt_agent", 1)
    assert mine["last_turn"]
    delete_tool(world, stubs_of(agent)[name]["id"])
    assert name in [row["client_name"] for row in rows_of(world, "tools", "gone")]


@pytest.mark.two_servers
def test_config_lists_the_settings(world: World) -> None:
    assert {"variable": "LETTA_BASE_URL", "value": world.proxy.url, "default": "no"} in rows_of(world, "config")


@pytest.mark.one_server
def test_the_chat_runs_tools_on_this_machine(world: World, agent: Agent, tmp_path: Path) -> None:
    file = tmp_path / "tools.py"
    file.write_text(TOOLS)
    script = 'Which note?\n!call read_note* {"name": "today"}\n!next\n!answer'
    done = bridge(world, "chat", agent.name, "--url", world.bridge.url, "--tools", str(file), "--yes", "--say", script)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "The note today says: buy milk.\n"
    assert "→ read_note(name='today')" in done.stderr
    assert bridge(world, "chat", agent.name, "--url", world.bridge.url, "--say", "bye").stdout == "You said: bye\n"
    assert stubs_of(agent) == {}
    for row in stubs_on(world, "read_note"):
        delete_tool(world, row["id"])


@pytest.mark.one_server
def test_a_purge_removes_everything_of_the_bridge_and_nothing_else(world: World, agent: Agent, name: str) -> None:
    theirs = make_tool(world, unique("theirs"))
    world.letta("PATCH", f"/v1/agents/{agent.id}/tools/attach/{theirs['id']}")
    before = agent.fingerprint()
    reply = agent.ask(f'!call {name} {{"path": "x"}}', tools=[tool(name), tool(f"{name}_2")], system="Be kind.")
    assert reply.calls
    assert agent.fingerprint() != before
    dry = bridge(world, "purge", "--dry-run")
    assert name in dry.stdout
    assert name in stubs_of(agent)
    done = bridge(world, "purge", "--yes")
    assert done.returncode == 0, done.stderr
    assert agent.fingerprint() == before
    assert stubs_on(world, "") == []
    assert world.letta("GET", f"/v1/tools/{theirs['id']}")["name"] == theirs["name"]
    blocks = world.letta("GET", "/v1/blocks/", limit=1000)
    assert not [row for row in blocks if (row.get("metadata") or {}).get("owner") == "letta-tool-bridge"]
    assert bridge(world, "purge").stdout == "There is nothing of the bridge on this server.\n"
    assert agent.ask("!say still here", tools=[tool(name)]).text == "still here"
    delete_tool(world, theirs["id"])
