"""The rules that an agent gets with the stubs."""

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
    return possible_methods(features, "v2")[method].tool_rules(BINDINGS, choice)  # type: ignore[index]


@pytest.mark.parametrize("method", ["rewrite", "message"])
def test_exit_rules_have_no_prompt_where_letta_does_not_know_it(method: str) -> None:
    assert rules(UNGATED, method) == [
        {"type": "exit_loop", "tool_name": "read_file"},
        {"type": "exit_loop", "tool_name": "write_file"},
    ]


@pytest.mark.parametrize("method", ["rewrite", "message"])
def test_exit_rules_show_nothing_to_the_model(method: str) -> None:
    for found in rules(replace(UNGATED, rule_prompts=True), method):
        assert found["prompt_template"]
        assert Template(found["prompt_template"]).render(**found) == ""


def test_rules_for_approvals_have_no_prompt() -> None:
    assert {tuple(one) for one in rules(replace(FEATURES, rule_prompts=True))} == {("type", "tool_name")}


@pytest.mark.parametrize("known", [False, True])
def test_the_openapi_document_says_whether_rules_have_prompts(known: bool) -> None:
    fields = {"prompt_template": {}} if known else {}
    openapi = {"components": {"schemas": {"TerminalToolRule": {"properties": {"tool_name": {}, **fields}}}}}
    assert read_features("0.8.17", openapi).rule_prompts == known


def test_a_named_tool_has_a_rule_that_forces_it() -> None:
    found = rules(FEATURES, choice=ToolChoice("function", "write_file"))
    assert [one for one in found if one["type"] == "run_first"] == [{"type": "run_first", "tool_name": "write_file"}]
    assert len(found) == 3
