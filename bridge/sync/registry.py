"""Puts stubs on the Letta server, and keeps in memory under which id and name each stub is there.

The memory is a cache: all of it can be fetched from Letta again.
"""

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
    """Puts stubs on the Letta server and keeps their ids and names. A stub never gets a name that another tool has.

    `lock_names` locks the names of tools for all workers while the registry looks names up and takes them, because
    Letta overwrites a tool when its name is put a second time. Without `lock_names`, the lock is for this worker only.
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
        """Puts missing stubs on the Letta server.

        Returns the bindings of all `stubs`, in order, and whether Letta had to be called. Stubs that the agent has, and
        those that this registry placed before, need no call. The others are looked up by name: those that are missing,
        and those that the agent has but that were changed or are about to be deleted.
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
        """Forgets the ids and names of stubs, which may be wrong: the next `place_stubs` looks the stubs up again."""
        with self._lock:
            for stub in stubs:
                self._places.pop(stub.digest, None)

    def detached_stub_names(self, agent: Agent) -> set[str]:
        """Returns the names of stubs that somebody detached from the agent by hand, so that only their rules are there.

        A name that this worker has not seen on the agent is looked up on the server. If the server has no stub of this
        name, the rule is somebody else's, and the name is not looked up again.
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
        """Keeps in memory the ids and names of those tools that are the bridge's stubs. Ignores all other tools."""
        with self._lock:
            for tool in tools:
                digest = digest_of(tool) if is_ours(tool) else ""
                if digest:
                    self._places[digest] = (tool.id, tool.name)
                    self._places.move_to_end(digest)
            _drop_oldest(self._places, MAX_STUBS)

    def _known_bindings(self, stubs: Sequence[Stub]) -> list[Binding]:
        """Returns the bindings of those stubs whose id and name are in memory.

        A name counts only if it is one of the stub's possible names.
        """
        with self._lock:
            found = [(stub, self._places.get(stub.digest)) for stub in stubs]
        return [
            Binding(rename_stub(stub, place[1]), place[0])
            for stub, place in found
            if place is not None and (place[1] == stub.name or place[1] in possible_names(stub))
        ]

    def _find_or_put_stubs(self, stubs: Sequence[Stub], seen: Iterable[Tool]) -> list[Binding]:
        """Returns the bindings of stubs that are not in memory, after putting missing ones on the server.

        Chooses names as if a name that was not looked up were free, looks the chosen names up, and repeats this until
        all chosen names were looked up. `seen` are tools that need no look-up.
        """
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
        """Returns the bindings of stubs, after putting those on the server that are missing there or differ.

        `chosen` are the stubs by name, `tools` the tools on the server by name. The tools that were put are added to
        `tools`.
        """
        wanting = [stub for name, stub in chosen.items() if name not in tools or differs_from_stub(tools[name], stub)]
        made = call_concurrently(self._put_stub, wanting)
        tools |= {stub.name: tool for stub, tool in zip(wanting, made, strict=True)}
        self._learn_places(tools[name] for name in chosen)
        return [Binding(stub, tools[name].id) for name, stub in chosen.items()]

    def _put_stub(self, stub: Stub) -> Tool:
        """Puts one stub on the server, and returns its tool.

        If Letta refuses the stub, raises a LettaRejected with the client's name of the tool.
        """
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
            names.update(tool.name for tool in agent.tools if is_ours(tool))
            names.update(binding.stub.name for binding in bindings)
            self._names[agent.id] = names
            _drop_oldest(self._names, MAX_AGENTS)


def _drop_oldest(kept: OrderedDict[str, Any], most: int) -> None:
    """Removes the oldest items until at most `most` are left."""
    while len(kept) > most:
        kept.popitem(last=False)


def bindings_beside_own_tools(agent: Agent, stubs: Sequence[Stub]) -> list[Binding]:
    """Returns bindings for stubs that are sent with each message, and not put on the server: `tool_id` is "".

    A stub gets another one of its possible names if one of the agent's own tools has its name.
    """
    return [Binding(stub, "") for stub in _choose_names(stubs, {tool.name: tool for tool in agent.tools}).values()]


def _choose_names(stubs: Sequence[Stub], tools: Mapping[str, Tool]) -> dict[str, Stub]:
    """Returns the stubs by name, in order, under names that no other tool in `tools` and no other stub has."""
    chosen: dict[str, Stub] = {}
    for stub in stubs:
        name = first_free_name(stub, tools, chosen)
        chosen[name] = rename_stub(stub, name)
    return chosen


def is_unusable_stub(attached: Mapping[str, Tool], binding: Binding) -> bool:
    """Whether the agent has the tool of a binding, but the tool differs from the stub or is about to be deleted.

    `attached` are the agent's tools by id. False if the agent does not have the tool.
    """
    tool = attached.get(binding.tool_id)
    return tool is not None and (differs_from_stub(tool, binding.stub) or is_leaving(tool))
