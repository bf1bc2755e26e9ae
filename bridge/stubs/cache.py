"""Keeps checked tools and their stubs in memory, because clients send the same tools with every request.

To make them again would take longer than everything else that the bridge does for a request.
"""

from __future__ import annotations

import marshal
import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bridge.errors import InvalidRequest
from bridge.stubs.checks import SchemaLimits, check_schema
from bridge.stubs.converter import USUAL_LIMITS, make_stub
from bridge.stubs.known_lists import KnownLists
from bridge.stubs.schema import spend_work
from bridge.stubs.subschemas import count_values
from bridge.stubs.usual_schemas import is_usual
from bridge.stubs.work import Work
from bridge.turn import SchemaForm, Stub, StubKind, ToolSpec

MAX_TOOLS = 12_000
# In bytes. Larger tools are rare.
MAX_TOOL_SIZE = 16_000
# About how many bytes of memory all tools may take with their stubs, which can be much larger. Usual ones take half.
MAX_SIZE = 48_000_000
MAX_PLACES = 8
# What an empty object takes in memory, and its place in a list.
_BYTES_OF_VALUE = 72


@dataclass(slots=True)
class _CachedTool:
    """A checked tool with its `schema_key`, the work that its schema asks for (0: not known yet), and its stubs. `size`
    is what all of it takes in memory.
    """

    key: Hashable
    spec: ToolSpec
    work: int = 0
    size: int = 0
    stubs: dict[tuple[SchemaForm, StubKind], Stub] = field(default_factory=dict)
    places: dict[str, ToolSpec] = field(default_factory=dict)

    def spec_at(self, place: str) -> ToolSpec:
        """Returns the tool at this place of a request, the same object for each of the last few places."""
        found = self.places.get(place)
        if found is None:
            if len(self.places) >= MAX_PLACES:
                self.places.clear()
            found = self.places.setdefault(place, replace(self.spec, place=place))
        return found


class StubCache:
    """Checks tools and makes their stubs, each only once while the tool is in the cache. Many threads use one cache."""

    def __init__(self, limits: SchemaLimits = USUAL_LIMITS) -> None:
        self._limits = limits
        self._tools: OrderedDict[Hashable, _CachedTool] = OrderedDict()
        self._size = 0
        self._lists = KnownLists()
        self._lock = threading.Lock()

    def check_tools(self, specs: tuple[ToolSpec, ...], *, spends_work: bool = True) -> tuple[ToolSpec, ...]:
        """Returns the tools of a request as `check_tool` does. The list of an earlier request costs next to nothing: it
        asks for the same work as then. `spends_work` false: stubs are not made of all tools, so their work does not
        count.
        """
        known = self._lists.find(specs)
        if known is not None:
            return known.checked
        work = Work() if spends_work else None
        checked = tuple(self.check_tool(spec, spec.place, work) for spec in specs)
        size = self._size_of_list(checked)
        return checked if size is None else self._lists.add(specs, checked, size).checked

    def is_remembered(self, specs: Sequence[ToolSpec]) -> bool:
        """Returns whether the same tools come as this very list again."""
        return self._lists.find(specs) is not None

    def fitting_tools(self, specs: Iterable[ToolSpec], needed: str = "") -> list[ToolSpec]:
        """Returns the tools of which stubs can be made, together within the limit of work. Refuses only a request in
        which that is not so for the tool with the name `needed`.
        """
        work, found = Work(), []
        for spec in sorted(specs, key=lambda one: one.name != needed):
            before = work.spent
            try:
                found.append(self.check_tool(spec, spec.place, work))
            except InvalidRequest:
                if spec.name == needed:
                    raise
                work.spent = before
        return found

    def stubs(self, specs: Sequence[ToolSpec], form: SchemaForm, kind: StubKind) -> tuple[Stub, ...]:
        """Returns a stub for each tool."""
        known = self._lists.find(specs)
        stubs = known.stubs.get((form, kind)) if known else None
        if stubs is None:
            stubs = tuple(self.stub(spec, form, kind, spec.place.removesuffix(".parameters")) for spec in specs)
            if known is not None:
                known.stubs[form, kind] = stubs
                self._lists.resize(known, self._size_of_list(known.checked) or known.size)
        return stubs

    def _size_of_list(self, checked: Sequence[ToolSpec]) -> int | None:
        """Returns what tools take in memory with their stubs, None if one of them is too large for the cache."""
        with self._lock:
            tools = [self._tools.get(_key_of(spec, spec.schema_key)) for spec in checked]
        return None if None in tools else sum(tool.size for tool in tools if tool)

    def check_tool(self, spec: ToolSpec, where: str, work: Work | None) -> ToolSpec:
        """Returns the tool with its `schema_key`, once checked, and adds to the work that all tools of the request ask
        for, if that is counted. Errors name the place `where`, so are not cached.
        """
        tool = self._find_or_check(spec, where, is_one_of_many=work is None)
        if work is None:
            return tool.spec_at(spec.place)
        try:
            if tool.work:
                work.spend(tool.work, where)
            else:
                before = work.spent
                spend_work(spec, where, work)
                tool.work = work.spent - before
        except InvalidRequest as fault:
            raise fault.about_tool(spec.name) from None
        return tool.spec_at(spec.place)

    def stub(self, spec: ToolSpec, form: SchemaForm, kind: StubKind, where: str) -> Stub:
        tool = self._find_or_check(spec, f"{where}.parameters")
        stub = tool.stubs.get((form, kind))
        if stub is None:
            stub = make_stub(tool.spec, form, kind=kind, where=where, limits=self._limits)
            tool.stubs[form, kind] = stub
            self._add_size(tool, _size_of([stub.json_schema, stub.source_code, [*stub.changes]]))
        return stub

    def _find_or_check(self, spec: ToolSpec, where: str, *, is_one_of_many: bool = False) -> _CachedTool:
        """Returns a tool from the cache, or checks and adds it. A tool with a `schema_key` was checked before, and a
        usual one among thousands need not be read.
        """
        schema_key = spec.schema_key or _schema_key(spec.parameters)
        key = _key_of(spec, schema_key)
        with self._lock:
            known = self._tools.get(key)
            if known is not None:
                self._tools.move_to_end(key)
                return known
        if not spec.schema_key and not (is_one_of_many and is_usual(spec.parameters, self._limits)):
            try:
                check_schema(spec.parameters, where, self._limits)
            except InvalidRequest as fault:
                raise fault.about_tool(spec.name) from None
        tool = _CachedTool(key, replace(spec, schema_key=schema_key))
        if len(schema_key) + len(spec.description) <= MAX_TOOL_SIZE:
            with self._lock:
                added = self._tools.setdefault(key, tool)
            if added is not tool:  # another request brought the same tool at the same moment
                return added
            self._add_size(tool, len(schema_key) + _size_of([spec.parameters, spec.description]))
        return tool

    def _add_size(self, tool: _CachedTool, size: int) -> None:
        """Counts what a tool in the cache takes, and removes those that were not used for the longest time."""
        with self._lock:
            if self._tools.get(tool.key) is not tool:
                return
            tool.size += size
            self._size += size
            while len(self._tools) > MAX_TOOLS or self._size > MAX_SIZE:
                _, oldest = self._tools.popitem(last=False)
                self._size -= oldest.size


def _key_of(spec: ToolSpec, schema_key: bytes) -> Hashable:
    return spec.name, spec.description, spec.strict, schema_key


def _size_of(value: Any) -> int:
    return len(marshal.dumps(value, 2)) + _BYTES_OF_VALUE * count_values(value)


def _schema_key(parameters: Any) -> bytes:
    """Returns bytes that identify a tool's parameters. Python takes 1, 1.0 and True for equal; their bytes differ."""
    return marshal.dumps(parameters, 2)  # from version 3 on, equal values may have different bytes
