from __future__ import annotations

import pytest

from bridge.interception.choose import possible_methods
from bridge.letta.gateway import Agent, Tool
from bridge.sync.ownership import stub_tags
from bridge.sync.plan import OUR_RULES, ToolsetChange, plan_toolset
from bridge.turn import Binding, JsonObject, Stub, ToolChoice
from tests.fakes import FEATURES
from tests.toolsets import GATE, gates, stub, tool_of

READ, WRITE = stub("read_file"), stub("write_file")
MINE = Tool("tool-mine", "mine")
SAY = Tool("tool-say", "send_message", "letta_core")
EXIT: JsonObject = {"type": "exit_loop", "tool_name": "send_message", "prompt_template": "x"}
LIMIT: JsonObject = {"type": "max_count_per_step", "tool_name": "mine", "max_count_limit": 3}


def bound(one: Stub) -> Binding:
    return Binding(one, f"tool-{one.name}")


def gate(name: str, **more: object) -> JsonObject:
    return {"type": GATE, "tool_name": name, **more}


def agent(*tools: Tool, rules: list[JsonObject] | None = None) -> Agent:
    return Agent("agent-1", "Ada", "memgpt_agent", tools, tuple(rules or ()))


def plan(found: Agent, *stubs: Stub, detached_names: tuple[str, ...] = ()) -> ToolsetChange | None:
    bindings = [bound(one) for one in stubs]
    return plan_toolset(found, bindings, gates(bindings), detached_names)


def test_an_agent_without_client_tools_needs_no_change() -> None:
    assert plan(agent(SAY, MINE, rules=[EXIT, LIMIT])) is None


def test_the_agents_own_tools_come_first_in_their_order_and_ours_after_them() -> None:
    change = plan(agent(SAY, MINE, rules=[LIMIT, EXIT]), READ, WRITE)
    assert change == ToolsetChange(
        ("tool-say", "tool-mine", "tool-read_file", "tool-write_file"),
        (LIMIT, EXIT, gate("read_file"), gate("write_file")),
    )


def test_a_complete_toolset_needs_no_change_in_any_order() -> None:
    rules = [gate("write_file", prompt_template=None), EXIT, gate("read_file", prompt_template=None)]
    assert plan(agent(tool_of(WRITE), SAY, tool_of(READ), rules=rules), READ, WRITE) is None


def test_rules_of_ours_leave_with_their_tools() -> None:
    found = agent(SAY, tool_of(READ), MINE, tool_of(WRITE), rules=[gate("read_file"), EXIT, gate("write_file"), LIMIT])
    assert plan(found, READ) == ToolsetChange(
        ("tool-say", "tool-mine", "tool-read_file"), (EXIT, LIMIT, gate("read_file"))
    )
    assert plan(found) == ToolsetChange(("tool-say", "tool-mine"), (EXIT, LIMIT))


def test_a_changed_rule_is_replaced_while_the_tools_stay() -> None:
    found = agent(tool_of(READ), rules=[{"type": "run_first", "tool_name": "read_file"}, gate("read_file")])
    assert plan(found, READ) == ToolsetChange(("tool-read_file",), (gate("read_file"),))
    assert plan(agent(tool_of(READ)), READ) == ToolsetChange(("tool-read_file",), (gate("read_file"),))
    assert plan(agent(tool_of(READ), rules=[gate("read_file")] * 2), READ) is not None


def test_a_rule_left_behind_by_a_detached_stub_is_removed() -> None:
    found = agent(SAY, rules=[EXIT, gate("read_file")])
    assert plan(found, detached_names=("read_file",)) == ToolsetChange(("tool-say",), (EXIT,))


def test_a_rule_for_a_tool_that_never_was_ours_here_stays() -> None:
    assert plan(agent(SAY, rules=[EXIT, gate("read_file")])) is None


def test_a_rule_of_another_type_stays_when_its_tool_leaves() -> None:
    odd: JsonObject = {"type": "max_count_per_step", "tool_name": "read_file", "max_count_limit": 2}
    assert plan(agent(tool_of(READ), rules=[odd, gate("read_file")])) == ToolsetChange((), (odd,))


def test_a_rule_for_the_agents_own_tool_stays_even_if_a_stub_had_that_name() -> None:
    own = Tool("tool-own", "read_file")
    assert plan(agent(own, rules=[gate("read_file")]), detached_names=("read_file",)) is None


def test_a_stub_attached_twice_by_two_ids_is_attached_once() -> None:
    twin = Tool("tool-twin", "read_file_2", "custom", tuple(stub_tags(READ)), READ.json_schema)
    change = plan(agent(tool_of(READ), twin, rules=[gate("read_file"), gate("read_file_2")]), READ)
    assert change == ToolsetChange(("tool-read_file",), (gate("read_file"),))


@pytest.mark.parametrize("loop", ["old", "v2", "v3"])
@pytest.mark.parametrize("mode", ["auto", "required", "function"])
def test_every_rule_of_a_method_is_recognised_as_ours(loop: str, mode: str) -> None:
    for method in possible_methods(FEATURES, loop).values():  # type: ignore[arg-type]
        made = method.tool_rules([bound(READ)], ToolChoice(mode, "read_file"))  # type: ignore[arg-type]
        assert {rule["type"] for rule in made} <= OUR_RULES
