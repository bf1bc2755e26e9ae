from __future__ import annotations

import pytest

from bridge.reply_format.json_in_text import find_json_values, parse_json


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', '{"a": 1}'),
        ('\n {"a": 1}\n', '{"a": 1}'),
        ("[1, 2]", "[1, 2]"),
        ('"a word"', '"a word"'),
        ("42", "42"),
        ("null", "null"),
        ('```json\n{"a": 1}\n```', '{"a": 1}'),
        ('```\n{"a": 1}\n```', '{"a": 1}'),
        ('Here you are:\n\n```json\n{\n  "a": 1\n}\n```\nAnything else?', '{\n  "a": 1\n}'),
        ("As you wished:\n```json\n42\n```", "42"),
        ('Here you are: {"a": {"b": [1]}}. Anything else?', '{"a": {"b": [1]}}'),
        ('```json {"a": 1} ```', '{"a": 1}'),
        ('In [brackets] and {braces}: {"a": 1}', '{"a": 1}'),
        ('{"code": "```py\\nx = [1]\\n```"}', '{"code": "```py\\nx = [1]\\n```"}'),
        ('Die Größe: {"größe": "ü😀"}', '{"größe": "ü😀"}'),
        ('<think>\nMaybe {"b": 2}.\n</think>\n\n{"a": 1}', '{"a": 1}'),
        ("<thinking>[1]?</thinking>42", "42"),
        ('{"a": "<think>1</think>"}', '{"a": "<think>1</think>"}'),
        ("```python\nx = {'a': 1}\n```\n{\"a\": 1}", '{"a": 1}'),
    ],
)
def test_the_one_value_is_found_as_the_model_wrote_it(text: str, value: str) -> None:
    assert find_json_values(text) == [value]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I don't know.",
        "There are 3 results, all true.",
        "{'a': 1}",
        '{"a": 1,}',
        '{"a": NaN}',
        '{"a": Infinity}',
        "[" * 100_000,
        "[" * 100_000 + "]" * 100_000,
    ],
)
def test_text_without_a_value_has_none(text: str) -> None:
    assert find_json_values(text) == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ('{"a": 1} {"a": 1}', 2),
        ('First {"a": 1}, then [2], then {"c": 3}.', 3),
        ('```json\n{"a": 1}\n```\nor\n```json\n{"a": 2}\n```', 2),
        ('```json\n{"a": 1}\n```\nor {"a": 2}', 2),
    ],
)
def test_several_values_are_all_found(text: str, count: int) -> None:
    assert len(find_json_values(text)) == count


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "x", "address": {"city": "Oslo"}, "more',
        '{"address": {"city": "Oslo"},}',
        '[{"city": "Oslo"}, {"city": "Rome"',
        '{"a": "}", wrong, "b": {"c": 1}}',
        '```json\n{"address": {"city": "Oslo"},\n',
    ],
)
def test_a_value_inside_of_a_broken_one_does_not_count(text: str) -> None:
    assert find_json_values(text) == []


@pytest.mark.parametrize("text", ["NaN", "-Infinity", "", "{", "[" * 100_000 + "]" * 100_000])
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse_json(text)
