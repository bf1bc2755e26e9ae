from __future__ import annotations

from typing import Any

import pytest

from bridge.dialects.openai.tools import parse_tools
from bridge.errors import InvalidRequest


def refusal(*tools: Any) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        parse_tools({"tools": [*tools]}, 3)
    return caught.value


def function(**fields: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "read", **fields}}


@pytest.mark.parametrize(
    ("tool", "place"),
    [
        ({"type": "custom", "function": {"name": "read"}}, "type"),
        ({"type": "function", "name": "read"}, "function"),
        (function(description=3), "function.description"),
        (function(parameters="none"), "function.parameters"),
    ],
)
def test_a_malformed_tool_is_refused_by_its_place_and_name(tool: Any, place: str) -> None:
    fault = refusal(function(name="write"), tool)
    assert fault.param == f"tools[1].{place}"
    assert fault.message.startswith(f"The tool 'read' is refused: `tools[1].{place}`")


@pytest.mark.parametrize("tool", ["read", {"type": "function"}, function(name=""), function(name=["read"])])
def test_a_malformed_tool_without_a_name_is_refused_by_its_place(tool: Any) -> None:
    assert refusal(tool).message.startswith("`tools[0]")


def test_a_name_that_comes_twice_is_refused_with_the_name() -> None:
    fault = refusal(function(), function())
    assert (fault.param, "'read'" in fault.message) == ("tools[1].function.name", True)


def test_a_refusal_has_only_the_beginning_of_a_long_name_and_no_control_characters() -> None:
    message = refusal(function(name="x\n\u202e" + "y" * 100_000, parameters=[])).message
    assert "x\\n\\u202eyyy" in message
    assert len(message) < 300


def test_too_many_tools_are_refused_with_the_limit() -> None:
    fault = refusal(*[function()] * 4)
    assert (fault.code, fault.message) == ("too_many_tools", "`tools` has 4 tools; the limit is 3.")
