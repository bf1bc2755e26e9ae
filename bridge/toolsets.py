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
    """The tools of the operator's files.

    `for_all` are the tools for every request. `for_agents` maps the name or id of an agent to the tools for that agent.
    `for_keys` maps the name of a client's key to the tools for requests with that key.
    """

    for_all: Specs = ()
    for_agents: Mapping[str, Specs] = field(default_factory=dict)
    for_keys: Mapping[str, Specs] = field(default_factory=dict)

    def add_to_turn(self, turn: Turn, agent_names: Iterable[str], most: int) -> Turn:
        """Returns the turn with the tools of the files added.

        `agent_names` are the id and the name of the turn's agent. Of several tools with one name, the client's is used,
        otherwise the one for all requests, otherwise the key's, otherwise the agent's. With `tool_choice: none`,
        nothing is added. Raises InvalidRequest if the turn has more than `most` tools after tools were added.
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
                f"With the tools of BRIDGE_TOOLSETS the request has {len(tools)} tools; the limit is {most}.",
                param="tools",
            )
        return replace(turn, tools=tuple(tools.values()))


def read_toolsets(folder: Path | None, most: int, limits: SchemaLimits = USUAL_LIMITS) -> Toolsets:
    """Reads the tools of all files in the folder (BRIDGE_TOOLSETS). Returns no tools if `folder` is None.

    Each file may have at most `most` tools. `limits` says how large the schema of a tool may be. Raises a SettingsError
    that names the first wrong file. Files that are missing are not an error.
    """
    if folder is None:
        return Toolsets()
    for_all = folder / "all.json"
    return Toolsets(
        for_all=_read_tools(for_all, most, limits) if for_all.exists() else (),
        for_agents={file.stem: _read_tools(file, most, limits) for file in sorted((folder / "agents").glob("*.json"))},
        for_keys={file.stem: _read_tools(file, most, limits) for file in sorted((folder / "keys").glob("*.json"))},
    )


def _read_tools(file: Path, most: int, limits: SchemaLimits) -> Specs:
    """Reads the tools of one file: an array, or an object with the array in its field `tools`.

    Raises SettingsError if the file or one of its tools is invalid. A stub is made of each tool to check the tool, and
    thrown away: with an invalid tool, every request to which the tool is added would fail.
    """
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
        tools = value.get("tools") if isinstance(value, dict) else value
        specs = parse_tools({"tools": tools}, most)
        for index, spec in enumerate(specs):
            make_stub(spec, SchemaForm(), where=f"tools[{index}].function", limits=limits)
    except (OSError, ValueError) as fault:
        raise SettingsError(f"BRIDGE_TOOLSETS: {file} can't be read as JSON: {fault}") from fault
    except InvalidRequest as fault:
        raise SettingsError(f"BRIDGE_TOOLSETS: {file}: {fault.message}") from fault
    return specs
