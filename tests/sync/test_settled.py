"""A toolset that needed no change is not compared again, until anything of it is another one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bridge.letta.gateway import Agent
from bridge.sync import settled as module
from bridge.sync import toolset
from bridge.sync.new_stubs import NewStubs
from bridge.sync.ownership import tags_when_idle, tags_when_leaving
from bridge.sync.toolset import sync_toolset
from tests.toolsets import GATE, Bridge, SharedLetta, gates, offered, rules_of, second_name, stub

READ, WRITE = stub("read_file"), stub("write_file")


@pytest.fixture
def letta() -> SharedLetta:
    return SharedLetta()


@pytest.fixture
def ada(letta: SharedLetta) -> Agent:
    agent = letta.has_agent("Ada")
    letta.attaches(agent, letta.has_tool("mine"), rules=[{"type": GATE, "tool_name": "mine"}])
    return letta.agent(agent.id)


@pytest.fixture
def bridge(letta: SharedLetta, ada: Agent) -> Bridge:
    """A bridge that has found the agent's toolset as it is wanted."""
    bridge = Bridge(letta)
    for _ in range(2):
        bridge.sync(ada, READ, WRITE)
    return bridge


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows with each comparison of what an agent has with what is wanted."""
    plans: list[str] = []
    plan = toolset.plan_toolset
    monkeypatch.setattr(toolset, "plan_toolset", lambda *args: (plans.append("plan"), plan(*args))[1])
    return plans


def test_an_unchanged_toolset_is_compared_once(bridge: Bridge, ada: Agent, plans: list[str]) -> None:
    for _ in range(3):
        assert bridge.sync(ada, READ, WRITE) == ["read_file", "write_file"]
        assert not bridge.counts
    assert not plans


Change = Callable[[SharedLetta, Agent], Any]
CHANGES: dict[str, Change] = {
    "the same tool as another object": lambda letta, ada: letta.edits(letta.tool("read_file")),
    "a schema": lambda letta, ada: letta.edits(letta.tool("read_file"), json_schema={"name": "read_file"}),
    "a source": lambda letta, ada: letta.edits(letta.tool("read_file"), source="letta-tool-bridge"),
    "a tool of somebody else": lambda letta, ada: letta.edits(letta.tool("read_file"), source="print()"),
    "a name": lambda letta, ada: letta.edits(letta.tool("read_file"), name="other"),
    "no tags": lambda letta, ada: letta.edits(letta.tool("read_file"), tags=()),
    "an idle stub": lambda letta, ada: letta.edits(
        letta.tool("read_file"), tags=tuple(tags_when_idle(letta.tool("read_file"), 1))
    ),
    "a leaving stub": lambda letta, ada: letta.edits(
        letta.tool("read_file"), tags=tuple(tags_when_leaving(letta.tool("read_file")))
    ),
    "a stub less": lambda letta, ada: letta.detaches(ada, "read_file"),
    "a tool more": lambda letta, ada: letta.attaches(ada, letta.has_tool("more")),
    "a rule more": lambda letta, ada: letta.attaches(ada, rules=[{"type": "exit_loop", "tool_name": "read_file"}]),
    "a rule for a tool that is not there": lambda letta, ada: letta.attaches(
        ada, rules=[{"type": GATE, "tool_name": "nothing"}]
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_changed_toolset_is_compared(
    letta: SharedLetta, bridge: Bridge, ada: Agent, plans: list[str], change: Change
) -> None:
    change(letta, ada)
    names = bridge.sync(ada, READ, WRITE)
    assert plans
    assert set(names) <= {"read_file", "write_file", second_name(READ)}
    gated = {name for kind, name in rules_of(letta, ada) if kind == GATE}
    assert {*names, "mine"} <= gated
    assert {*names, "mine"} <= offered(letta, ada).keys()
    for _ in range(2):
        assert bridge.sync(ada, READ, WRITE) == names
        assert not bridge.counts


@pytest.mark.parametrize("wanted", [(READ,), (WRITE, READ), (READ, stub("write_file", "Otherwise.")), ()])
def test_other_stubs_are_compared(bridge: Bridge, ada: Agent, plans: list[str], wanted: Any) -> None:
    bridge.sync(ada, *wanted)
    assert plans


def test_other_rules_are_compared(letta: SharedLetta, bridge: Bridge, ada: Agent, plans: list[str]) -> None:
    agent = letta.agent(ada.id)
    sync_toolset(letta, bridge.registry, agent, (READ, WRITE), lambda bindings: gates(bindings)[:1], NewStubs())
    assert plans
    assert rules_of(letta, ada) == [(GATE, "mine"), (GATE, "read_file")]


def test_the_places_of_the_stubs_are_still_learned(letta: SharedLetta, bridge: Bridge, ada: Agent) -> None:
    bridge.registry.forget_stubs([READ, WRITE])
    bridge.sync(ada, READ, WRITE)
    bridge.sync(letta.has_agent("Bob"), READ, WRITE)
    assert "tools_named" not in bridge.counts


def test_the_agents_used_longest_ago_are_forgotten(
    letta: SharedLetta, bridge: Bridge, ada: Agent, plans: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_AGENTS", 2)
    agents = [ada, letta.has_agent("Bob"), letta.has_agent("Cid")]
    for agent in agents[1:] * 2:
        bridge.sync(agent, READ)
    plans.clear()
    for agent in agents[1:]:
        bridge.sync(agent, READ)
    assert not plans
    bridge.sync(ada, READ, WRITE)
    assert plans


def test_agents_with_many_tools_are_not_remembered(
    bridge: Bridge, ada: Agent, plans: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_TOOLS", 2)
    for _ in range(3):
        bridge.sync(ada, READ)
    plans.clear()
    bridge.sync(ada, READ)
    assert not plans
    for _ in range(3):
        bridge.sync(ada, READ, WRITE)
    assert len(plans) == 3
