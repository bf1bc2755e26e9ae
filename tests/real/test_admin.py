"""The admin pages in front of a real server: large lists, what a turn leaves on them, and every action."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
import requests

from testbed.service import Service
from tests.admin import readable_text
from tests.real.choice import IS_WHOLE
from tests.real.toolsets import delete_tool, make_tool, stubs_of, stubs_on, tool, unique
from tests.real.world import Agent, World
from tests.waiting import until

pytestmark = pytest.mark.real
# A type whose tools are stubs on every version.
AGENT_TYPE = "memgpt_agent"

PASSWORD = "the operator's password"
TOOLS, AGENTS = (512, 50) if IS_WHOLE else (104, 8)
# The tools are spread over so many agents: the older loops do not take all of them at once.
SHARES = 8


@dataclass(frozen=True, slots=True)
class Site:
    """The pages of one bridge, for its operator."""

    world: World
    bridge: Service

    def data(self, path: str) -> Any:
        path, _, query = path.partition("?")
        answer = requests.get(f"{self.bridge.url}/admin/{path}.json?{query}", auth=("x", PASSWORD), timeout=60)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def text(self, path: str) -> str:
        answer = requests.get(f"{self.bridge.url}/admin/{path}", auth=("x", PASSWORD), timeout=60)
        assert answer.status_code == 200, answer.text
        return readable_text(answer.text)

    def does(self, action: str, target: str) -> str:
        """Confirms the action. Returns the text of the confirmation page."""
        asked = self.text(f"do/{action}?target={target}")
        answer = requests.post(
            f"{self.bridge.url}/admin/do/{action}",
            data={"target": target},
            auth=("x", PASSWORD),
            timeout=60,
            allow_redirects=False,
        )
        assert answer.status_code == 303, answer.text
        return asked

    def written(self, agent: Agent, turns: int) -> Any:
        """Waits until the agent's page shows that many turns; returns its data."""
        deadline = time.monotonic() + 20
        while len((page := self.data(f"agents/{agent.id}"))["turns"]) < turns:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        return page


@pytest.fixture
def site(world: World) -> Iterator[Site]:
    """The pages of a new bridge. A bridge shows its copy of what is on the server for some seconds."""
    with world.start_bridge(BRIDGE_ADMIN_PASSWORD=PASSWORD, WEB_CONCURRENCY="1") as bridge:
        yield Site(world, bridge)


@pytest.fixture
def name(part: str) -> str:
    return f"{part}_read"


@pytest.mark.one_server
def test_hundreds_of_tools_are_listed_by_a_few_calls(world: World, site: Site) -> None:
    """The times of the pages are printed. They depend on the machine."""
    part = unique("many")
    tools = [
        tool(f"{part}_{number:03}", "One of many tools, with a description of usual length.") for number in range(TOOLS)
    ]
    # Servers before 0.8 on SQLite fail if several agents are made at once.
    with ThreadPoolExecutor(4 if world.at_least("0.8.0") else 1) as pool:
        agents = list(pool.map(lambda _: world.agent("memgpt_agent"), range(AGENTS)))
        try:
            for place, one in enumerate(agents[:SHARES]):
                assert one.ask("!say ok", tools=tools[place::SHARES], bridge=site.bridge).text == "ok"
            world.proxy.wait_until_idle()
            world.proxy.clear()
            times = []
            for page in (
                "tools",
                f"tools?q={part}",
                "tools?sort=-calls&page=2",
                "agents",
                f"tools?agent={agents[3].id}",
            ):
                begun = time.perf_counter()
                site.text(page)
                times.append(time.perf_counter() - begun)
            made = [f"{call.method} {call.path}" for call in world.proxy.calls()]
            sys.stderr.write(
                f"\n{TOOLS} tools, {AGENTS} agents: " + ", ".join(f"{one * 1000:.0f} ms" for one in times) + "\n"
            )
            assert sorted(set(made) - {"GET /v1/health/", "GET /openapi.json"}) == ["GET /v1/agents/", "GET /v1/tools/"]
            assert len(made) <= 4
            found = site.data(f"tools?q={part}")["listing"]
            assert (found["found"], found["pages"]) == (TOOLS, math.ceil(TOOLS / 100))
            assert found["rows"][0]["state"] == "attached"
            assert found["rows"][0]["agents"] == [{"id": agents[0].id, "name": agents[0].name}]
            (mine,) = [row for row in site.data("agents")["agents"] if row["id"] == agents[0].id]
            assert mine["our_tools"] == len(tools[0::SHARES])
        finally:
            list(pool.map(Agent.delete, agents))
            list(pool.map(lambda row: delete_tool(world, row["id"]), stubs_on(world, part)))


@pytest.mark.one_server
def test_a_turn_is_shown_step_by_step(site: Site, agent: Agent, name: str) -> None:
    reply = agent.ask(
        f'!call {name} {{"path": "notes.txt"}}', tools=[tool(name)], system="Be kind.", bridge=site.bridge
    )
    (call_id,) = reply.call_ids
    waiting = site.written(agent, 1)
    assert waiting["row"]["waits_for"] == [name]
    assert waiting["blocks"] == ["Be kind."]
    messages = [
        {"role": "user", "content": "Read."},
        {**reply.message, "role": "assistant"},
        {"role": "tool", "tool_call_id": call_id, "content": "Buy milk."},
    ]
    agent.ask(messages=messages, tools=[tool(name)], system="Be kind.", bridge=site.bridge)
    second, first = site.written(agent, 2)["turns"]
    assert [step["kind"] for step in first["steps"]][:1] == ["sync"]
    assert first["steps"][-1]["kind"] == "call"
    assert [step["text"] for step in second["steps"] if step["kind"] == "result"] == ["Buy milk."]
    (row,) = site.data(f"tools?q={name}")["listing"]["rows"]
    assert (row["calls"], row["results"], row["errors"], row["state"]) == (1, 1, 0, "attached")
    page = site.text(f"tools/{row['key']}")
    assert "Buy milk." in page
    assert "notes.txt" in page


@pytest.mark.one_server
def test_all_workers_share_sessions_and_history(world: World, agent: Agent, name: str) -> None:
    with world.start_bridge(BRIDGE_ADMIN_PASSWORD=PASSWORD, WEB_CONCURRENCY="2") as bridge:
        site = Site(world, bridge)
        for number in range(1, 5):
            agent.ask("!say ok", tools=[tool(name)], bridge=bridge)
            site.written(agent, number)
        (row,) = site.data(f"tools?q={name}")["listing"]["rows"]
        assert row["offers"] == 4
        with requests.Session() as browser:
            answer = browser.post(f"{bridge.url}/admin/sign-in", data={"password": PASSWORD}, timeout=30)
            assert readable_text(answer.text).startswith("Synced tools")
            pages = [browser.get(f"{bridge.url}/admin/agents", timeout=30).text for _ in range(10)]
            assert all(agent.name in page for page in pages)
            browser.post(f"{bridge.url}/admin/sign-out", timeout=30)
            assert readable_text(browser.get(f"{bridge.url}/admin/agents", timeout=30).text).startswith("Sign in")
        assert len(site.data("health")["workers"]) >= 2


@pytest.mark.one_server
def test_every_action_does_what_it_says(world: World, site: Site, agent: Agent, name: str) -> None:
    theirs = make_tool(world, unique("theirs"))
    world.letta("PATCH", f"/v1/agents/{agent.id}/tools/attach/{theirs['id']}")
    before = agent.fingerprint()
    agent.ask("!say ok", tools=[tool(name), tool(f"{name}_2")], bridge=site.bridge)
    synced = agent.fingerprint()
    site.written(agent, 1)

    row = stubs_of(agent)[name]
    world.letta("PATCH", f"/v1/tools/{row['id']}", {"description": "Changed by hand.", "tags": row["tags"]})
    world.letta("PATCH", f"/v1/agents/{agent.id}/tools/detach/{stubs_of(agent)[f'{name}_2']['id']}")
    assert "Resync" in site.does("resync", agent.id)
    assert stubs_of(agent).keys() == {name}
    assert agent.fingerprint()["rules"] == [one for one in synced["rules"] if one[1] != f"{name}_2"]

    key = site.data(f"tools?q={name}_2")["listing"]["rows"][0]["key"]
    assert f"The stub '{name}_2' is deleted" in site.does("delete", key)
    assert [one["name"] for one in stubs_on(world, name)] == [name]

    assert "The agent loses 1 tool of clients" in site.does("detach", agent.id)
    assert agent.fingerprint() == before
    assert "Will be marked as idle" in site.does("sweep", "")
    assert world.letta("GET", f"/v1/tools/{theirs['id']}")["name"] == theirs["name"]
    delete_tool(world, theirs["id"])


@pytest.mark.two_servers
def test_a_pending_call_is_closed(world: World, site: Site, name: str) -> None:
    """From 0.14 on, the agent is held by the call until somebody answers it."""
    kind = "letta_v1_agent" if world.at_least("0.14.0") else "memgpt_agent"
    agent = world.agent(kind)
    reply = agent.ask(f'!call {name} {{"path": "x"}}', tools=[tool(name)], bridge=site.bridge)
    assert reply.calls
    held = site.data(f"agents/{agent.id}")["held"]
    if world.at_least("0.14.0"):
        assert held == [name]
        assert f"The agent waits for the client's result of {name}." in site.does("close", agent.id)
    assert site.data(f"agents/{agent.id}")["held"] == []
    assert agent.ask("!say free", tools=[tool(name)], bridge=site.bridge).text == "free"
    agent.delete()


@pytest.mark.one_server
def test_a_call_is_tried_by_hand_and_leaves_nothing_on_the_server(world: World, site: Site, name: str) -> None:
    agent = world.agent(AGENT_TYPE)
    assert agent.ask("!say ok", tools=[tool(name)], bridge=site.bridge).text == "ok"
    site.written(agent, 1)
    (row,) = site.data(f"tools?q={name}")["listing"]["rows"]
    before, helpers = agent.fingerprint(), world.letta("GET", "/v1/agents/?show_hidden_agents=true&limit=1000")

    def posts(path: str, **form: str) -> str:
        answer = requests.post(
            f"{site.bridge.url}/admin/{path}", data=form, auth=("x", PASSWORD), allow_redirects=False
        )
        assert answer.status_code == 303, answer.text
        return answer.headers["Location"].partition("/admin/")[2]

    def tried(path: str, state: str) -> Any:
        return until(lambda: (found := site.data(path)["tried"])["state"] == state and found, 60)

    words = f'!call {name} {{"path": "x.txt"}}\n!next\n!answer'
    path = posts("try", tool=row["digest"], agent=agent.id, words=words)
    call = tried(path, "called")
    assert (call["name"], json.loads(call["arguments"])) == (name, {"path": "x.txt"})
    posts(path, result="Buy milk.")
    assert "Buy milk." in tried(path, "answered")["said"]
    until(lambda: world.letta("GET", "/v1/agents/?show_hidden_agents=true&limit=1000") == helpers, 30)
    until(lambda: [one["id"] for one in stubs_on(world, name)] == [row["tool_id"]], 30)
    assert agent.fingerprint() == before
    agent.delete()
