"""Reads the tools of a request to the Responses API, and knows under which names the agent has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from bridge.dialects.openai.tools import parse_function, refused_by_name
from bridge.errors import InvalidRequest
from bridge.turn import JsonObject, ToolChoice, ToolSpec

# The kinds of tools that are offered to the agent. OpenAI itself runs those of all others.
KINDS = ("function", "custom", "namespace")
# The one argument of a tool that takes free text.
FREE_TEXT = "input"
# Between the name of a namespace and the name of a tool in it.
_BETWEEN = "__"


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool of a request. `spec` is what the agent gets; `kind`, `name` and `namespace` are the client's words."""

    spec: ToolSpec
    kind: Literal["function", "custom"]
    name: str
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class OfferedTools:
    """The tools of a request, by the names that the agent calls them by."""

    by_spec_name: Mapping[str, OfferedTool]

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(tool.spec for tool in self.by_spec_name.values())

    def spec_name(self, name: str, namespace: str) -> str:
        """Returns the agent's name of a tool that the client names; a tool need not be offered any more."""
        known = (key for key, tool in self.by_spec_name.items() if (tool.name, tool.namespace) == (name, namespace))
        return next(known, f"{namespace}{_BETWEEN}{name}" if namespace else name)

    def only(self, names: set[str]) -> OfferedTools:
        return OfferedTools({name: tool for name, tool in self.by_spec_name.items() if name in names})


def parse_offered_tools(body: JsonObject, added: Sequence[Any], most: int) -> OfferedTools:
    """Returns the tools in the field `tools`, then those `added` by items of the input. Tools that OpenAI itself runs,
    such as `web_search`, are passed over: clients send them always, and no agent needs them.
    """
    tools = body.get("tools")
    if tools is not None and not isinstance(tools, list):
        raise InvalidRequest("`tools` must be an array.", param="tools")
    given = [(f"tools[{index}]", item) for index, item in enumerate(tools or ())]
    given += [("input", item) for item in added]
    found: dict[str, OfferedTool] = {}
    for where, item in given:
        for tool in _parse_item(item, where):
            _add_tool(found, tool)
    if len(found) > most:
        raise InvalidRequest(
            f"The request has {len(found)} tools; the limit is {most}.", param="tools", code="too_many_tools"
        )
    return OfferedTools(found)


def _add_tool(found: dict[str, OfferedTool], tool: OfferedTool) -> None:
    """Adds a tool. Two tools with names that only together are equal, such as `a__b` and `b` of `a`, get a number."""
    if any((other.name, other.namespace) == (tool.name, tool.namespace) for other in found.values()):
        raise InvalidRequest(
            f"`{tool.spec.place}` is of a tool {tool.name!r:.160}, which an earlier tool is called already.",
            param=tool.spec.place,
        )
    name, number = tool.spec.name, 2
    while name in found:
        name, number = f"{tool.spec.name}_{number}", number + 1
    found[name] = replace(tool, spec=replace(tool.spec, name=name))


def _parse_item(value: Any, where: str) -> Iterator[OfferedTool]:
    """Yields the tools of one item: of a namespace several, of a kind that OpenAI runs itself none."""
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        raise InvalidRequest(f"`{where}` must be an object with `type`.", param=where)
    if value["type"] != "namespace":
        if value["type"] in ("function", "custom"):
            yield refused_by_name(_parse_tool, value, where)
        return
    namespace, inner = value.get("name"), value.get("tools")
    if not isinstance(namespace, str) or not namespace:
        raise InvalidRequest(f"`{where}.name` must be a string.", param=f"{where}.name")
    if not isinstance(inner, list):
        raise InvalidRequest(f"`{where}.tools` must be an array.", param=f"{where}.tools")
    about = value.get("description")
    for index, item in enumerate(inner):
        for tool in _parse_item(item, f"{where}.tools[{index}]"):
            yield _put_into(tool, namespace, about if isinstance(about, str) else "")


def _put_into(tool: OfferedTool, namespace: str, about: str) -> OfferedTool:
    described = "\n\n".join(filter(None, [tool.spec.description, about and f"Part of {namespace}: {about}"]))
    spec = replace(tool.spec, name=f"{namespace}{_BETWEEN}{tool.spec.name}", description=described)
    return replace(tool, spec=spec, namespace=namespace)


def _parse_tool(value: Any, where: str) -> OfferedTool:
    if value["type"] == "function":
        spec = parse_function(value, where)
        return OfferedTool(spec, "function", spec.name)
    spec = parse_function({**value, "parameters": None}, where)
    free_text = {"type": "string", "description": "The whole input, as free text."}
    parameters = {
        "type": "object",
        "properties": {FREE_TEXT: free_text},
        "required": [FREE_TEXT],
        "additionalProperties": False,
    }
    spec = replace(spec, parameters=parameters, description=spec.description + _grammar_in_words(value, where))
    return OfferedTool(spec, "custom", spec.name)


def _grammar_in_words(value: JsonObject, where: str) -> str:
    """Returns what the model has to know of the form of a free text, "" if any text is right."""
    form = value.get("format")
    if form is None or (isinstance(form, dict) and form.get("type") == "text"):
        return ""
    definition = form.get("definition") if isinstance(form, dict) else None
    if not isinstance(form, dict) or not isinstance(definition, str):
        raise InvalidRequest(
            f'`{where}.format` must be {{"type": "text"}} or a grammar with its `definition`.', param=f"{where}.format"
        )
    syntax = "regular expression" if form.get("syntax") == "regex" else "Lark"
    return f"\n\nThe input must fit this grammar ({syntax}):\n{definition}"


def parse_choice(body: JsonObject, tools: OfferedTools) -> tuple[ToolChoice, OfferedTools]:
    """Returns which tools the model may or must call, and those that are left to be offered."""
    value = body.get("tool_choice")
    if value is None or value == "auto":
        return ToolChoice(), tools
    if value == "none":
        return ToolChoice("none"), OfferedTools({})
    if value == "required":
        return _required(tools), tools
    kind = value.get("type") if isinstance(value, dict) else None
    if kind in ("function", "custom"):
        return ToolChoice("function", _named(value, "tool_choice", tools)), tools
    if kind == "allowed_tools":
        return _parse_allowed(value, tools)
    raise InvalidRequest(
        '`tool_choice` must be "auto", "none", "required", {"type": "allowed_tools", ...}, or name a tool of the type'
        ' "function" or "custom": an agent has no other tools of yours.',
        param="tool_choice",
    )


def _required(tools: OfferedTools) -> ToolChoice:
    if not tools.by_spec_name:
        raise InvalidRequest('`tool_choice` is "required", but there are no `tools`.', param="tool_choice")
    return ToolChoice("required")


def _named(value: Any, where: str, tools: OfferedTools) -> str:
    """Returns the agent's name of the tool that `tool_choice` names."""
    name, namespace = value.get("name"), value.get("namespace")
    if not isinstance(name, str):
        raise InvalidRequest(f"`{where}.name` must be a string.", param=f"{where}.name")
    found = tools.spec_name(name, namespace if isinstance(namespace, str) else "")
    if found not in tools.by_spec_name:
        raise InvalidRequest(f"`{where}` names {name!r:.160}, which is not among `tools`.", param=where)
    return found


def _parse_allowed(value: JsonObject, tools: OfferedTools) -> tuple[ToolChoice, OfferedTools]:
    """Reads `allowed_tools`: the others are not offered. Tools that OpenAI runs itself are passed over here, too."""
    mode, named = value.get("mode"), value.get("tools")
    if mode not in ("auto", "required"):
        raise InvalidRequest('`tool_choice.mode` must be "auto" or "required".', param="tool_choice.mode")
    if not isinstance(named, list) or not all(isinstance(item, dict) for item in named):
        raise InvalidRequest("`tool_choice.tools` must be an array of objects.", param="tool_choice.tools")
    ours = [(index, item) for index, item in enumerate(named) if item.get("type") in ("function", "custom")]
    left = tools.only({_named(item, f"tool_choice.tools[{index}]", tools) for index, item in ours})
    return (_required(left) if mode == "required" else ToolChoice()), left
