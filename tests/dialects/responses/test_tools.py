from __future__ import annotations

from collections.abc import ItemsView
from typing import Any

import pytest

from bridge.dialects.responses.tools import OfferedTool, OfferedTools, parse_choice, parse_offered_tools
from bridge.errors import InvalidRequest
from bridge.turn import ToolChoice

READ: Any = {"type": "function", "name": "read", "parameters": {"type": "object", "properties": {}}}
PATCH: Any = {"type": "custom", "name": "patch", "description": "Changes files."}


def offered(*tools: Any, most: int = 512) -> OfferedTools:
    return parse_offered_tools({"tools": [*tools]}, (), most)


def names(tools: OfferedTools) -> list[str]:
    return [spec.name for spec in tools.specs]


def test_a_namespace_is_flattened_and_told_in_the_descriptions() -> None:
    tools = offered({"type": "namespace", "name": "agents", "description": "Helpers.", "tools": [READ, PATCH]})
    assert names(tools) == ["agents__read", "agents__patch"]
    assert [spec.description for spec in tools.specs] == [
        "Part of agents: Helpers.",
        "Changes files.\n\nPart of agents: Helpers.",
    ]
    assert tools.spec_name("read", "agents") == "agents__read"


def test_names_that_become_equal_get_a_number_and_are_told_apart() -> None:
    inside = {"type": "namespace", "name": "a", "tools": [READ]}
    tools = offered({**READ, "name": "a__read"}, inside)
    assert names(tools) == ["a__read", "a__read_2"]
    assert (tools.spec_name("a__read", ""), tools.spec_name("read", "a")) == ("a__read", "a__read_2")


@pytest.mark.parametrize(
    ("form", "words"),
    [
        (None, "Changes files."),
        ({"type": "text"}, "Changes files."),
        (
            {"type": "grammar", "syntax": "lark", "definition": "start: X"},
            "Changes files.\n\nThe input must fit this grammar (Lark):\nstart: X",
        ),
        (
            {"type": "grammar", "syntax": "regex", "definition": "a+"},
            "Changes files.\n\nThe input must fit this grammar (regular expression):\na+",
        ),
    ],
)
def test_a_tool_of_free_text_has_one_argument_and_its_grammar_in_words(form: Any, words: str) -> None:
    (spec,) = offered({**PATCH, "format": form}).specs
    assert spec.description == words
    assert spec.parameters is not None
    assert (list(spec.parameters["properties"]), spec.parameters["required"]) == (["input"], ["input"])


def test_each_tool_counts_also_in_a_namespace() -> None:
    with pytest.raises(InvalidRequest) as refused:
        offered(READ, {"type": "namespace", "name": "a", "tools": [READ, PATCH]}, most=2)
    assert refused.value.code == "too_many_tools"


def test_too_many_tools_are_refused_before_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    monkeypatch.setattr("bridge.dialects.responses.tools.parse_function", lambda value, where: read.append(where))
    many = [{**READ, "name": f"read{number}"} for number in range(100_000)]
    for given in (many, [{"type": "namespace", "name": "a", "tools": many}]):
        with pytest.raises(InvalidRequest, match="100000 tools"):
            offered(*given)
    assert read == []


def test_a_tool_is_found_by_the_words_of_its_client_without_a_search() -> None:
    class Searched(dict[str, OfferedTool]):
        searches = 0

        def items(self) -> ItemsView[str, OfferedTool]:
            self.searches += 1
            return super().items()

    known = Searched(offered({"type": "namespace", "name": "files", "tools": [READ]}).by_spec_name)
    tools = OfferedTools(known)
    assert {tools.spec_name("read", "files") for _ in range(1_000)} == {"files__read"}
    assert known.searches == 1


def test_the_description_of_a_namespace_is_cut_because_each_tool_repeats_it() -> None:
    inside = [{**READ, "name": name} for name in ("read", "write")]
    tools = offered({"type": "namespace", "name": "files", "description": "x" * 1_000_000, "tools": inside})
    assert [len(spec.description) < 1_100 for spec in tools.specs] == [True, True]


def test_a_tool_with_two_long_names_has_a_name_of_its_own_for_the_agent() -> None:
    inside = [{**READ, "name": f"{'b' * 63}{number}"} for number in range(2)]
    tools = offered({"type": "namespace", "name": "a" * 64, "tools": inside})
    assert [len(name) for name in names(tools)] == [128, 128]
    assert [tools.spec_name(tool["name"], "a" * 64) for tool in inside] == names(tools)
    assert offered().spec_name(inside[0]["name"], "a" * 64) == names(tools)[0]


def test_a_namespace_within_a_namespace_is_passed_over() -> None:
    inside = {"type": "namespace", "name": "b", "tools": [READ]}
    assert names(offered({"type": "namespace", "name": "a", "tools": [inside, {"type": "web_search"}, READ]})) == [
        "a__read"
    ]


@pytest.mark.parametrize(
    ("tool", "param"),
    [
        ({"name": "read"}, "tools[0]"),
        ({**READ, "name": ""}, "tools[0].name"),
        ({**READ, "parameters": []}, "tools[0].parameters"),
        ({**PATCH, "format": {"type": "grammar"}}, "tools[0].format"),
        ({"type": "namespace", "tools": []}, "tools[0].name"),
        ({"type": "namespace", "name": "a" * 129, "tools": [READ]}, "tools[0].name"),
        ({"type": "namespace", "name": "a", "tools": [5]}, "tools[0].tools[0]"),
        ({"type": "namespace", "name": "a"}, "tools[0].tools"),
        ({"type": "namespace", "name": "a", "tools": [{**READ, "description": 5}]}, "tools[0].tools[0].description"),
    ],
)
def test_a_malformed_tool_is_refused_with_its_place(tool: Any, param: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        offered(tool)
    assert refused.value.param == param


@pytest.mark.parametrize(
    ("choice", "read", "left"),
    [
        (None, ToolChoice(), ["read", "patch"]),
        ("auto", ToolChoice(), ["read", "patch"]),
        ("none", ToolChoice("none"), []),
        ("required", ToolChoice("required"), ["read", "patch"]),
        ({"type": "function", "name": "read"}, ToolChoice("function", "read"), ["read", "patch"]),
        ({"type": "custom", "name": "patch"}, ToolChoice("function", "patch"), ["read", "patch"]),
        (
            {"type": "allowed_tools", "mode": "required", "tools": [{"type": "custom", "name": "patch"}]},
            ToolChoice("required"),
            ["patch"],
        ),
        ({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "web_search"}]}, ToolChoice(), []),
    ],
)
def test_a_choice_says_what_is_offered_and_what_must_be_called(choice: Any, read: ToolChoice, left: list[str]) -> None:
    found, tools = parse_choice({"tool_choice": choice}, offered(READ, PATCH))
    assert (found, names(tools)) == (read, left)


@pytest.mark.parametrize(
    "choice",
    [
        5,
        "read",
        {"type": "web_search"},
        {"type": "function"},
        {"type": "function", "name": "write"},
        {"type": "allowed_tools", "mode": "none", "tools": []},
        {"type": "allowed_tools", "mode": "auto", "tools": "read"},
        {"type": "allowed_tools", "mode": "required", "tools": []},
    ],
)
def test_a_choice_that_no_agent_can_follow_is_refused(choice: Any) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse_choice({"tool_choice": choice}, offered(READ))
    assert str(refused.value.param).startswith("tool_choice")
