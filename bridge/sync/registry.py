"""Puts stubs on the Letta server, and keeps their ids and names in a cache that Letta can fill again."""

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
from bridge.sync.ownership import differs_from_stub, digest_of, is_leaving, is_ours, names_of_our_tools, stub_tags
from bridge.sync.plan import names_in_rules_without_tool
from bridge.turn import Binding, Stub

MAX_STUBS = 20_000
MAX_AGENTS = 5_000


class Registry:
    """Puts stubs on the Letta server and keeps their ids and names. A stub never gets a name that another tool has:
    Letta overwrites a tool when its name is put a second time. So `lock_names` locks names for all workers while the
    registry looks names up and takes them. Without `lock_names`, the lock is for this worker only.
    """

    def __init__(
        self, gateway: Gateway, lock_names: Callable[[], AbstractContextManager[object]] | None = None
    ) -> None:
        self._gateway = gateway
        own = threading.Lock()
        self._lock_names = lock_names or (lambda: own)
        self._places: OrderedDict[str, tuple[str, str]] = OrderedDict()  # digest: (id, name) of the tool
        self._names: OrderedDict[str, set[str]] = OrderedDict()  # agent's id: names of its stubs and their rules
        self._foreign: OrderedDict[str, set[str]] = OrderedDict()  # agent's id: names of tools in somebody else's rules
        self._lock = threading.Lock()

    def place_stubs(self, agent: Agent, stubs: Sequence[Stub]) -> tuple[list[Binding], bool]:
        """Returns the bindings of all stubs, in order, after putting missing ones on the server, and whether Letta was
        called. Stubs that the agent has or that were placed before need no call, unless they were changed or are being
        deleted.
        """
        self._learn_places(agent.tools)
        attached = {tool.id: tool for tool in agent.tools}
        found = [binding for binding in self._known_bindings(stubs) if not is_unusable_stub(attached, binding)]
        known = {binding.stub.digest: binding for binding in found}
        missing = [stub for stub in stubs if stub.digest not in known]
        if missing:
            with self._lock_names():
                found = self._find_or_put_stubs(missing, agent.tools)
            known.update((binding.stub.digest, binding) for binding in found)
        bindings = [known[stub.digest] for stub in stubs]
        self._note_names(agent, bindings)
        return bindings, bool(missing)

    def forget_stubs(self, stubs: Iterable[Stub]) -> None:
        """Forgets ids and names that may be wrong: the next `place_stubs` looks the stubs up again."""
        with self._lock:
            for stub in stubs:
                self._places.pop(stub.digest, None)

    def detached_stub_names(self, agent: Agent) -> set[str]:
        """Returns the names of stubs that somebody detached from the agent by hand, so that only their rules are there.
        An unknown name is looked up; if the server has no stub of this name, the rule is somebody else's for good.
        """
        ruled = names_in_rules_without_tool(agent)
        with self._lock:
            known = ruled.intersection(self._names.get(agent.id, ()))
            unknown = ruled - known - self._foreign.get(agent.id, set())
        if not unknown:
            return known
        ours = {tool.name for tool in self._gateway.tools_named(sorted(unknown)) if is_ours(tool)}
        with self._lock:
            self._foreign[agent.id] = ruled - known - ours
            _drop_oldest(self._foreign, MAX_AGENTS)
        return known | ours

    def _learn_places(self, tools: Iterable[Tool]) -> None:
        """Keeps in memory the ids and names of the bridge's stubs among the tools."""
        with self._lock:
            for tool in tools:
                digest = digest_of(tool) if is_ours(tool) else ""
                if digest:
                    self._places[digest] = (tool.id, tool.name)
                    self._places.move_to_end(digest)
            _drop_oldest(self._places, MAX_STUBS)

    def _known_bindings(self, stubs: Sequence[Stub]) -> list[Binding]:
        """Returns the bindings that this registry knows for `stubs`, but none whose name the stub could not have."""
        with self._lock:
            found = [(stub, self._places.get(stub.digest)) for stub in stubs]
        return [
            Binding(rename_stub(stub, place[1]), place[0])
            for stub, place in found
            if place is not None and (place[1] == stub.name or place[1] in possible_names(stub))
        ]

    def _find_or_put_stubs(self, stubs: Sequence[Stub], seen: Iterable[Tool]) -> list[Binding]:
        """Returns the bindings of stubs that are not in memory. Chooses names until all chosen ones were looked up."""
        tools = {tool.name: tool for tool in seen}
        looked_up = set(tools)
        while True:
            chosen = _choose_names(stubs, tools)
            unseen = [name for name in chosen if name not in looked_up]
            if not unseen:
                return self._put_stubs(chosen, tools)
            tools.update((tool.name, tool) for tool in self._gateway.tools_named(unseen))
            looked_up.update(unseen)

    def _put_stubs(self, chosen: dict[str, Stub], tools: dict[str, Tool]) -> list[Binding]:
        """Puts stubs that are missing or differ, adds their tools to `tools`, and returns the bindings of all."""
        wanting = [stub for name, stub in chosen.items() if name not in tools or differs_from_stub(tools[name], stub)]
        made = call_concurrently(self._put_stub, wanting)
        tools |= {stub.name: tool for stub, tool in zip(wanting, made, strict=True)}
        self._learn_places(tools[name] for name in chosen)
        return [Binding(stub, tools[name].id) for name, stub in chosen.items()]

    def _put_stub(self, stub: Stub) -> Tool:
        """Puts one stub on the server. An error has the client's name of the tool."""
        try:
            return self._gateway.put_tool(stub, stub_tags(stub))
        except LettaRejected as fault:
            named = LettaRejected(f"The Letta server did not accept the tool {stub.spec.name!r:.160}.")
            for note in getattr(fault, "__notes__", ()):
                named.add_note(note)
            raise named from fault

    def _note_names(self, agent: Agent, bindings: Sequence[Binding]) -> None:
        """Keeps in memory the names of the stubs that the agent has, will have (`bindings`), or still has rules for."""
        ruled = {str(rule.get("tool_name")) for rule in agent.rules}
        with self._lock:
            names = ruled.intersection(self._names.pop(agent.id, ()))
            names.update(names_of_our_tools(agent))
            names.update(binding.stub.name for binding in bindings)
            self._names[agent.id] = names
            _drop_oldest(self._names, MAX_AGENTS)


def _drop_oldest(kept: OrderedDict[str, Any], most: int) -> None:
    while len(kept) > most:
        kept.popitem(last=False)


def bindings_beside_own_tools(agent: Agent, stubs: Sequence[Stub]) -> list[Binding]:
    """Returns bindings with the `tool_id` "" for stubs that are sent with each message, and not put on the server."""
    return [Binding(stub, "") for stub in _choose_names(stubs, {tool.name: tool for tool in agent.tools}).values()]


def _choose_names(stubs: Sequence[Stub], tools: Mapping[str, Tool]) -> dict[str, Stub]:
    """Returns the stubs by name, in order, under names that no other tool in `tools` and no other stub has."""
    chosen: dict[str, Stub] = {}
    for stub in stubs:
        name = first_free_name(stub, tools, chosen)
        chosen[name] = rename_stub(stub, name)
    return chosen


def is_unusable_stub(attached: Mapping[str, Tool], binding: Binding) -> bool:
    """Whether the agent has the tool of a binding, but the tool differs from the stub or is about to be deleted."""
    tool = attached.get(binding.tool_id)
    return tool is not None and (differs_from_stub(tool, binding.stub) or is_leaving(tool))
