"""A Letta server that other people change, too, and a bridge that sets the toolset of its agents."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from bridge.letta.gateway import Agent, AgentChange, Tool
from bridge.letta.identity import ServerIdentity
from bridge.stubs.converter import make_stub
from bridge.sync.made_stubs import MadeStubs
from bridge.sync.names import possible_names
from bridge.sync.new_stubs import NewStubs
from bridge.sync.ownership import is_ours, stub_tags
from bridge.sync.registry import Registry
from bridge.sync.reserved_names import ReservedNames
from bridge.sync.toolset import sync_toolset
from bridge.turn import AgentCall, Binding, JsonObject, SchemaForm, Stub, StubKind, ToolSpec
from tests.fake_agent import new_id
from tests.fakes import FakeGateway
from tests.stores import MemoryStore

GATE = "requires_approval"


def stub(name: str = "read_file", description: str = "Reads a file.", kind: StubKind = "placeholder") -> Stub:
    """Another description makes another stub of the same name."""
    parameters = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    return make_stub(ToolSpec(name, description, parameters), SchemaForm(), kind=kind)


def tool_of(one: Stub, key_name: str = "") -> Tool:
    """The stub as it is on the server."""
    tags = tuple(stub_tags(one, key_name))
    return Tool(f"tool-{one.name}", one.name, "custom", tags, one.json_schema, one.source_code)


def second_name(one: Stub) -> str:
    """The name that the stub gets if another tool has its own name."""
    return possible_names(one)[1]


def lasting(tags: Iterable[str]) -> list[str]:
    """Returns the tags without the time at which the tool was made."""
    return [tag for tag in tags if ":made=" not in tag]


def gates(bindings: Sequence[Binding]) -> list[JsonObject]:
    return [{"type": GATE, "tool_name": binding.stub.name} for binding in bindings]


class SharedLetta(FakeGateway):
    """Does what people do in Letta's own interface while a bridge works. It adds fields to rules, as Letta does."""

    def __init__(self) -> None:
        super().__init__()
        self.rules_seen: list[JsonObject] = []
        self._actions: list[list[Any]] = []

    def before_call(self, verb: str, action: Callable[[], object], nth: int = 1) -> None:
        """Does the action just before the nth next call of the verb."""
        self._actions.append([verb, nth, action])

    def forget_actions(self) -> None:
        """Drops the actions that have not happened yet."""
        self._actions.clear()

    def attaches(self, agent: Agent, *tools: Tool, rules: Sequence[JsonObject] = ()) -> None:
        """Somebody attaches tools and adds rules."""
        kept = self._agents[agent.id]
        kept.agent = replace(
            kept.agent, tools=(*kept.agent.tools, *tools), rules=(*kept.agent.rules, *map(_completed, rules))
        )

    def detaches(self, agent: Agent, name: str) -> None:
        """Somebody detaches a tool; its rules stay."""
        kept = self._agents[agent.id]
        kept.agent = replace(kept.agent, tools=tuple(tool for tool in kept.agent.tools if tool.name != name))

    def edits(self, tool: Tool, **changes: Any) -> Tool:
        """Somebody changes a tool by hand."""
        return self._set_tool(replace(self.tool(tool.name), **changes))

    def holds(self, agent: Agent, name: str) -> None:
        """The agent waits for an approval of a call, outside of any turn."""
        self._agents[agent.id].record(AgentCall(new_id("message"), "call_held", name, "{}", held=True))

    def tool(self, name: str) -> Tool:
        return next(tool for tool in self._tools.values() if tool.name == name)

    def has(self, name: str) -> bool:
        return any(tool.name == name for tool in self._tools.values())

    def change_agent(self, agent_id: str, change: AgentChange) -> Agent:
        self.rules_seen += change.rules or ()
        rules = None if change.rules is None else [_completed(rule) for rule in change.rules]
        return super().change_agent(agent_id, replace(change, rules=rules))

    def _called(self, verb: str) -> None:
        super()._called(verb)
        for awaited in [one for one in self._actions if one[0] == verb]:
            awaited[1] -= 1
            if not awaited[1]:
                self._actions.remove(awaited)
                calls = list(self.calls)
                awaited[2]()
                self.calls = calls


def new_registry(
    letta: SharedLetta,
    store: Any = None,
    made: MadeStubs | None = None,
    clock: Callable[[], float] = time.time,
    pause: Callable[[float], None] = lambda _: None,
) -> Registry:
    """Returns the registry of a worker that knows its server already. Workers share a store."""
    server = ServerIdentity(letta)
    server.read()
    return Registry(letta, ReservedNames(store or MemoryStore(), server), made or MadeStubs(1_000), clock, pause)


class Bridge:
    """One process of the bridge. It remembers only its registry."""

    def __init__(self, letta: SharedLetta, store: MemoryStore | None = None, **times: Callable[..., Any]) -> None:
        self.letta = letta
        self.store = store or MemoryStore()
        self.registry = new_registry(letta, self.store, **times)
        self.counts: Counter[str] = Counter()

    def sync(self, agent: Agent, *stubs: Stub) -> list[str]:
        """Runs a turn on the agent. Returns the names under which its model is offered the stubs."""
        found = self.letta.agent(agent.id)
        before = len(self.letta.calls)
        self.counts = Counter()
        try:
            synced, bindings = sync_toolset(self.letta, self.registry, found, stubs, gates, NewStubs())
        finally:
            self.counts = Counter(self.letta.calls[before:])
        assert [binding.stub.digest for binding in bindings] == [one.digest for one in stubs]
        assert {tool.id for tool in synced.tools if is_ours(tool)} == {binding.tool_id for binding in bindings}
        return [binding.stub.name for binding in bindings]


def offered(letta: SharedLetta, agent: Agent) -> dict[str, JsonObject]:
    """Returns the schemas that the agent's model is offered, by name."""
    return {tool.name: tool.json_schema for tool in letta.agent(agent.id).tools}


def rules_of(letta: SharedLetta, agent: Agent) -> list[tuple[str, str]]:
    return [(rule["type"], rule["tool_name"]) for rule in letta.agent(agent.id).rules]


def _completed(rule: JsonObject) -> JsonObject:
    return {"prompt_template": None, **rule}
