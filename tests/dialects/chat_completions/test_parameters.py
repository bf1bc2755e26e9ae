"""Fields that change the reply are done, asked for, or refused; the rest is let be."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.dialects.chat_completions.parameters import check_parameters, wanted_format
from bridge.errors import InvalidRequest


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("n", 2),
        ("n", 0),
        ("logprobs", True),
        ("top_logprobs", 3),
        ("modalities", ["text", "audio"]),
        ("audio", {"voice": "alloy"}),
        ("web_search_options", {}),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(InvalidRequest) as refused:
        check_parameters({field: value})
    assert refused.value.param == field


@pytest.mark.parametrize(
    "body",
    [
        {"n": 1, "logprobs": False, "modalities": ["text"], "audio": None},
        {"temperature": 0, "seed": 7, "stop": ["x"], "max_tokens": 5, "user": "u", "cache_control": {"a": 1}},
        {},
    ],
)
def test_the_rest_is_let_be(body: dict[str, Any]) -> None:
    check_parameters(body)


@pytest.mark.parametrize("value", [None, {"type": "text"}])
def test_without_a_format_the_agent_is_told_nothing(value: Any) -> None:
    assert wanted_format({"response_format": value}) == ""


def test_a_schema_is_told_to_the_agent() -> None:
    schema = {"type": "object", "properties": {"größe": {"type": "integer"}}}
    told = wanted_format({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}})
    assert '{"type": "object", "properties": {"größe": {"type": "integer"}}}' in told
    assert "JSON" in wanted_format({"response_format": {"type": "json_object"}})


@pytest.mark.parametrize(
    "value", ["json", {"type": "xml"}, {"type": "json_schema"}, {"type": "json_schema", "json_schema": {}}]
)
def test_a_format_that_is_none_is_refused(value: Any) -> None:
    with pytest.raises(InvalidRequest) as refused:
        wanted_format({"response_format": value})
    assert refused.value.param == "response_format"
