"""Tools that the operator puts into files, for clients that can't send tools. The bridge reads them when it starts.

`all.json` is for every request, `agents/NAME.json` for requests to the agent of that name or id, `keys/NAME.json` for
requests with the key of that name. A file holds an array of tools in OpenAI's form.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from bridge.dialects.openai.tools import parse_tools
from bridge.errors import InvalidRequest, SettingsError
from bridge.stubs.checks import SchemaLimits
from bridge.stubs.converter import USUAL_LIMITS, make_stub
from bridge.turn import SchemaForm, ToolSpec, Turn

Specs = tuple[ToolSpec, ...]


@dataclass(frozen=True, slots=True)
class Toolsets:
    """The tools of the operator's files, by name or id of an agent and by name of a client's key."""

    for_all: Specs = ()
    for_agents: Mapping[str, Specs] = field(default_factory=dict)
    for_keys: Mapping[str, Specs] = field(default_factory=dict)

    def add_to_turn(self, turn: Turn, agent_names: Iterable[str], most: int) -> Turn:
        """Returns the turn with these tools added. Of tools with one name, the client's counts, then the one for all
        requests, then the key's, then the agent's. `agent_names` are the agent's id and name.
        """
        added = [self.for_all, self.for_keys.get(turn.client, ()), *(self.for_agents.get(n, ()) for n in agent_names)]
        if turn.tool_choice.mode == "none" or not any(added):
            return turn
        tools = {spec.name: spec for spec in turn.tools}
        for specs in added:
            for spec in specs:
                tools.setdefault(spec.name, spec)
        if len(tools) > most:
            raise InvalidRequest(
                f"With the tools of BRIDGE_FILES the request has {len(tools)} tools; the limit is {most}.",
                param="tools",
                code="too_many_tools",
            )
        return replace(turn, tools=tuple(tools.values()))


def read_toolsets(folder: Path | None, most: int, limits: SchemaLimits = USUAL_LIMITS) -> Toolsets:
    """Reads a folder `tools` of BRIDGE_FILES; None: no tools. A SettingsError names the first wrong file."""
    if folder is None:
        return Toolsets()
    for_all = folder / "all.json"
    return Toolsets(
        for_all=_read_tools(for_all, most, limits) if for_all.exists() else (),
        for_agents={file.stem: _read_tools(file, most, limits) for file in sorted((folder / "agents").glob("*.json"))},
        for_keys={file.stem: _read_tools(file, most, limits) for file in sorted((folder / "keys").glob("*.json"))},
    )


def _read_tools(file: Path, most: int, limits: SchemaLimits) -> Specs:
    """Reads the tools of one file. A stub is made of each only as a check: an invalid tool would fail every request."""
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
        tools = value.get("tools") if isinstance(value, dict) else value
        specs = parse_tools({"tools": tools}, most)
        for index, spec in enumerate(specs):
            make_stub(spec, SchemaForm(), where=f"tools[{index}].function", limits=limits)
    except (OSError, ValueError) as fault:
        raise SettingsError(f"BRIDGE_FILES: {file} can't be read as JSON: {fault}") from fault
    except InvalidRequest as fault:
        raise SettingsError(f"BRIDGE_FILES: {file}: {fault.message}") from fault
    return specs
