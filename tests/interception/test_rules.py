"""The rules that go with the stubs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from jinja2 import Template

from bridge.interception.choose import possible_methods
from bridge.letta.capabilities import ServerFeatures, read_features
from bridge.turn import Binding, JsonObject, ToolChoice
from tests.fakes import FEATURES
from tests.toolsets import stub

BINDINGS = [Binding(stub("read_file"), "tool-1"), Binding(stub("write_file"), "tool-2")]
UNGATED = replace(FEATURES, version=(0, 8, 17), approvals=False, tool_returns=False)


def rules(features: ServerFeatures, method: str = "rewrite", choice: ToolChoice = ToolChoice()) -> list[JsonObject]:  # noqa: B008
    return possible_methods(features, "v2")[method].rules(BINDINGS, choice)  # type: ignore[index]


@pytest.mark.parametrize("method", ["rewrite", "message"])
def test_a_rule_without_a_prompt_where_letta_has_none(method: str) -> None:
    assert rules(UNGATED, method) == [
        {"type": "exit_loop", "tool_name": "read_file"},
        {"type": "exit_loop", "tool_name": "write_file"},
    ]


@pytest.mark.parametrize("method", ["rewrite", "message"])
def test_exit_rules_tell_the_model_nothing(method: str) -> None:
    for made in rules(replace(UNGATED, rule_prompts=True), method):
        assert made["prompt_template"]
        assert Template(made["prompt_template"]).render(**made) == ""


def test_gates_have_no_prompt_to_begin_with() -> None:
    assert {tuple(one) for one in rules(replace(FEATURES, rule_prompts=True))} == {("type", "tool_name")}


@pytest.mark.parametrize("known", [False, True])
def test_whether_a_server_knows_of_prompts_is_read_from_its_openapi(known: bool) -> None:
    fields = {"prompt_template": {}} if known else {}
    openapi = {"components": {"schemas": {"TerminalToolRule": {"properties": {"tool_name": {}, **fields}}}}}
    assert read_features("0.8.17", openapi).rule_prompts == known


def test_a_named_tool_is_forced_beside_its_stop() -> None:
    made = rules(FEATURES, choice=ToolChoice("function", "write_file"))
    assert [one for one in made if one["type"] == "run_first"] == [{"type": "run_first", "tool_name": "write_file"}]
    assert len(made) == 3
