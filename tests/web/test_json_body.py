from __future__ import annotations

import pytest

from bridge.errors import InvalidRequest, TooDeep
from bridge.web.json_body import parse_json_body

NOT_JSON: list[tuple[bytes, str]] = [
    (b"", "is empty; send a JSON object"),
    (b"   ", "is empty; send a JSON object"),
    (b'{"model": "Ada", "model": "Bob"}', "the name 'model' occurs twice"),
    (b'{"a": [{"b": {"c": 1, "d": 2, "c": 1}}]}', "the name 'c' occurs twice"),
    (b"{", "not valid JSON"),
    (b'{"model": "Ada",}', "not valid JSON"),
    (b"{'model': 'Ada'}", "not valid JSON"),
    (b'{"a": 1} {"b": 2}', "not valid JSON"),
    (b'{"model": "\xff"}', "not valid JSON"),
    (b'{"temperature": NaN}', "NaN is not a JSON value"),
    (b'{"temperature": Infinity}', "Infinity is not a JSON value"),
    (b'{"temperature": -Infinity}', "-Infinity is not a JSON value"),
    (b'{"temperature": 1e400}', "1e400 is out of range"),
    (b'{"seed": -1e999}', "-1e999 is out of range"),
    (b'{"seed": ' + b"9" * 5000 + b"}", "not valid JSON"),
    (b"[]", "must be a JSON object"),
    (b"null", "must be a JSON object"),
    (b'"text"', "must be a JSON object"),
    (b"42", "must be a JSON object"),
]


@pytest.mark.fault("bodies too large, too deep, or no JSON")
@pytest.mark.parametrize(("sent", "words"), NOT_JSON)
def test_a_body_that_is_not_a_json_object_is_refused(sent: bytes, words: str) -> None:
    with pytest.raises(InvalidRequest, match=words) as caught:
        parse_json_body(sent)
    assert (caught.value.status, caught.value.code, caught.value.param) == (400, "invalid_json", None)


@pytest.mark.fault("bodies too large, too deep, or no JSON")
@pytest.mark.parametrize("around", [b"[%s]", b'{"a":%s}', b'{"messages":[%s]}'])
def test_a_body_nested_too_deeply_is_refused(around: bytes) -> None:
    opening, closing = around.split(b"%s")
    depth = 100_000
    with pytest.raises(TooDeep) as caught:
        parse_json_body(opening * depth + b"1" + closing * depth)
    assert (caught.value.status, caught.value.code) == (400, "nesting_too_deep")


def test_a_body_in_utf8_with_a_byte_order_mark_is_read() -> None:
    assert parse_json_body(b'\xef\xbb\xbf{"a": "\xc3\xa9"}') == {"a": "\u00e9"}


def test_a_body_at_the_limit_of_depth_is_read() -> None:
    assert parse_json_body(b'{"a": [{}]}', deepest=3) == {"a": [{}]}
    with pytest.raises(TooDeep, match="more than 2 levels"):
        parse_json_body(b'{"a": [{}]}', deepest=2)
