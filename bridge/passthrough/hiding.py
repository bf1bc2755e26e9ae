"""Hides the bridge's stubs and helper agents in the answers of Letta's API. Pure functions over Letta's JSON.

No value is changed: an answer in which something is hidden is a copy, any other is returned as the same object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from bridge.catalogue.access import AccessNames
from bridge.letta.gateway import HELPER_PREFIX, Tool
from bridge.letta.rows import text_of, tool_from_row
from bridge.sync.ownership import client_name_of, is_ours
from bridge.turn import JsonObject


@dataclass(frozen=True, slots=True)
class OurTools:
    """The stubs on a server: the client's name of each by its name on the server, and their ids. `access`: the names of
    the tools by which a certain agent looks for others; None if it never had any, or the agent is not known.
    """

    client_names: Mapping[str, str]
    ids: frozenset[str]
    access: AccessNames | None = None

    @classmethod
    def of(cls, tools: Iterable[Tool]) -> Self:
        ours = [tool for tool in tools if is_ours(tool)]
        return cls({tool.name: client_name_of(tool) for tool in ours}, frozenset(tool.id for tool in ours))

    def has_row(self, row: JsonObject) -> bool:
        """Whether a tool in Letta's JSON is a stub. An agent file has other ids for its tools than the server."""
        return row.get("id") in self.ids or (bool(row.get("tags")) and is_ours(tool_from_row(row)))

    def and_those_in(self, rows: Any) -> Self:
        """Returns these tools together with the stubs among `rows`, which is a list of tools or any other value."""
        found = [row for row in rows if isinstance(row, dict) and self.has_row(row)] if isinstance(rows, list) else []
        tools = list(map(tool_from_row, found))
        names = {tool.name: client_name_of(tool) for tool in tools if tool.name not in self.client_names}
        ids = frozenset(tool.id for tool in tools if tool.id)
        return (
            self
            if not names and ids <= self.ids
            else type(self)({**names, **self.client_names}, self.ids | ids, self.access)
        )


def without_our_tools(value: Any, ours: OurTools) -> Any:
    """Returns an answer about agents or tools without the stubs: an agent, a tool, an agent file (an export), an
    agent's context, or a list of agents, of tools or of found tools. None for an answer that is a stub itself. A list
    of agents also loses the bridge's helper agents. Kept are the messages of an agent file, and the bridge's entry in
    an agent's metadata, which a program would remove that writes the metadata back without it.
    """
    if isinstance(value, list):
        return _without_rows(value, ours)
    if not isinstance(value, dict):
        return value
    return None if ours.has_row(value) else _without_members(value, ours)


def _without_rows(rows: list[Any], ours: OurTools) -> list[Any]:
    shown = [without_our_tools(row, ours) for row in rows if not _is_hidden_row(row, ours)]
    return rows if _are_same(shown, rows) else shown


def _is_hidden_row(row: Any, ours: OurTools) -> bool:
    if not isinstance(row, dict):
        return False
    found = row.get("tool")
    is_helper = "agent_type" in row and text_of(row.get("name")).startswith(HELPER_PREFIX)
    return is_helper or ours.has_row(row) or (isinstance(found, dict) and ours.has_row(found))


def _without_members(row: JsonObject, ours: OurTools) -> JsonObject:
    """Returns an agent, an agent file or an agent's context without stubs."""
    all_ours = ours.and_those_in(row.get("tools"))
    changed = {}
    for member, names_stub in _NAME_STUBS.items():
        if isinstance(row.get(member), list):
            shown = [item for item in row[member] if not names_stub(item, all_ours)]
            if len(shown) < len(row[member]):
                changed[member] = shown
    if isinstance(row.get("agents"), list):
        agents = _without_rows(row["agents"], all_ours)
        if agents is not row["agents"]:
            changed["agents"] = agents
    return {**row, **changed} if changed else row


def _is_stub(tool: Any, ours: OurTools) -> bool:
    return ours.has_row(tool) if isinstance(tool, dict) else _is_stub_name(tool, ours)


def _is_stub_name(name: Any, ours: OurTools) -> bool:
    return isinstance(name, str) and name in ours.client_names


def _is_stub_id(tool_id: Any, ours: OurTools) -> bool:
    return isinstance(tool_id, str) and tool_id in ours.ids


def _rule_names_stub(rule: Any, ours: OurTools) -> bool:
    """Whether a tool rule is of a stub, or leads to one: such a rule makes no sense without the stub."""
    if not isinstance(rule, dict):
        return False
    children, outputs = rule.get("children"), rule.get("child_output_mapping")
    named = [rule.get("tool_name"), rule.get("default_child")]
    named += children if isinstance(children, list) else []
    named += outputs.values() if isinstance(outputs, dict) else []
    return any(_is_stub_name(name, ours) for name in named)


def _defines_stub(definition: Any, ours: OurTools) -> bool:
    """Whether a definition of a function, as the model sees it, is that of a stub."""
    function = definition.get("function") if isinstance(definition, dict) else None
    return isinstance(function, dict) and _is_stub_name(function.get("name"), ours)


_NAME_STUBS: dict[str, Callable[[Any, OurTools], bool]] = {
    "tools": _is_stub,
    "tool_ids": _is_stub_id,
    "tool_rules": _rule_names_stub,
    "functions_definitions": _defines_stub,
}


def _are_same(items: list[Any], others: list[Any]) -> bool:
    return len(items) == len(others) and all(item is other for item, other in zip(items, others, strict=True))


def with_model_handle(agent: JsonObject) -> JsonObject:
    """Returns an agent with its model's handle as `model`, which Letta has from 0.14 on. Without it, Letta Code sets
    another model.
    """
    config = agent.get("llm_config")
    if text_of(agent.get("model")) or not isinstance(config, dict):
        return agent
    provider, model = text_of(config.get("model_endpoint_type")), text_of(config.get("model"))
    handle = text_of(config.get("handle")) or (f"{provider}/{model}" if provider and model else "")
    return {**agent, "model": handle} if handle else agent


# Fields of an agent with values that its tools get, such as passwords.
_SECRETS = ("secrets", "tool_exec_environment_variables")


def without_secrets(value: Any) -> Any:
    """Returns an agent, or a list of agents, with no values of its secrets and variables."""
    if isinstance(value, list):
        return [without_secrets(row) for row in value]
    if not isinstance(value, dict):
        return value
    kept = [name for name in _SECRETS if value.get(name)]
    return {**value, **{name: [] for name in kept}} if kept else value
