"""Puts stubs on the Letta server, and keeps their ids and names in a cache that Letta can fill again."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from math import inf
from typing import Any
from weakref import WeakValueDictionary

from bridge.errors import LettaRejected
from bridge.letta.gateway import Agent, Gateway, Tool
from bridge.stubs.converter import rename_stub
from bridge.sync.concurrently import call_concurrently
from bridge.sync.made_stubs import MadeStubs
from bridge.sync.names import first_free_name, possible_names
from bridge.sync.new_stubs import NewStubs
from bridge.sync.ownership import differs_from_stub, digest_of, is_leaving, is_ours, names_of_our_tools, stub_tags
from bridge.sync.plain_names import free_names, names_to_free
from bridge.sync.plan import names_in_rules_without_tool
from bridge.sync.reserved_names import Reservation, ReservedNames
from bridge.sync.settled import SettledToolset, SettledToolsets
from bridge.turn import Binding, Stub

MAX_STUBS = 20_000
MAX_AGENTS = 5_000

Place = tuple[str, str]  # the id and the name of a stub's tool on the server


class Registry:
    """Puts stubs on the Letta server and keeps their ids and names. A stub never gets a name that another tool has:
    Letta overwrites a tool when its name is put a second time. So the names are reserved for all workers before the
    registry looks them up and takes them. `made` counts the stubs that are put. `settled` are toolsets of agents that
    needed no change.
    """

    def __init__(
        self,
        gateway: Gateway,
        names: ReservedNames,
        made: MadeStubs,
        clock: Callable[[], float] = time.time,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._gateway = gateway
        self._reserved_names = names
        self._made = made
        self._clock = clock
        self._pause = pause
        self.settled = SettledToolsets()
        self._put_times: OrderedDict[str, float] = OrderedDict()  # digest: when this worker put the stub last
        self._putting: WeakValueDictionary[str, _Putting] = WeakValueDictionary()
        self._places: OrderedDict[str, Place] = OrderedDict()  # by the stub's digest
        self._names: OrderedDict[str, set[str]] = OrderedDict()  # agent's id: names of its stubs and their rules
        self._foreign: OrderedDict[str, set[str]] = OrderedDict()  # agent's id: names of tools in somebody else's rules
        self._lock = threading.Lock()

    def place_stubs(self, agent: Agent, stubs: Sequence[Stub], new: NewStubs) -> tuple[list[Binding], bool]:
        """Returns the bindings of all stubs, in order, and whether Letta was called. Missing stubs are put on the
        server for the client of `new`, and added to it. Stubs that the agent has or that were placed before need no
        call, unless they were changed or are being deleted.
        """
        self._learn_places(agent.tools)
        attached = {tool.id: tool for tool in agent.tools}
        found = [binding for binding in self._known_bindings(stubs) if not is_unusable_stub(attached, binding)]
        known = {binding.stub.digest: binding for binding in found}
        missing = [stub for stub in stubs if stub.digest not in known]
        if missing:
            found = self._find_or_put_stubs(missing, agent.tools, new)
            known.update((binding.stub.digest, binding) for binding in found)
        bindings = [known[stub.digest] for stub in stubs]
        self._note_names(agent, bindings)
        return bindings, bool(missing)

    def learn_settled(self, agent: Agent, settled: SettledToolset) -> None:
        """Keeps in memory what `place_stubs` would keep of an agent with this toolset."""
        self._keep_places({one.stub.digest: (one.tool_id, one.stub.name) for one in settled.bindings})
        self._keep_names(agent, {one.stub.name for one in settled.bindings})

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
        self._keep_places({digest_of(tool): (tool.id, tool.name) for tool in tools if is_ours(tool)})

    def _keep_places(self, places: Mapping[str, Place]) -> None:
        """Keeps in memory the places of stubs, by digest. "" is the digest of a stub whose tag somebody removed."""
        with self._lock:
            for digest, place in places.items():
                if digest:
                    self._places[digest] = place
                    self._places.move_to_end(digest)
            _drop_oldest(self._places, MAX_STUBS)

    def _known_bindings(self, stubs: Sequence[Stub]) -> list[Binding]:
        """Returns the bindings that this registry knows for `stubs`, but none whose name the stub could not have."""
        with self._lock:
            found = [(stub, self._places.get(stub.digest)) for stub in stubs]
        return [
            _binding(stub, place)
            for stub, place in found
            if place is not None and (place[1] == stub.name or place[1] in possible_names(stub))
        ]

    def _find_or_put_stubs(self, stubs: Sequence[Stub], seen: Iterable[Tool], new: NewStubs) -> list[Binding]:
        """Returns the bindings of stubs that are not in memory. Chooses names until all chosen ones were reserved and
        looked up, in this order, and plain names are free that only idle stubs held.
        """
        tools, began = {tool.name: tool for tool in seen}, time.monotonic()
        looked_up, reserved, tried = set(tools), set[str](), set[str]()
        with self._reserved_names.reservation() as reservation:
            while True:
                chosen = _choose_names(stubs, tools, reserved)
                unseen = {name: stub.digest for name, stub in chosen.items() if name not in looked_up}
                if unseen:
                    reserved |= reservation.add(unseen)
                    tools.update((tool.name, tool) for tool in self._gateway.tools_named([*unseen]))
                    looked_up.update(unseen)
                    continue
                idle = names_to_free(stubs, chosen, tools, self._clock())
                if not idle.keys() - tried:
                    return self._put_stubs(chosen, tools, partial(self._put_once, began, new, {*tools}))
                tried |= idle.keys()
                for name in self._free_names(idle, tools, reservation):
                    del tools[name]

    def _free_names(
        self, idle: Mapping[str, str], tools: Mapping[str, Tool], reservation: Reservation
    ) -> Sequence[str]:
        """Deletes the stubs that hold these names, except names that are reserved for other requests. Returns the names
        that are free for this request now.
        """
        others = reservation.add(idle)
        return free_names(self._gateway, [tools[name] for name in idle if name not in others], self._pause)

    def _put_stubs(
        self, chosen: Mapping[str, Stub], tools: Mapping[str, Tool], put: Callable[[Stub], Place]
    ) -> list[Binding]:
        """Puts stubs that are missing in `tools` or differ, and returns the bindings of all."""
        wanting = [stub for name, stub in chosen.items() if name not in tools or differs_from_stub(tools[name], stub)]
        places = {stub.digest: (tools[name].id, name) for name, stub in chosen.items() if name in tools}
        places.update(zip([stub.digest for stub in wanting], call_concurrently(put, wanting), strict=True))
        self._keep_places(places)
        return [_binding(stub, places[stub.digest]) for stub in chosen.values()]

    def _put_once(self, began: float, new: NewStubs, there: Collection[str], stub: Stub) -> Place:
        """Puts one stub on the server, unless another turn of this worker put the same stub since `began`. `there` are
        the names of tools on the server: a stub under one of these is not new.
        """
        with self._lock:
            putting = self._putting.setdefault(stub.digest, _Putting())
        with putting.lock:
            with self._lock:
                place, put_at = self._places.get(stub.digest), self._put_times.get(stub.digest, -inf)
            if place is None or put_at < began:
                place = self._put_stub(stub, new.key_name)
                if stub.name not in there:
                    new.bindings.append(_binding(stub, place))
                self._keep_places({stub.digest: place})
                with self._lock:
                    self._put_times[stub.digest] = time.monotonic()
                    self._put_times.move_to_end(stub.digest)
                    _drop_oldest(self._put_times, MAX_STUBS)
            return place

    def _put_stub(self, stub: Stub, key_name: str) -> Place:
        """Puts one stub on the server. An error has the client's name of the tool."""
        try:
            tool = self._gateway.put_tool(stub, stub_tags(stub, key_name))
        except LettaRejected as fault:
            named = LettaRejected(f"The Letta server did not accept the tool {stub.spec.name!r:.160}.")
            for note in getattr(fault, "__notes__", ()):
                named.add_note(note)
            raise named from fault
        self._made.add(key_name, 1)
        return tool.id, tool.name

    def _note_names(self, agent: Agent, bindings: Sequence[Binding]) -> None:
        """Keeps in memory the names of the stubs that the agent has, will have (`bindings`), or still has rules for."""
        self._keep_names(agent, {*names_of_our_tools(agent), *(binding.stub.name for binding in bindings)})

    def _keep_names(self, agent: Agent, names: Collection[str]) -> None:
        """Keeps in memory these names, and those kept before for which the agent still has rules."""
        ruled = {str(rule.get("tool_name")) for rule in agent.rules}
        with self._lock:
            self._names[agent.id] = ruled.intersection(self._names.pop(agent.id, ())).union(names)
            _drop_oldest(self._names, MAX_AGENTS)


def _binding(stub: Stub, place: Place) -> Binding:
    return Binding(rename_stub(stub, place[1]), place[0])


class _Putting:
    """Lets one thread at a time put a stub."""

    def __init__(self) -> None:
        self.lock = threading.Lock()


def _drop_oldest(kept: OrderedDict[str, Any], most: int) -> None:
    while len(kept) > most:
        kept.popitem(last=False)


def bindings_beside_own_tools(agent: Agent, stubs: Sequence[Stub]) -> list[Binding]:
    """Returns bindings with the `tool_id` "" for stubs that are sent with each message, and not put on the server."""
    return [Binding(stub, "") for stub in _choose_names(stubs, {tool.name: tool for tool in agent.tools}).values()]


def _choose_names(stubs: Sequence[Stub], tools: Mapping[str, Tool], reserved: Collection[str] = ()) -> dict[str, Stub]:
    """Returns the stubs by name, in order, under names that no other tool in `tools` and no other stub has."""
    chosen: dict[str, Stub] = {}
    for stub in stubs:
        name = first_free_name(stub, tools, chosen, reserved)
        chosen[name] = rename_stub(stub, name)
    return chosen


def is_unusable_stub(attached: Mapping[str, Tool], binding: Binding) -> bool:
    """Whether the agent has the tool of a binding, but the tool differs from the stub or is about to be deleted."""
    tool = attached.get(binding.tool_id)
    return tool is not None and (differs_from_stub(tool, binding.stub) or is_leaving(tool))
