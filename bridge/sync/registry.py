"""Which stubs stand on the server, by digest: a cache of what the server itself says, rebuilt from it at any time."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from bridge.errors import LettaRejected
from bridge.letta.gateway import Agent, Gateway, Tool
from bridge.stubs.converter import renamed_stub
from bridge.sync.concurrently import at_once
from bridge.sync.names import alternative_names, first_free_name
from bridge.sync.ownership import digest_of, drifted, is_leaving, is_ours, tags_for
from bridge.sync.plan import OUR_RULES
from bridge.turn import Binding, Stub

MOST_STUBS = 20_000
MOST_AGENTS = 5_000


class Registry:
    """Puts stubs on the server and remembers where they are. A name that another tool has is never taken.

    `naming` keeps others from putting tools there while names are looked up and taken: Letta overwrites a tool whose
    name is put a second time. Without one it holds for the threads of this process.
    """

    def __init__(self, gateway: Gateway, naming: Callable[[], AbstractContextManager[object]] | None = None) -> None:
        self._gateway = gateway
        own = threading.Lock()
        self._naming = naming or (lambda: own)
        self._places: OrderedDict[str, tuple[str, str]] = OrderedDict()
        self._names: OrderedDict[str, set[str]] = OrderedDict()
        self._foreign: OrderedDict[str, set[str]] = OrderedDict()
        self._lock = threading.Lock()

    def place(self, agent: Agent, stubs: Sequence[Stub]) -> tuple[list[Binding], bool]:
        """Every stub's binding, in order, and whether the server had to be called for it.

        What the agent has and what was placed before is known; the others are looked up by name.
        """
        self._learn(agent.tools)
        attached = {tool.id: tool for tool in agent.tools}
        known = {binding.stub.digest: binding for binding in self._known(stubs) if not unfit(attached, binding)}
        missing = [stub for stub in stubs if stub.digest not in known]
        if missing:
            with self._naming():
                found = self._settle(missing, agent.tools)
            known.update((binding.stub.digest, binding) for binding in found)
        bindings = [known[stub.digest] for stub in stubs]
        self._remember(agent, bindings)
        return bindings, bool(missing)

    def forget(self, stubs: Iterable[Stub]) -> None:
        """What was believed of these stubs is in doubt: they are looked up anew when next wanted."""
        with self._lock:
            for stub in stubs:
                self._places.pop(stub.digest, None)

    def left_behind(self, agent: Agent) -> set[str]:
        """Names of stubs that the agent has no more, though their rules are still there.

        Somebody detached them by hand. Names that this process has not seen on the agent are looked up, once.
        """
        attached = {tool.name for tool in agent.tools}
        loose = {str(rule.get("tool_name")) for rule in agent.rules if rule.get("type") in OUR_RULES} - attached
        with self._lock:
            known = loose.intersection(self._names.get(agent.id, ()))
            unknown = loose - known - self._foreign.get(agent.id, set())
        if not unknown:
            return known
        ours = {tool.name for tool in self._gateway.tools_named(sorted(unknown)) if is_ours(tool)}
        with self._lock:
            self._foreign[agent.id] = loose - known - ours
            _drop_oldest(self._foreign, MOST_AGENTS)
        return known | ours

    def _learn(self, tools: Iterable[Tool]) -> None:
        with self._lock:
            for tool in tools:
                digest = digest_of(tool) if is_ours(tool) else ""
                if digest:
                    self._places[digest] = (tool.id, tool.name)
                    self._places.move_to_end(digest)
            _drop_oldest(self._places, MOST_STUBS)

    def _known(self, stubs: Sequence[Stub]) -> list[Binding]:
        with self._lock:
            found = [(stub, self._places.get(stub.digest)) for stub in stubs]
        return [
            Binding(renamed_stub(stub, place[1]), place[0])
            for stub, place in found
            if place is not None and (place[1] == stub.name or place[1] in alternative_names(stub))
        ]

    def _settle(self, stubs: Sequence[Stub], seen: Iterable[Tool]) -> list[Binding]:
        """Names are chosen as if those not asked for were free, until all that were chosen have been asked for."""
        tools = {tool.name: tool for tool in seen}
        asked = set(tools)
        while True:
            chosen = _named(stubs, tools)
            unasked = [name for name in chosen if name not in asked]
            if not unasked:
                return self._put(chosen, tools)
            tools.update((tool.name, tool) for tool in self._gateway.tools_named(unasked))
            asked.update(unasked)

    def _put(self, chosen: dict[str, Stub], tools: dict[str, Tool]) -> list[Binding]:
        wanting = [stub for name, stub in chosen.items() if name not in tools or drifted(tools[name], stub)]
        made = at_once(self._put_one, wanting)
        tools |= {stub.name: tool for stub, tool in zip(wanting, made, strict=True)}
        self._learn(tools[name] for name in chosen)
        return [Binding(stub, tools[name].id) for name, stub in chosen.items()]

    def _put_one(self, stub: Stub) -> Tool:
        try:
            return self._gateway.put_tool(stub, tags_for(stub))
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
            _drop_oldest(self._names, MOST_AGENTS)


def _drop_oldest(kept: OrderedDict[str, Any], most: int) -> None:
    while len(kept) > most:
        kept.popitem(last=False)


def beside_own_tools(agent: Agent, stubs: Sequence[Stub]) -> list[Binding]:
    """Bindings of tools that are named in the request only: no name of the agent's own tools may be used."""
    return [Binding(stub, "") for stub in _named(stubs, {tool.name: tool for tool in agent.tools}).values()]


def _named(stubs: Sequence[Stub], tools: Mapping[str, Tool]) -> dict[str, Stub]:
    """The stubs under names of their own, in order, none of which another tool has."""
    chosen: dict[str, Stub] = {}
    for stub in stubs:
        name = first_free_name(stub, tools, chosen)
        chosen[name] = renamed_stub(stub, name)
    return chosen


def unfit(attached: Mapping[str, Tool], binding: Binding) -> bool:
    """Whether the agent has the stub in another form than was put on the server, or as one that is about to leave."""
    tool = attached.get(binding.tool_id)
    return tool is not None and (drifted(tool, binding.stub) or is_leaving(tool))
