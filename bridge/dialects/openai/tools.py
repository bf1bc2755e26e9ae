"""Reads tools: those of a chat request, and what a function is in all of OpenAI's APIs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from bridge.dialects.openai.known_tools import KnownTools
from bridge.errors import InvalidRequest
from bridge.turn import JsonObject, ToolChoice, ToolSpec

Parsed = TypeVar("Parsed")


def parse_tools(body: JsonObject, most: int, known: KnownTools | None = None) -> tuple[ToolSpec, ...]:
    """Returns the tools of a request. Only function tools are valid: OpenAI itself runs the tools of other types.
    `known` are the tools of earlier requests.
    """
    for old in ("functions", "function_call"):
        if body.get(old):
            raise InvalidRequest(f"`{old}` is not supported; use `tools` and `tool_choice`.", param=old)
    tools = body.get("tools")
    if tools is None:
        return ()
    if not isinstance(tools, list):
        raise InvalidRequest("`tools` must be an array.", param="tools")
    if len(tools) > most:
        raise InvalidRequest(
            f"`tools` has {len(tools)} tools; the limit is {most}.", param="tools", code="too_many_tools"
        )
    specs = known.specs(tools) if known else None
    if specs is None:
        specs = _parse_list(tools)
        if known:
            known.add(tools, specs)
    return specs


def _parse_list(tools: list[Any]) -> tuple[ToolSpec, ...]:
    specs = tuple(refused_by_name(_parse_tool, item, f"tools[{index}]") for index, item in enumerate(tools))
    seen: set[str] = set()
    for index, spec in enumerate(specs):
        if spec.name in seen:
            raise InvalidRequest(
                f"`tools[{index}].function.name` is {spec.name!r:.160}, which an earlier tool has already. Rename"
                " one of them.",
                param=f"tools[{index}].function.name",
            )
        seen.add(spec.name)
    return specs


def parse_tool_choice(body: JsonObject, tools: tuple[ToolSpec, ...]) -> ToolChoice:
    """Returns which tools the model may or must call, as the field `tool_choice` says; "auto" if it is missing."""
    value = body.get("tool_choice")
    if value is None or value == "auto":
        return ToolChoice()
    if value == "none":
        return ToolChoice("none")
    if value == "required":
        if not tools:
            raise InvalidRequest('`tool_choice` is "required", but there are no `tools`.', param="tool_choice")
        return ToolChoice("required")
    function = value.get("function") if isinstance(value, dict) and value.get("type") == "function" else None
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(name, str):
        raise InvalidRequest(
            '`tool_choice` must be "auto", "none", "required" or {"type": "function", "function": {"name": ...}}.',
            param="tool_choice",
        )
    if all(spec.name != name for spec in tools):
        raise InvalidRequest(f"`tool_choice` names {name!r:.160}, which is not among `tools`.", param="tool_choice")
    return ToolChoice("function", name)


def refused_by_name(parse: Callable[[Any, str], Parsed], value: Any, where: str) -> Parsed:
    """Returns one parsed tool of a request. A refusal has the tool's name, if the tool has a name at all."""
    try:
        return parse(value, where)
    except InvalidRequest as fault:
        name = _find_name(value)
        raise fault.about_tool(name) if name else fault from None


def _find_name(value: Any) -> str:
    """Returns the name of a malformed tool, "" if there is none. OpenAI's Responses API has it beside the type."""
    function = value.get("function") if isinstance(value, dict) else None
    for place in (function, value):
        name = place.get("name") if isinstance(place, dict) else None
        if isinstance(name, str) and name:
            return name
    return ""


def _parse_tool(value: Any, where: str) -> ToolSpec:
    """Returns one function tool of a request. The parameters' schema is not checked here."""
    if not isinstance(value, dict):
        raise InvalidRequest(f"`{where}` must be an object.", param=where)
    if value.get("type") != "function":
        raise InvalidRequest(
            f'`{where}.type` is {value.get("type")!r:.60}; only tools of type "function" can be offered to an agent.',
            param=f"{where}.type",
        )
    function = value.get("function")
    if not isinstance(function, dict):
        flat = " These are beside `type` here, as in the Responses API." if "name" in value else ""
        raise InvalidRequest(
            f"`{where}.function` must be an object with `name`, `description` and `parameters`.{flat}",
            param=f"{where}.function",
        )
    return parse_function(function, f"{where}.function")


def parse_function(function: JsonObject, where: str) -> ToolSpec:
    """Returns the tool that a function's name, description and parameters describe. The schema is not checked here."""
    name, description, parameters = function.get("name"), function.get("description"), function.get("parameters")
    if not isinstance(name, str) or not name:
        raise InvalidRequest(f"`{where}.name` must be a string: each tool needs a name.", param=f"{where}.name")
    if description is not None and not isinstance(description, str):
        raise InvalidRequest(f"`{where}.description` must be a string.", param=f"{where}.description")
    if parameters is not None and not isinstance(parameters, dict):
        raise InvalidRequest(f"`{where}.parameters` must be an object.", param=f"{where}.parameters")
    return ToolSpec(name, description or "", parameters, function.get("strict") is True, place=f"{where}.parameters")
