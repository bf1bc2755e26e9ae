"""Which stubs stand on the server, by digest: a cache of what the server itself says, rebuilt from it at any time."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from bridge.errors import LettaRejected
from bridge.letta.gateway import Agent, Gateway, Tool
from bridge.stubs.converter import name_with_suffix, renamed_stub
from bridge.sync.ownership import digest_of, is_ours, tags_for
from bridge.turn import Binding, Stub

AT_ONCE = 8
KEPT = 20_000


class Registry:
    """Puts stubs on the server and remembers where they are. A name that another tool has is never taken."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._placed: OrderedDict[str, tuple[str, str]] = OrderedDict()
        self._lock = threading.Lock()

    def learn(self, tools: Iterable[Tool]) -> None:
        """Take note of stubs that were seen on the server."""
        with self._lock:
            for tool in tools:
                if is_ours(tool) and digest_of(tool):
                    self._placed[digest_of(tool)] = (tool.id, tool.name)
                    self._placed.move_to_end(digest_of(tool))
            while len(self._placed) > KEPT:
                self._placed.popitem(last=False)

    def forget(self, digests: Iterable[str]) -> None:
        """What was believed of these stubs is in doubt: they are looked up anew when next wanted."""
        with self._lock:
            for digest in digests:
                self._placed.pop(digest, None)

    def names(self) -> set[str]:
        """Names of stubs known to be ours."""
        with self._lock:
            return {name for _, name in self._placed.values()}

    def known(self, stubs: Sequence[Stub]) -> list[Binding]:
        """The bindings of those stubs that are known to be on the server."""
        with self._lock:
            found = [(stub, self._placed.get(stub.digest)) for stub in stubs]
        return [Binding(renamed_stub(stub, place[1]), place[0]) for stub, place in found if place is not None]

    def place(self, stubs: Sequence[Stub]) -> list[Binding]:
        """Every stub's binding, in order. Those not known are looked up by name, and put there if missing."""
        known = {binding.stub.digest: binding for binding in self.known(stubs)}
        missing = [stub for stub in stubs if stub.digest not in known]
        if missing:
            known.update((binding.stub.digest, binding) for binding in self._put(missing))
        return [known[stub.digest] for stub in stubs]

    def _put(self, stubs: Sequence[Stub]) -> list[Binding]:
        names = [name for stub in stubs for name in alternative_names(stub)]
        taken = {tool.name: tool for tool in self._gateway.tools_named(names)}
        placed = [renamed_stub(stub, _free_name(stub, taken)) for stub in stubs]
        with ThreadPoolExecutor(min(AT_ONCE, len(placed)), thread_name_prefix="upsert") as pool:
            tools = list(pool.map(lambda stub: self._gateway.put_tool(stub, tags_for(stub)), placed))
        self.learn(tools)
        return [Binding(stub, tool.id) for stub, tool in zip(placed, tools, strict=True)]


def beside_own_tools(agent: Agent, stubs: Sequence[Stub]) -> list[Binding]:
    """Bindings of tools that are named in the request only: no name of the agent's own tools may be used."""
    own = {tool.name: tool for tool in agent.tools}
    return [Binding(renamed_stub(stub, _free_name(stub, own)), "") for stub in stubs]


def alternative_names(stub: Stub) -> tuple[str, ...]:
    """The plain name, one that tells it from others of that name, and one that nobody else would choose."""
    return stub.name, name_with_suffix(stub), f"tool_{stub.digest[:40]}"


def _free_name(stub: Stub, taken: Mapping[str, Tool]) -> str:
    """The first of the stub's names that is free or has this very stub already."""
    for name in alternative_names(stub):
        tool = taken.get(name)
        if tool is None or (is_ours(tool) and digest_of(tool) == stub.digest):
            return name
    raise LettaRejected(f"Every name for the tool {stub.spec.name!r} is taken on the Letta server.")
