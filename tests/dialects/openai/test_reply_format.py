from __future__ import annotations

from typing import Any

import pytest

from bridge.dialects.openai.reply_format import any_object, value_of_schema
from bridge.errors import InvalidRequest


def test_any_object_has_no_schema() -> None:
    assert any_object().schema == ""


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"description": "a\ud800b"}, "s.description"),
        ({"properties": {"a": {"enum": ["x", "\udfff"]}}}, "s.properties.a.enum[1]"),
        ({"properties": {"\udc00": {"type": "string"}}}, "s.properties"),
    ],
)
def test_half_a_surrogate_pair_in_a_schema_is_refused_by_its_place(schema: Any, place: str) -> None:
    with pytest.raises(InvalidRequest, match="half a surrogate pair") as refused:
        value_of_schema(schema, "s")
    assert (refused.value.status, refused.value.param) == (400, place)


def test_a_schema_is_said_as_it_is() -> None:
    form = value_of_schema({"description": "a\U0001f600b"}, "text.format.schema")
    assert form.schema == '{"description": "a\U0001f600b"}'
    assert form.schema in form.instruction


@pytest.mark.parametrize("schema", [None, True, "object", [], 1])
def test_a_schema_that_is_no_object_is_refused_by_its_field(schema: Any) -> None:
    with pytest.raises(InvalidRequest) as refused:
        value_of_schema(schema, "text.format.schema")
    assert refused.value.param == "text.format.schema"
