"""Several bridges, the sweep and people change one server in any order, and the invariants hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeVar
from unittest.mock import patch

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from bridge.letta.gateway import Tool
from bridge.sync import concurrently
from bridge.sync.cleanup import sweep_server
from bridge.sync.ownership import client_name_of, is_leaving, is_ours
from bridge.turn import JsonObject, Stub
from tests.toolsets import GATE, Bridge, SharedLetta, second_name, stub

HOUR = 3600.0
READ = stub("read_file")
STUBS = [
    READ,
    stub("read_file", "Reads another file."),
    stub("read_file", kind="relay"),
    stub(second_name(READ), "A rival."),
    stub("write_file"),
    stub("fs.write/file"),
    stub("send_message"),
    stub("theirs"),
]
FOREIGN = ["read_file", "theirs", second_name(READ), "write_file", "lonely"]
EDITS: list[dict[str, Any]] = [
    {"source": "import letta_tool_bridge  # letta-tool-bridge"},
    {"json_schema": {"name": "x", "parameters": {}}},
]

wanted = st.lists(st.sampled_from(STUBS), unique_by=lambda one: one.spec.name, max_size=4)
agents = st.integers(0, 1)
bridges = st.integers(0, 1)
picks = st.integers(0, 1000)
# Few enough that sweeps delete stubs that turns want again.
MOST_IDLE = 3
verbs = st.sampled_from(["tools_named", "put_tool", "agent", "change_agent", "tag_tool"])

Item = TypeVar("Item")


class OneServer(RuleBasedStateMachine):
    """`own_tools` and `own_rules` are what people gave each agent, `foreign` the tools that people made.

    `orphans` are names of deleted stubs that an agent had rules for: nobody knows any more whose these rules are.
    """

    @initialize()
    def start(self) -> None:
        self.patch = patch.object(concurrently, "MAX_THREADS", 1)  # with more, no two runs would be the same
        self.patch.start()
        self.letta = SharedLetta()
        self.now = 1_800_000_000.0
        self.bridges = [self._bridge(), self._bridge()]
        self.agents = [self.letta.has_agent(name) for name in ("Ada", "Bob")]
        self.own_tools: list[list[str]] = [[], []]
        self.own_rules: list[list[JsonObject]] = [[], []]
        self.orphans: list[set[str]] = [set(), set()]
        say = self.letta.has_tool("send_message", "letta_core")
        self.foreign = {say.id: say}
        for number in range(2):
            self._give(number, say, {"type": "exit_loop", "tool_name": "send_message"})

    def teardown(self) -> None:
        self.patch.stop()

    def _bridge(self) -> Bridge:
        return Bridge(self.letta, clock=lambda: self.now)

    # --- bridges --------------------------------------------------------------------------------------

    @rule(agent=agents, bridge=bridges, stubs=wanted)
    def a_turn(self, agent: int, bridge: int, stubs: list[Stub]) -> None:
        self.bridges[bridge].sync(self.agents[agent], *stubs)
        self._check_toolset(agent, stubs)
        self.bridges[bridge].sync(self.agents[agent], *stubs)
        assert self.bridges[bridge].counts == {}

    @rule(agent=agents, bridge=bridges, stubs=wanted, verb=verbs, act=st.integers(0, 3), pick=picks)
    def a_turn_in_which_somebody_does_something(
        self, agent: int, bridge: int, stubs: list[Stub], verb: str, act: int, pick: int
    ) -> None:
        acts = [self._sweep_later]
        # Letta can't make a tool only if its name is free, nor change an agent only if nobody else changed it: what
        # others do between the bridge's reading and its writing is lost. What they delete later is not noticed.
        acts += [self._add_foreign] if verb != "put_tool" else []
        acts += [self._attach] if verb in ("put_tool", "agent", "tag_tool") else []
        acts += [self._delete_stub] if verb != "tag_tool" else []
        chosen = acts[act % len(acts)]
        self.letta.before_call(verb, lambda: chosen(pick))
        self.bridges[bridge].sync(self.agents[agent], *stubs)
        self.letta.forget_actions()
        self._check_toolset(agent, stubs)

    @rule(bridge=bridges)
    def a_restart(self, bridge: int) -> None:
        self.bridges[bridge] = self._bridge()

    @rule(hours=st.integers(0, 29))
    def a_sweep(self, hours: int) -> None:
        attached = {tool.id for agent in self.letta.whole_agents() for tool in agent.tools}
        self._sweep_later(hours)
        assert attached <= self.letta._tools.keys()

    @rule(agent=agents, bridge=bridges, stubs=wanted)
    def a_sweep_with_a_turn_in_it(self, agent: int, bridge: int, stubs: list[Stub]) -> None:
        turns: list[list[str]] = []
        self.now += 25 * HOUR
        sweep_server(
            self.letta,
            24 * HOUR,
            MOST_IDLE,
            clock=lambda: self.now,
            pause=lambda _: turns.append(self.bridges[bridge].sync(self.agents[agent], *stubs)),
        )
        if turns:
            self._check_toolset(agent, stubs)

    # --- people ---------------------------------------------------------------------------------------

    @rule(pick=picks)
    def somebody_makes_a_tool(self, pick: int) -> None:
        self._add_foreign(pick)

    @rule(pick=picks)
    def somebody_attaches_a_tool(self, pick: int) -> None:
        self._attach(pick)

    @rule(agent=agents, pick=picks)
    def somebody_detaches_a_tool(self, agent: int, pick: int) -> None:
        for tool in _picked(self.letta.agent(self.agents[agent].id).tools, pick):
            self.letta.detaches(self.agents[agent], tool.name)
            self.own_tools[agent] = [one for one in self.own_tools[agent] if one != tool.id]

    @rule(pick=picks, change=st.sampled_from(EDITS))
    def somebody_edits_a_stub(self, pick: int, change: dict[str, Any]) -> None:
        for tool in _picked(self._stubs(), pick):
            self.letta.edits(tool, **change)

    @rule(pick=picks)
    def somebody_deletes_a_stub(self, pick: int) -> None:
        self._delete_stub(pick)

    # --- what holds -----------------------------------------------------------------------------------

    @invariant()
    def foreign_tools_are_as_their_owners_left_them(self) -> None:
        left = {tool.id: tool for tool in self.letta._tools.values() if not is_ours(tool)}
        assert left == self.foreign

    @invariant()
    def every_agent_has_its_own_tools_and_rules(self) -> None:
        for number, agent in enumerate(self.agents):
            found = self.letta.agent(agent.id)
            assert sorted(tool.id for tool in found.tools if not is_ours(tool)) == sorted(self.own_tools[number])
            own = [_rule_key(one) for one in self.own_rules[number]]
            assert [_rule_key(one) for one in found.rules if _rule_key(one) in own] == own

    @invariant()
    def no_two_tools_have_one_name(self) -> None:
        names = [tool.name for tool in self.letta._tools.values()]
        assert len(set(names)) == len(names)

    def _check_toolset(self, number: int, stubs: list[Stub]) -> None:
        """Checks for exactly the request's tools, each as described and with its rule, and no other stub's rule."""
        found = self.letta.agent(self.agents[number].id)
        ours = [tool for tool in found.tools if is_ours(tool)]
        shown = sorted((client_name_of(tool), tool.json_schema["description"], _kind(tool)) for tool in ours)
        assert shown == sorted((one.spec.name, one.description, one.kind) for one in stubs)
        assert not any(is_leaving(tool) for tool in ours)
        ruled = Counter((GATE, tool.name) for tool in ours) + Counter(map(_rule_key, self.own_rules[number]))
        assert {name for _, name in Counter(map(_rule_key, found.rules)) - ruled} <= self.orphans[number]
        assert not ruled - Counter(map(_rule_key, found.rules))

    # --- how it is done -------------------------------------------------------------------------------

    def _give(self, number: int, tool: Tool, made: JsonObject) -> None:
        self.letta.attaches(self.agents[number], tool, rules=[made])
        self.own_tools[number].append(tool.id)
        self.own_rules[number].append(made)

    def _stubs(self) -> list[Tool]:
        return [tool for tool in self.letta._tools.values() if is_ours(tool)]

    def _add_foreign(self, pick: int) -> None:
        for name in _picked([name for name in FOREIGN if not self.letta.has(name)], pick):
            tool = self.letta.has_tool(name, ("custom", "external_mcp")[pick % 2])
            self.foreign[tool.id] = tool

    def _attach(self, pick: int) -> None:
        number = pick % 2
        for tool in _picked([one for one in self.foreign.values() if one.id not in self.own_tools[number]], pick):
            self._give(number, tool, {"type": "max_count_per_step", "tool_name": tool.name, "max_count_limit": 2})

    def _delete_stub(self, pick: int) -> None:
        for tool in _picked(self._stubs(), pick):
            for number, agent in enumerate(self.agents):
                if any(one["tool_name"] == tool.name for one in self.letta.agent(agent.id).rules):
                    self.orphans[number].add(tool.name)
            self.letta.delete_tool(tool.id)

    def _sweep_later(self, pick: int) -> None:
        self.now += pick % 30 * HOUR
        sweep_server(self.letta, 24 * HOUR, MOST_IDLE, clock=lambda: self.now, pause=lambda _: None)


def _picked(items: Sequence[Item], pick: int) -> Sequence[Item]:
    """Returns one of them, if there are any."""
    return items[pick % len(items) :][:1] if items else ()


def _rule_key(one: JsonObject) -> tuple[str, str]:
    return one["type"], one["tool_name"]


def _kind(tool: Tool) -> str:
    return next(tag.rpartition("=")[2] for tag in tool.tags if ":kind=" in tag)


TestOneServer = OneServer.TestCase
TestOneServer.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)
