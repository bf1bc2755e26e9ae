"""Fields that change the reply are done, asked for, or refused; all others are ignored."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.dialects.chat_completions.parameters import check_parameters, parse_reply_format
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
def test_a_field_that_cannot_be_done_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(InvalidRequest) as refused:
        check_parameters({field: value})
    assert refused.value.param == field


NUMBERS = ["temperature", "top_p", "frequency_penalty", "presence_penalty"]
WHOLE_NUMBERS = ["max_tokens", "max_completion_tokens", "seed"]
STRINGS = ["user", "reasoning_effort", "verbosity", "service_tier"]


@pytest.mark.parametrize(
    ("fields", "wrong", "wanted"),
    [
        (NUMBERS, ["hot", "0.7", True, [], {}], "a number"),
        (WHOLE_NUMBERS, ["many", 0.5, float("inf"), False, [1]], "a whole number"),
        (["stop"], [1, [1], ["x", None], {}, True], "a string or an array of strings"),
        (STRINGS, [7, ["x"], {}, False], "a string"),
    ],
    ids=["numbers", "whole numbers", "stop", "strings"],
)
def test_a_field_of_the_wrong_type_is_refused_by_name(fields: list[str], wrong: list[Any], wanted: str) -> None:
    for field in fields:
        for value in wrong:
            with pytest.raises(InvalidRequest) as refused:
                check_parameters({field: value})
            assert (refused.value.param, refused.value.message) == (field, f"`{field}` must be {wanted}.")


def test_fields_of_the_right_type_are_accepted_with_any_value() -> None:
    for fields, values in (
        (NUMBERS, [None, 0, -3, 0.7, 1e308, 10**30]),
        (WHOLE_NUMBERS, [None, 0, -1, 4096.0, 10**30]),
        (["stop"], [None, "", "END", [], ["a"] * 9]),
        (STRINGS, [None, "", "unheard of"]),
    ):
        for field in fields:
            for value in values:
                check_parameters({field: value})


@pytest.mark.parametrize(
    "body",
    [
        {"n": 1, "logprobs": False, "modalities": ["text"], "audio": None},
        {"temperature": 0, "seed": 7, "stop": ["x"], "max_tokens": 5, "user": "u", "cache_control": {"a": 1}},
        {},
    ],
)
def test_other_fields_and_values_are_accepted(body: dict[str, Any]) -> None:
    check_parameters(body)


@pytest.mark.parametrize("value", [None, {"type": "text"}])
def test_without_a_format_the_reply_may_have_any_form(value: Any) -> None:
    assert parse_reply_format({"response_format": value}) is None


def test_the_agent_gets_the_schema_in_words() -> None:
    schema = {"type": "object", "properties": {"größe": {"type": "integer"}}}
    form = parse_reply_format(
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}}
    )
    assert form is not None
    assert form.schema == '{"type": "object", "properties": {"größe": {"type": "integer"}}}'
    assert form.schema in form.instruction
    assert form.field == "response_format.json_schema.schema"


def test_the_agent_is_asked_for_an_object() -> None:
    form = parse_reply_format({"response_format": {"type": "json_object"}})
    assert form is not None
    assert "JSON object" in form.instruction
    assert form.schema == ""


@pytest.mark.parametrize(
    ("value", "param"),
    [
        ("json", "response_format"),
        ([], "response_format"),
        ({}, "response_format.type"),
        ({"type": "xml"}, "response_format.type"),
        ({"type": ["json_object"]}, "response_format.type"),
        ({"type": "json_schema"}, "response_format.json_schema"),
        ({"type": "json_schema", "json_schema": "x"}, "response_format.json_schema"),
        ({"type": "json_schema", "json_schema": {}}, "response_format.json_schema.schema"),
        ({"type": "json_schema", "json_schema": {"schema": True}}, "response_format.json_schema.schema"),
    ],
)
def test_an_invalid_format_is_refused_by_name(value: Any, param: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse_reply_format({"response_format": value})
    assert refused.value.param == param
