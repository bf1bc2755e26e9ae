"""Knows where each stub is on the server, by its digest. It is a cache that can be read from the server at any time."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from bridge.errors import LettaRejected
from bridge.letta.gateway import Agent, Gateway, Tool
from bridge.stubs.converter import rename_stub
from bridge.sync.concurrently import call_concurrently
from bridge.sync.names import first_free_name, possible_names
from bridge.sync.ownership import differs_from_stub, digest_of, is_leaving, is_ours, stub_tags
from bridge.sync.plan import names_in_rules_without_tool
from bridge.turn import Binding, Stub

MAX_STUBS = 20_000
MAX_AGENTS = 5_000


class Registry:
    """Puts stubs on the server and remembers where they are. It never takes a name that another tool has.

    `lock_names` keeps others from putting tools on the server while names are looked up and taken, because Letta
    overwrites a tool when its name is put a second time. Without it, only threads of this process are kept out.
    """

    def __init__(
        self, gateway: Gateway, lock_names: Callable[[], AbstractContextManager[object]] | None = None
    ) -> None:
        self._gateway = gateway
        own = threading.Lock()
        self._lock_names = lock_names or (lambda: own)
        self._places: OrderedDict[str, tuple[str, str]] = OrderedDict()  # digest: (id, name) of the tool
        self._names: OrderedDict[str, set[str]] = OrderedDict()  # agent's id: names of its stubs and their rules
        self._foreign: OrderedDict[str, set[str]] = OrderedDict()  # agent's id: names in rules of somebody else
        self._lock = threading.Lock()

    def place_stubs(self, agent: Agent, stubs: Sequence[Stub]) -> tuple[list[Binding], bool]:
        """Returns every stub's binding, in order, and whether that took calls to the server.

        Stubs that the agent has or that were placed before are known. The others are looked up by name.
        """
        self._learn(agent.tools)
        attached = {tool.id: tool for tool in agent.tools}
        known = {
            binding.stub.digest: binding for binding in self._known(stubs) if not is_unusable_stub(attached, binding)
        }
        missing = [stub for stub in stubs if stub.digest not in known]
        if missing:
            with self._lock_names():
                found = self._find_or_put(missing, agent.tools)
            known.update((binding.stub.digest, binding) for binding in found)
        bindings = [known[stub.digest] for stub in stubs]
        self._remember(agent, bindings)
        return bindings, bool(missing)

    def forget_stubs(self, stubs: Iterable[Stub]) -> None:
        """Makes the next `place` look the stubs up again, because what is known of them may be wrong."""
        with self._lock:
            for stub in stubs:
                self._places.pop(stub.digest, None)

    def detached_stub_names(self, agent: Agent) -> set[str]:
        """Returns the names of stubs that somebody detached from the agent by hand: their rules are still there.

        Names that this process has not seen on the agent are looked up once.
        """
        loose = names_in_rules_without_tool(agent)
        with self._lock:
            known = loose.intersection(self._names.get(agent.id, ()))
            unknown = loose - known - self._foreign.get(agent.id, set())
        if not unknown:
            return known
        ours = {tool.name for tool in self._gateway.tools_named(sorted(unknown)) if is_ours(tool)}
        with self._lock:
            self._foreign[agent.id] = loose - known - ours
            _drop_oldest(self._foreign, MAX_AGENTS)
        return known | ours

    def _learn(self, tools: Iterable[Tool]) -> None:
        with self._lock:
            for tool in tools:
                digest = digest_of(tool) if is_ours(tool) else ""
                if digest:
                    self._places[digest] = (tool.id, tool.name)
                    self._places.move_to_end(digest)
            _drop_oldest(self._places, MAX_STUBS)

    def _known(self, stubs: Sequence[Stub]) -> list[Binding]:
        """Returns bindings for the stubs that are on the server under a name that this method can use."""
        with self._lock:
            found = [(stub, self._places.get(stub.digest)) for stub in stubs]
        return [
            Binding(rename_stub(stub, place[1]), place[0])
            for stub, place in found
            if place is not None and (place[1] == stub.name or place[1] in possible_names(stub))
        ]

    def _find_or_put(self, stubs: Sequence[Stub], seen: Iterable[Tool]) -> list[Binding]:
        """Chooses names as if unseen ones were free, looks those up, and repeats until all chosen names are seen."""
        tools = {tool.name: tool for tool in seen}
        looked_up = set(tools)
        while True:
            chosen = _named(stubs, tools)
            unseen = [name for name in chosen if name not in looked_up]
            if not unseen:
                return self._put(chosen, tools)
            tools.update((tool.name, tool) for tool in self._gateway.tools_named(unseen))
            looked_up.update(unseen)

    def _put(self, chosen: dict[str, Stub], tools: dict[str, Tool]) -> list[Binding]:
        """Puts the stubs on the server that are missing there, or that differ from what they should be."""
        wanting = [stub for name, stub in chosen.items() if name not in tools or differs_from_stub(tools[name], stub)]
        made = call_concurrently(self._put_one, wanting)
        tools |= {stub.name: tool for stub, tool in zip(wanting, made, strict=True)}
        self._learn(tools[name] for name in chosen)
        return [Binding(stub, tools[name].id) for name, stub in chosen.items()]

    def _put_one(self, stub: Stub) -> Tool:
        try:
            return self._gateway.put_tool(stub, stub_tags(stub))
        except LettaRejected as fault:
            named = LettaRejected(f"The Letta server did not accept the tool {stub.spec.name!r:.160}.")
            for note in getattr(fault, "__notes__", ()):
                named.add_note(note)
            raise named from fault

    def _remember(self, agent: Agent, bindings: Sequence[Binding]) -> None:
        ruled = {str(rule.get("tool_name")) for rule in agent.rules}
        with self._lock:
            names = ruled.intersection(self._names.pop(agent.id, ()))
            names.update(tool.name for tool in agent.tools if is_ours(tool))
            names.update(binding.stub.name for binding in bindings)
            self._names[agent.id] = names
            _drop_oldest(self._names, MAX_AGENTS)


def _drop_oldest(kept: OrderedDict[str, Any], most: int) -> None:
    while len(kept) > most:
        kept.popitem(last=False)


def bindings_beside_own_tools(agent: Agent, stubs: Sequence[Stub]) -> list[Binding]:
    """Returns bindings for tools that only the request names; they avoid the names of the agent's own tools."""
    return [Binding(stub, "") for stub in _named(stubs, {tool.name: tool for tool in agent.tools}).values()]


def _named(stubs: Sequence[Stub], tools: Mapping[str, Tool]) -> dict[str, Stub]:
    """Returns the stubs, in order, by names that no other tool and no other of these stubs has."""
    chosen: dict[str, Stub] = {}
    for stub in stubs:
        name = first_free_name(stub, tools, chosen)
        chosen[name] = rename_stub(stub, name)
    return chosen


def is_unusable_stub(attached: Mapping[str, Tool], binding: Binding) -> bool:
    """Whether the stub that the agent has differs from what was put on the server, or is about to leave."""
    tool = attached.get(binding.tool_id)
    return tool is not None and (differs_from_stub(tool, binding.stub) or is_leaving(tool))
