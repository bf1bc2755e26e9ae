"""The quick way to read JSON has the results of `json`, and values are remembered by their text."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.quick_json import FieldTexts, RememberedValues, read_json
from tests.memory import measured, most_memory

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)
ODD = [
    "NaN",
    "-Infinity",
    "1e400",
    "-1e400",
    "1e-400",
    "-0",
    "-0.0",
    "18446744073709551617",
    "-9223372036854775809",
    "0.1000000000000000055511151231257827",
    '"\\ud800"',
    '"\\ud83d\\ude00"',
    '"\\u0000"',
    '{"a": 1, "a": 2}',
    "\ufeff{}",
    "01",
    "[1,]",
    '"\t"',
    "",
    " ",
    "{} x",
    "\ud800",
    "[" * 500 + "]" * 500,
]


def outcome(read: Any, text: bytes | str) -> str:
    try:
        return repr(read(text))
    except ValueError as fault:
        return repr(fault)


@pytest.mark.parametrize("text", ODD)
def test_odd_json_is_read_or_refused_as_json_does_it(text: str) -> None:
    assert outcome(read_json, text) == outcome(json.loads, text)
    as_bytes = text.encode("utf-8", "surrogatepass")
    assert outcome(read_json, as_bytes) == outcome(json.loads, as_bytes)


@pytest.mark.parametrize("text", [b"\xff", b'"\xed\xa0\x80"', '{"a": 1}'.encode("utf-16"), b'\xef\xbb\xbf{"a": 1}'])
def test_bytes_that_are_not_utf8_are_read_or_refused_as_json_does_it(text: bytes) -> None:
    assert outcome(read_json, text) == outcome(json.loads, text)


@given(VALUES, st.booleans(), st.sampled_from([None, 2]))
def test_any_value_is_read_as_json_reads_it(value: Any, escaped: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=escaped, indent=indent)
    assert outcome(read_json, text) == outcome(json.loads, text)


@given(st.text(alphabet='{}[]":,\\ue019+-. \n', max_size=30))
def test_any_text_is_read_or_refused_as_json_does_it(text: str) -> None:
    assert outcome(read_json, text) == outcome(json.loads, text)


def test_too_many_levels_are_refused_as_json_does_it() -> None:
    for read in (read_json, json.loads):
        with pytest.raises(RecursionError):
            read("[" * 100_000)


def test_equal_bytes_give_the_same_object() -> None:
    remembered: RememberedValues[list[int]] = RememberedValues(100)
    first = remembered.add(b"a", [1])
    assert remembered.add(b"a", [2]) is first
    assert remembered.get(b"a") is first
    assert remembered.get(b"b") is None


def test_the_first_values_are_forgotten_when_their_keys_take_too_much() -> None:
    remembered: RememberedValues[int] = RememberedValues(10)
    for number in range(5):
        remembered.add(b"key%d" % number, number)
    assert [remembered.get(b"key%d" % number) for number in range(5)] == [None, None, None, 3, 4]
    assert remembered.add(b"x" * 11, 7) == 7
    assert remembered.get(b"x" * 11) is None


def test_many_threads_get_one_object_for_equal_bytes() -> None:
    remembered: RememberedValues[list[int]] = RememberedValues(1_000)
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda: found.extend(id(remembered.add(b"%d" % n, [n])) for n in range(100)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 400
    assert len(set(found)) == 100


NAMES = st.sampled_from(["a", "b", "c", "\u00e9", '"'])


@given(st.dictionaries(NAMES, VALUES, max_size=4), st.booleans(), st.sampled_from([None, 2]))
def test_the_texts_of_fields_are_those_in_the_object(value: dict[str, Any], escaped: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=escaped, indent=indent).encode("utf-8", "surrogatepass")
    found = FieldTexts(["a", "b"]).find(text)
    assert set(found) <= {"a", "b"} & set(value)
    for name, part in found.items():
        assert part in text
        assert repr(json.loads(part)) == repr(value[name])


def test_the_texts_are_found_in_a_usual_object() -> None:
    assert FieldTexts(["a", "b", "d"]).find(b'{"a": [1, {"a": 2}], "c": 3, "b":"x"}') == {
        "a": b'[1, {"a": 2}]',
        "b": b'"x"',
    }


@pytest.mark.parametrize("text", [b"[1]", b"{", b"", b'{"a":01}', b"\xff", b'\xef\xbb\xbf{"a":1}', b"[" * 100_000])
def test_what_is_no_object_has_no_fields(text: bytes) -> None:
    assert FieldTexts(["a"]).find(text) == {}


def test_of_two_fields_of_one_name_the_last_is_found() -> None:
    assert FieldTexts(["a"]).find(b'{"a":[1],"b":2,"a":[2]}') == {"a": b"[2]"}


def test_other_fields_take_no_memory() -> None:
    """They are counted, and refused if they are too many, only after this."""
    text = b'{"a":[1],%b}' % b",".join(b'"x%d":[]' % number for number in range(200_000))

    def find() -> int:
        assert FieldTexts(["a"]).find(text) == {"a": b"[1]"}
        return most_memory()

    assert measured(find) < 100_000
