"""Stubs and helper agents do not appear in Letta's answers about agents and tools."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.letta.gateway import HELPER_PREFIX, Tool
from bridge.passthrough.hiding import OurTools, with_model_handle, without_our_tools
from bridge.sync.ownership import OWNER
from tests.passthrough.answers import ANSWERS, ours_in
from tests.strategies import values
from tests.toolsets import stub, tool_of

READ, CLASH = tool_of(stub("fs.read-file")), tool_of(stub("shell"))
OWN = Tool("tool-own", "own_tool", "custom", ("mine",), {"name": "own_tool"}, "def own_tool():\n    return 1\n")
CORE = Tool("tool-core", "memory_insert", "letta_core")
OURS = OurTools.of([OWN, READ, CORE, CLASH])
NOTHING = OurTools({}, frozenset())


def row_of(tool: Tool) -> dict[str, Any]:
    return {
        "id": tool.id,
        "tool_type": tool.type,
        "name": tool.name,
        "tags": list(tool.tags),
        "source_code": tool.source or None,
        "json_schema": dict(tool.json_schema),
    }


def rule(name: str, type: str = "exit_loop", **fields: Any) -> dict[str, Any]:
    return {"tool_name": name, "type": type, "prompt_template": None, **fields}


def agent_with(*tools: Tool, rules: list[Any] | None = None, **fields: Any) -> dict[str, Any]:
    kept = {"tools": list(map(row_of, tools)), "tool_rules": rules, "tags": [], "message_ids": ["message-1"]}
    return {"id": "agent-1", "name": "Ann", "agent_type": "memgpt_v2_agent", **kept, **fields}


def test_ours_are_the_stubs_among_all_tools_with_their_clients_names() -> None:
    assert OURS.client_names == {READ.name: "fs.read-file", "shell": "shell"}
    assert OURS.ids == {READ.id, CLASH.id}


def test_a_tool_that_took_the_name_of_a_stub_is_not_ours() -> None:
    replaced = replace(READ, source="def other():\n    return 1\n")
    assert OurTools.of([replaced]) == NOTHING
    assert without_our_tools([row_of(replaced)], NOTHING) == [row_of(replaced)]


def test_an_agent_has_no_stubs_and_no_rules_of_stubs() -> None:
    own_rule = rule("own_tool", "max_count_per_step", max_count_limit=2)
    agent = agent_with(OWN, READ, CORE, rules=[rule(READ.name), own_rule, rule(READ.name, "run_first")])
    assert without_our_tools(agent, OURS) == agent_with(OWN, CORE, rules=[own_rule])


@pytest.mark.parametrize(
    "led",
    [
        rule("own_tool", "constrain_child_tools", children=["memory_insert", READ.name], child_arg_nodes=None),
        rule("own_tool", "conditional", default_child=READ.name, child_output_mapping={}),
        rule("own_tool", "conditional", default_child=None, child_output_mapping={"yes": READ.name}),
    ],
)
def test_a_rule_that_leads_to_a_stub_is_hidden(led: dict[str, Any]) -> None:
    agent = agent_with(OWN, rules=[led, rule("own_tool")])
    assert without_our_tools(agent, OURS) == agent_with(OWN, rules=[rule("own_tool")])


def test_a_list_of_agents_has_no_helpers() -> None:
    helper = agent_with(name=HELPER_PREFIX + "0123")
    assert without_our_tools([agent_with(READ), helper, agent_with()], OURS) == [agent_with(), agent_with()]
    assert without_our_tools(helper, OURS) is helper


def test_a_tool_with_a_name_like_a_helper_is_shown() -> None:
    tools = [row_of(replace(OWN, name=HELPER_PREFIX + "0123"))]
    assert without_our_tools(tools, OURS) is tools


def test_a_list_of_tools_has_no_stubs_and_a_stub_alone_is_nothing() -> None:
    assert without_our_tools([row_of(OWN), row_of(READ), row_of(CORE)], OURS) == [row_of(OWN), row_of(CORE)]
    assert without_our_tools(row_of(READ), OURS) is None
    own = row_of(OWN)
    assert without_our_tools(own, OURS) is own


def test_a_stub_is_known_by_its_id_alone_or_by_its_tags_alone() -> None:
    assert without_our_tools([{"id": READ.id, "name": "?"}], OURS) == []
    assert without_our_tools([row_of(READ)], NOTHING) == []


def test_found_tools_have_no_stubs() -> None:
    found = [{"tool": row_of(tool), "combined_score": 0.5} for tool in (READ, OWN)]
    assert without_our_tools(found, OURS) == found[1:]


def test_a_context_defines_no_stubs() -> None:
    definitions = [{"type": "function", "function": {"name": name}} for name in (READ.name, "own_tool")]
    assert without_our_tools({"functions_definitions": definitions}, OURS) == {"functions_definitions": definitions[1:]}


def test_an_agent_file_has_no_stubs_although_its_ids_are_its_own() -> None:
    def file_with(tools: list[Tool], ids: list[str], rules: list[Any]) -> dict[str, Any]:
        agent = {"id": "agent-0", "name": "Ann", "tools": [], "tool_ids": ids, "tool_rules": rules, "messages": [1]}
        return {"agents": [agent], "groups": [], "tools": list(map(row_of, tools)), "metadata": {}}

    tools = [replace(OWN, id="tool-0"), replace(READ, id="tool-1"), replace(CORE, id="tool-2")]
    whole = file_with(tools, ["tool-0", "tool-1", "tool-2"], [rule(READ.name), rule("own_tool")])
    assert without_our_tools(whole, NOTHING) == file_with(
        [tools[0], tools[2]], ["tool-0", "tool-2"], [rule("own_tool")]
    )


def test_an_agent_file_of_older_servers_has_no_stubs() -> None:
    tools = [{key: value for key, value in row_of(tool).items() if key != "id"} for tool in (READ, OWN)]
    file = {"agent_type": "memgpt_agent", "name": "Ann", "tools": tools, "tool_rules": [rule(READ.name)], "version": ""}
    assert without_our_tools(file, NOTHING) == {**file, "tools": tools[1:], "tool_rules": []}


@pytest.mark.parametrize("value", [None, 3, "text", [], {}, ["a"], [None], {"detail": "Not Found"}])
def test_other_answers_are_passed_on(value: Any) -> None:
    assert without_our_tools(value, OURS) is value


# --- answers of real servers --------------------------------------------------------------------------


@pytest.mark.parametrize("answers", ANSWERS.values(), ids=ANSWERS)
@pytest.mark.parametrize("kind", ["agent", "tools", "context", "file"])
def test_a_real_servers_answers_have_no_stubs(kind: str, answers: dict[str, Any]) -> None:
    ours = ours_in(answers)
    before = copy.deepcopy(answers)
    shown = without_our_tools(answers[kind], ours)
    text = json.dumps({**shown, "messages": []} if isinstance(shown, dict) else shown)
    assert answers == before
    assert not [word for word in (*ours.client_names, *ours.ids, f"{OWNER}:") if word in text]
    assert (shown is answers[kind]) is (not ours.ids)


@pytest.mark.parametrize("answers", ANSWERS.values(), ids=ANSWERS)
def test_a_real_servers_answers_keep_the_agents_own_tools(answers: dict[str, Any]) -> None:
    ours = ours_in(answers)
    own = [tool["name"] for tool in answers["agent"]["tools"] if tool["name"] not in ours.client_names]
    shown = without_our_tools(answers["agent"], ours)
    assert [tool["name"] for tool in shown["tools"]] == own
    assert [rule["tool_name"] for rule in shown["tool_rules"]] == own
    file = without_our_tools(answers["file"], ours)
    assert [tool["name"] for tool in file["tools"]] == own
    for agent in file.get("agents", []):
        assert agent["tool_ids"] == [tool["id"] for tool in file["tools"]]


# --- properties ---------------------------------------------------------------------------------------

tools = st.sampled_from([READ, CLASH, OWN, CORE])
ours_or_not = st.sampled_from([READ.name, CLASH.name, OWN.name, CORE.name])
rules = st.builds(
    lambda name, children, mapping: rule(name, children=children, child_output_mapping=mapping),
    ours_or_not,
    st.none() | st.lists(ours_or_not, max_size=2),
    st.none() | st.dictionaries(st.text(max_size=2), ours_or_not, max_size=2),
)
agents = st.builds(
    lambda attached, ruled, name: agent_with(
        *attached, rules=ruled, name=name, tool_ids=[tool.id for tool in attached]
    ),
    st.lists(tools, max_size=4),
    st.none() | st.lists(rules, max_size=3),
    st.sampled_from(["Ann", HELPER_PREFIX + "1"]),
)
files = st.builds(
    lambda listed, made: {"agents": listed, "tools": [row_of(tool) for tool in made]},
    st.lists(agents, max_size=2),
    st.lists(tools, max_size=4),
)
answers = st.one_of(agents, files, tools.map(row_of), st.lists(agents, max_size=3), st.lists(tools.map(row_of)))


@given(answers)
def test_no_stub_and_no_helper_is_left_and_the_answer_itself_is_not_changed(answer: Any) -> None:
    before = copy.deepcopy(answer)
    shown = json.dumps(without_our_tools(answer, OURS))
    assert answer == before
    assert not [one for one in (READ, CLASH) if f'"{one.name}"' in shown or f'"{one.id}"' in shown]
    assert OWNER not in shown or (isinstance(answer, dict) and answer.get("name") == HELPER_PREFIX + "1")


@given(answers)
def test_what_has_nothing_of_ours_left_is_returned_as_it_is(answer: Any) -> None:
    shown = without_our_tools(answer, OURS)
    assert without_our_tools(shown, OURS) is shown


@given(values, answers)
def test_json_of_any_form_is_taken(value: Any, answer: Any) -> None:
    assert without_our_tools(value, OURS) is value
    assert without_our_tools([value, {"tools": value, "tool_rules": [value], "agents": value}], OURS)


# --- the model's handle -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "handle"),
    [
        ({"model": "gpt-4o-mini", "model_endpoint_type": "openai"}, "openai/gpt-4o-mini"),
        ({"model": "gpt-4o-mini", "model_endpoint_type": "openai", "handle": None}, "openai/gpt-4o-mini"),
        ({"model": "gpt-4o-mini", "model_endpoint_type": "openai", "handle": "proxy/small"}, "proxy/small"),
    ],
)
def test_an_agent_without_a_handle_gets_the_one_of_its_configuration(config: dict[str, Any], handle: str) -> None:
    assert with_model_handle({"id": "agent-1", "llm_config": config})["model"] == handle
    assert with_model_handle({"model": None, "llm_config": config})["model"] == handle


@pytest.mark.parametrize("config", [None, "x", {}, {"model": "gpt-4o-mini"}, {"model": 3, "handle": 4}])
def test_an_agent_without_a_known_model_is_returned_as_it_is(config: Any) -> None:
    agent = {"id": "agent-1", "llm_config": config}
    assert with_model_handle(agent) is agent


def test_an_agent_with_a_handle_is_returned_as_it_is() -> None:
    agent = {"model": "a/b", "llm_config": {"model": "c", "model_endpoint_type": "d"}}
    assert with_model_handle(agent) is agent
