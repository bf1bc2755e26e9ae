from __future__ import annotations

from typing import Any

import pytest

from bridge.dialects.openai.reply_format import any_object, value_of_schema
from bridge.errors import InvalidRequest


def test_any_object_has_no_schema() -> None:
    assert any_object().schema == ""


def test_text_that_letta_cannot_store_is_left_out_of_the_schema() -> None:
    form = value_of_schema({"description": "a\ud800b"}, "text.format.schema")
    assert form.schema == '{"description": "a\ufffdb"}'
    assert form.schema in form.instruction


@pytest.mark.parametrize("schema", [None, True, "object", [], 1])
def test_a_schema_that_is_no_object_is_refused_by_its_field(schema: Any) -> None:
    with pytest.raises(InvalidRequest) as refused:
        value_of_schema(schema, "text.format.schema")
    assert refused.value.param == "text.format.schema"
