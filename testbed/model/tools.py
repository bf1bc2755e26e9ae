"""The tools of a request and what it demands of them. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal

Demand = Literal["none", "auto", "required"]


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool as the model sees it."""

    name: str
    description: str | None
    parameters: Mapping[str, Any]

    @property
    def properties(self) -> Mapping[str, Any]:
        found = self.parameters.get("properties")
        return found if isinstance(found, Mapping) else {}


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """All tools of a request, and whether one of them must be called, and which."""

    tools: tuple[OfferedTool, ...]
    demand: Demand
    named: str | None
    parallel: bool

    def find(self, name: str) -> OfferedTool | None:
        """The tool of that name; `*` in it stands for anything, and the first that fits is taken.

        Where the name is another tool's on the server, the bridge gives a digest to it: that one is meant, too.
        """
        if "*" in name:
            return next((tool for tool in self.tools if fnmatchcase(tool.name, name)), None)
        exact = next((tool for tool in self.tools if tool.name == name), None)
        digested = re.compile(rf"{re.escape(name)}_[0-9a-f]{{6,12}}")
        return exact or next((tool for tool in self.tools if digested.fullmatch(tool.name)), None)


def offer_of(body: Mapping[str, Any]) -> ToolOffer:
    """What a request, already found legal, offers and demands."""
    tools = tuple(_tool(entry.get("function") or {}) for entry in body.get("tools") or ())
    choice = body.get("tool_choice") or "auto"
    named: str | None = None
    demand: Demand = "auto" if tools else "none"
    if isinstance(choice, Mapping):
        named = (choice.get("function") or {}).get("name")
        demand = "required" if named else demand
    elif choice == "required":
        demand = "required"
    elif choice == "none":
        demand = "none"
    return ToolOffer(tools, demand, named, body.get("parallel_tool_calls") is not False)


def _tool(function: Mapping[str, Any]) -> OfferedTool:
    return OfferedTool(str(function.get("name")), function.get("description"), function.get("parameters") or {})
