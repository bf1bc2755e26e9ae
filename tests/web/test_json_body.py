from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.errors import BridgeError, InvalidRequest, TooDeep
from bridge.quick_json import RememberedValues
from bridge.web.json_body import MOST_VALUES, Arrays, count_values, parse_json_body, parsed_size

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
    assert parsed_size(texts, count_values(texts)) == len(texts)
    objects = b'{"a":[' + b"{}," * 1_000 + b"{}]}"
    assert parsed_size(objects, count_values(objects)) > 70 * 1_000


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


def outcome(body: bytes, arrays: Arrays | None = None) -> str:
    try:
        return repr(parse_json_body(body, 5, arrays))
    except BridgeError as fault:
        return repr((type(fault), fault.message, fault.code))


@given(
    st.lists(st.tuples(st.sampled_from(["model", "tools", "messages"]), VALUES), max_size=4),
    st.booleans(),
    st.sampled_from([(",", ":"), (", ", ": "), (" ,", " :")]),
)
def test_a_body_is_read_as_carefully_as_ever(fields: Any, escaped: bool, marks: tuple[str, str]) -> None:
    """Also with two fields of one name, in whatever form it is written, the first time and again."""
    texts = (
        f"{json.dumps(name)}{marks[1]}{json.dumps(value, ensure_ascii=escaped, separators=marks)}"
        for name, value in fields
    )
    body = f"{{{marks[0].join(texts)}}}".encode("utf-8", "surrogatepass")
    arrays: Arrays = RememberedValues(1_000)
    careful = outcome(body)
    for known in (False, True):
        assert outcome(body, arrays) == careful, known


def test_an_array_of_tools_with_the_same_text_is_the_same_object() -> None:
    arrays: Arrays = RememberedValues(1_000)
    tools = [{"name": "look", "description": "\u00e9"}]
    long = "x" * 100_000
    bodies = [{"messages": [text], "tools": tools} for text in ("1", "2", long, f"{long}2")]
    read = [
        parse_json_body(json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(), arrays=arrays)
        for body in bodies
    ]
    assert read == bodies
    assert len({id(one["tools"]) for one in read}) == 1


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('{"tools":TOOLS,"tools":TOOLS}', "occurs twice"),
        ('{"tools":[],"tools":TOOLS}', "occurs twice"),
        ('{"tools":TOOLS,"model":1,"model":2}', "occurs twice"),
        ('{"tools":TOOLS,"a":NaN}', "NaN"),
        ('{"tools":TOOLS,}', "not valid JSON"),
        ('{"tools":TOOLS', "not valid JSON"),
    ],
)
def test_a_known_array_hides_nothing_else_of_the_body(body: str, words: str) -> None:
    tools, arrays = '[{"name":"look"}]', RememberedValues[list[Any]](1_000)
    parse_json_body(f'{{"tools":{tools}}}'.encode(), arrays=arrays)
    with pytest.raises(InvalidRequest, match=words):
        parse_json_body(body.replace("TOOLS", tools).encode(), arrays=arrays)


@pytest.mark.parametrize("elsewhere", ['"metadata":TOOLS,"tools":TOOLS', '"tools":TOOLS,"metadata":[TOOLS]'])
@pytest.mark.parametrize("tools", ['[{"name":"look"}]', "[]", "[1]"])
def test_an_equal_array_elsewhere_in_the_body_stays_there(elsewhere: str, tools: str) -> None:
    arrays = RememberedValues[list[Any]](1_000)
    body = f"{{{elsewhere.replace('TOOLS', tools)}}}".encode()
    for _ in range(2):
        assert parse_json_body(body, arrays=arrays) == json.loads(body)


def test_an_array_that_was_refused_is_refused_again() -> None:
    arrays: Arrays = RememberedValues(1_000)
    for _ in range(2):
        with pytest.raises(InvalidRequest, match="occurs twice"):
            parse_json_body(b'{"tools":[{"a":1,"a":1}]}', arrays=arrays)
        with pytest.raises(TooDeep):
            parse_json_body(b'{"tools":[[[1]]]}', deepest=3, arrays=arrays)
