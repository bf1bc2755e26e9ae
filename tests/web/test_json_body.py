from __future__ import annotations

import json

import pytest

from bridge.errors import InvalidRequest, TooDeep
from bridge.web.json_body import MOST_VALUES, parse_json_body, parsed_size

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


TOO_MANY = {
    "empty lists": b'{"a":[' + b"[]," * (MOST_VALUES // 2 + 1) + b"1]}",
    "items": b'{"a":[' + b"1," * (MOST_VALUES + 1) + b"1]}",
    "fields": b'{"a":[' + b'{"a":1},' * (MOST_VALUES // 2 + 1) + b"1]}",
    "texts": b'{"a":[' + b'"",' * (MOST_VALUES + 1) + b"1]}",
    "items behind a quote in a text": b'{"b":"\\"","a":[' + b"1," * (MOST_VALUES + 1) + b"1]}",
    "items behind backslashes in a text": b'{"b":"\\\\","a":[' + b"1," * (MOST_VALUES + 1) + b"1]}",
}


@pytest.mark.fault("bodies too large, too deep, or no JSON")
@pytest.mark.parametrize("case", TOO_MANY)
def test_a_body_of_too_many_values_is_refused_before_it_is_parsed(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.web.json_body.json", None)
    with pytest.raises(InvalidRequest, match=f"more than {MOST_VALUES:,} fields and items") as caught:
        parse_json_body(TOO_MANY[case])
    assert (caught.value.status, caught.value.code) == (400, "too_many_values")


@pytest.mark.parametrize("text", ["a, b", "[{,", '\\"],[', "\\\\", "é,", "\\"], ids=str)
def test_commas_and_brackets_within_texts_do_not_count(text: str) -> None:
    sent = {"a": [text * (2 * MOST_VALUES), "b"], "c": text}
    assert parse_json_body(json.dumps(sent).encode()) == sent


def test_as_many_values_as_allowed_are_parsed() -> None:
    assert len(parse_json_body(b'{"a":[' + b"1," * (MOST_VALUES - 2) + b"1]}")["a"]) == MOST_VALUES - 1


def test_only_utf8_is_json() -> None:
    """Other encodings could hide brackets from the count."""
    with pytest.raises(InvalidRequest, match="not valid JSON"):
        parse_json_body('{"a": 1}'.encode("utf-16"))


def test_a_text_takes_its_length_whatever_is_in_it() -> None:
    texts = json.dumps({"a": '[{,\\"' * 10_000, "b": ["x" * 100] * 100}).encode()
    assert parsed_size(texts) == len(texts)
    assert parsed_size(b'{"a":[' + b"{}," * 1_000 + b"{}]}") > 70 * 1_000
