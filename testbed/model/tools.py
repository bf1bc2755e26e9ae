"""The tools of a request, and which of them must be called. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal

Demand = Literal["none", "auto", "required"]


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool as the model is shown it."""

    name: str
    description: str | None
    parameters: Mapping[str, Any]

    @property
    def properties(self) -> Mapping[str, Any]:
        found = self.parameters.get("properties")
        return found if isinstance(found, Mapping) else {}


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """All tools of a request, whether one must be called, and which."""

    tools: tuple[OfferedTool, ...]
    demand: Demand
    named: str | None
    parallel: bool

    def find(self, name: str) -> OfferedTool | None:
        """Returns the tool of that name. `*` in it matches anything, and the first tool that fits is returned.

        A name with a digest behind it fits, too: the bridge adds one if another tool on the server has the name.
        """
        if "*" in name:
            return next((tool for tool in self.tools if fnmatchcase(tool.name, name)), None)
        exact = next((tool for tool in self.tools if tool.name == name), None)
        digested = re.compile(rf"{re.escape(name)}_[0-9a-f]{{6,12}}")
        return exact or next((tool for tool in self.tools if digested.fullmatch(tool.name)), None)


def offer_of(body: Mapping[str, Any]) -> ToolOffer:
    """Reads the tools and the tool_choice of a valid request."""
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
