"""Reads the tools of a request to the Responses API, and knows under which names the agent has them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from bridge.dialects.openai.tools import parse_function, refused_by_name
from bridge.errors import InvalidRequest
from bridge.turn import JsonObject, ToolChoice, ToolSpec

# The kinds of tools that are offered to the agent. OpenAI itself runs those of all others.
KINDS = ("function", "custom", "namespace")
_CALLED = ("function", "custom")
# In characters: a tool's name, and how much of the description of its namespace each tool has.
LONGEST_NAME = 128
LONGEST_ABOUT = 1_000
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


@dataclass(frozen=True)
class OfferedTools:
    """The tools of a request, by the names that the agent calls them by."""

    by_spec_name: Mapping[str, OfferedTool]

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(tool.spec for tool in self.by_spec_name.values())

    def spec_name(self, name: str, namespace: str) -> str:
        """Returns the agent's name of a tool that the client names; a tool need not be offered any more."""
        known = self._spec_names.get((name, namespace))
        return known or (_name_in(namespace, name) if namespace else name)

    @cached_property
    def _spec_names(self) -> Mapping[tuple[str, str], str]:
        """The agent's names, by the client's words: a transcript may have many calls."""
        return {(tool.name, tool.namespace): name for name, tool in self.by_spec_name.items()}

    def only(self, names: set[str]) -> OfferedTools:
        return OfferedTools({name: tool for name, tool in self.by_spec_name.items() if name in names})


def parse_offered_tools(body: JsonObject, added: Sequence[tuple[str, Any]], most: int) -> OfferedTools:
    """Returns the tools in the field `tools`, then those `added` by items of the input, which come with their places.
    Tools that OpenAI itself runs, such as `web_search`, are passed over: clients send them always, and no agent needs
    them.
    """
    tools = body.get("tools")
    if tools is not None and not isinstance(tools, list):
        raise InvalidRequest("`tools` must be an array.", param="tools")
    given = [(f"tools[{index}]", item) for index, item in enumerate(tools or ())]
    sent = [tool for where, item in [*given, *added] for tool in _tools_in(item, where)]
    if len(sent) > most:
        raise InvalidRequest(
            f"The request has {len(sent)} tools; the limit is {most}.", param="tools", code="too_many_tools"
        )
    return OfferedTools({tool.spec.name: tool for tool in _with_own_names(map(_parse_sent, sent))})


@dataclass(frozen=True, slots=True)
class _SentTool:
    """A tool as the client sent it, and its place in the request. `about` describes its namespace."""

    value: JsonObject
    where: str
    namespace: str = ""
    about: str = ""


def _tools_in(value: Any, where: str) -> Iterator[_SentTool]:
    """Yields the tools of one item: of a namespace several, of a kind that OpenAI runs itself none."""
    kind = _kind_of(value, where)
    if kind in _CALLED:
        yield _SentTool(value, where)
    if kind != "namespace":
        return
    name, inner, about = value.get("name"), value.get("tools"), value.get("description")
    if not isinstance(name, str) or not 1 <= len(name) <= LONGEST_NAME:
        raise InvalidRequest(
            f"`{where}.name` must be a string of 1 to {LONGEST_NAME} characters.", param=f"{where}.name"
        )
    if not isinstance(inner, list):
        raise InvalidRequest(f"`{where}.tools` must be an array.", param=f"{where}.tools")
    for index, item in enumerate(inner):
        place = f"{where}.tools[{index}]"
        if _kind_of(item, place) in _CALLED:
            yield _SentTool(item, place, name, about if isinstance(about, str) else "")


def _kind_of(value: Any, where: str) -> str:
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        raise InvalidRequest(f"`{where}` must be an object with `type`.", param=where)
    kind: str = value["type"]
    return kind


def _parse_sent(sent: _SentTool) -> OfferedTool:
    tool = refused_by_name(_parse_tool, sent.value, sent.where)
    if not sent.namespace:
        return tool
    spec, about = tool.spec, sent.about
    if len(about) > LONGEST_ABOUT:  # each tool of the namespace repeats it
        about = f"{about[:LONGEST_ABOUT]} [...]"
    described = "\n\n".join(filter(None, [spec.description, about and f"Part of {sent.namespace}: {about}"]))
    spec = replace(spec, name=_name_in(sent.namespace, spec.name), description=described)
    return replace(tool, spec=spec, namespace=sent.namespace)


def _name_in(namespace: str, name: str) -> str:
    """Returns the agent's name of a tool in a namespace. Of a very long one, the end is a digest of the whole."""
    whole = f"{namespace}{_BETWEEN}{name}"
    if len(whole) <= LONGEST_NAME:
        return whole
    digest = hashlib.sha256(whole.encode(errors="replace")).hexdigest()[:8]
    return f"{whole[: LONGEST_NAME - len(digest) - 1]}_{digest}"


def _with_own_names(tools: Iterable[OfferedTool]) -> Iterator[OfferedTool]:
    """Yields the tools, each with a name of its own for the agent. Two tools with names that only together are equal,
    such as `a__b` and `b` of `a`, get a number. Refuses two that the client calls the same.
    """
    known: set[tuple[str, str]] = set()
    taken: set[str] = set()
    for tool in tools:
        if (tool.name, tool.namespace) in known:
            raise InvalidRequest(
                f"`{tool.spec.place}` is of a tool {tool.name!r:.160}, which an earlier tool is called already.",
                param=tool.spec.place,
            )
        known.add((tool.name, tool.namespace))
        name, number = tool.spec.name, 2
        while name in taken:
            name, number = f"{tool.spec.name}_{number}", number + 1
        taken.add(name)
        yield replace(tool, spec=replace(tool.spec, name=name))


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
