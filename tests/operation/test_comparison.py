from __future__ import annotations

import time

from bridge.operation.comparison import MOST_LINES, LinePair, compare_tools


def test_lines_that_differ_stand_beside_each_other() -> None:
    sent = {"name": "a", "parameters": {"x": {"type": "string", "pattern": "^a"}}}
    given = {"name": "a_1", "parameters": {"x": {"type": "string"}}, "extra": 1}
    pairs = compare_tools(sent, given)
    assert pairs is not None
    assert [pair for pair in pairs if pair.kind == "differs"] == [
        LinePair("differs", '  "name": "a",', '  "name": "a_1",'),
        LinePair("differs", '      "pattern": "^a"', None),
        LinePair("differs", None, '  "extra": 1'),
    ]
    assert pairs[0] == LinePair("same", "{", "{")


def test_equal_tools_have_no_difference_whatever_the_order_of_fields() -> None:
    sent = {"b": [{"y": 1, "x": 2}, 3], "a": {"d": None, "c": True}}
    given = {"a": {"c": True, "d": None}, "b": [{"x": 2, "y": 1}, 3]}
    pairs = compare_tools(sent, given)
    assert pairs
    assert {pair.kind for pair in pairs} == {"same"}


def test_both_sides_are_complete() -> None:
    sent, given = {"a": [1, 2, 3]}, {"a": [2, 3, 4, 5], "b": {}}
    pairs = compare_tools(sent, given)
    assert pairs is not None
    left = "".join(pair.sent.strip() for pair in pairs if pair.sent is not None)
    right = "".join(pair.given.strip() for pair in pairs if pair.given is not None)
    assert (left, right) == ('{"a": [1,2,3]}', '{"a": [2,3,4,5],"b": {}}')


def test_long_texts_are_not_compared() -> None:
    assert compare_tools({"a": list(range(MOST_LINES))}, {}) is None


def test_hostile_texts_of_the_greatest_length_take_little_time() -> None:
    half = (MOST_LINES - 10) // 6
    sent = {str(n): {"type": {"x": n % 7}} for n in range(half)}
    given = {str(n): {"type": {"x": n % 5}} for n in range(half // 2, half + half // 2)}
    begun = time.thread_time()
    assert compare_tools(sent, given)
    assert compare_tools([n % 2 for n in range(MOST_LINES - 2)], [n % 3 for n in range(MOST_LINES - 2)])
    assert compare_tools([n % 90 for n in range(MOST_LINES - 2)], [n % 91 for n in range(MOST_LINES - 2)])
    assert time.thread_time() - begun < 5
