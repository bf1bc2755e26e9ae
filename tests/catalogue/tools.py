"""Makes tools for the tests of the catalogue."""

from __future__ import annotations

from collections.abc import Iterable

from bridge.turn import ToolSpec

SERVICES = ("github", "gitlab", "jira", "linear", "zendesk", "asana", "trello", "slack", "stripe", "notion")
ACTIONS = {
    "create": "Creates a new {thing} in {service}.",
    "list": "Lists the {thing}s in {service}, newest first.",
    "get": "Returns one {thing} of {service} by its id.",
    "update": "Changes the fields of a {thing} in {service}.",
    "delete": "Deletes a {thing} from {service} for good.",
}
THINGS = ("issue", "comment", "project", "user", "label", "attachment", "webhook", "team", "report", "template")


def tool(name: str, description: str = "", *parameters: str, **more: object) -> ToolSpec:
    """Returns a tool whose parameters are texts."""
    properties = {one: {"type": "string"} for one in parameters}
    return ToolSpec(name, description, {"type": "object", "properties": properties, **more})


def named(*names: str) -> tuple[ToolSpec, ...]:
    return tuple(ToolSpec(name) for name in names)


def names_of(specs: Iterable[ToolSpec]) -> list[str]:
    return [spec.name for spec in specs]


def in_style(service: str, action: str, thing: str) -> str:
    """Returns a name in the style of the service: some write it otherwise."""
    if service == "linear":
        return f"linear{action.capitalize()}{thing.capitalize()}"
    if service == "slack":
        return f"mcp__slack__{action}_{thing}"
    return f"{service}-{action}-{thing}" if service == "notion" else f"{service}_{action}_{thing}"


def many_tools(copies: int = 1, size: int = 0) -> tuple[ToolSpec, ...]:
    """Returns 500 tools of ten services, or several times as many. `size`: characters of each one's last parameter."""
    about = ("Any text about it, as the account shows it to others. " * (size // 50 + 1))[:size]
    return tuple(
        tool(
            in_style(service, action, thing) + (f"_{copy}" if copy else ""),
            text.format(thing=thing, service=service),
            f"{thing}_id",
            "limit",
            more={"description": about},
        )
        for copy in range(copies)
        for service in SERVICES
        for action, text in ACTIONS.items()
        for thing in THINGS
    )
