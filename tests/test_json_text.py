from __future__ import annotations

import pytest

from bridge.json_text import find_lone_surrogate, storable_json, storable_text
from tests.memory import measured, most_memory


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("", ""),
        ("plain", "plain"),
        ("Grüße, \u65e5\u672c, \U0001f600", "Grüße, \u65e5\u672c, \U0001f600"),
        ("\ufeffwith a mark", "\ufeffwith a mark"),
        ("nu\x00l", "nul"),
        ("\x00\ud800é", "\ufffdé"),
        ("half \udc00", "half \ufffd"),
        ("a pair in halves \ud83d\ude00", "a pair in halves \U0001f600"),
    ],
)
def test_texts_become_storable(text: str, stored: str) -> None:
    assert storable_text(text) == stored


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        (r'{"a": "x\ud800y"}', '{"a": "x\ufffdy"}'),
        (r'{"\udc00": 1}', '{"\ufffd": 1}'),
        (r'{"a": "\ud83d\ude00"}', '{"a": "\U0001f600"}'),
        ('{"a": "\ud800"}', '{"a": "\ufffd"}'),
        (r'{"a": "\ud800', r'{"a": "\ud800'),
        (r"\ud800" + "[" * 5_000, r"\ud800" + "[" * 5_000),
        ('["' + r"\ud800" + '", ' + "[" * 5_000, '["' + r"\ud800" + '", ' + "[" * 5_000),
        (r'{"a":  "\u00e9"}', r'{"a":  "\u00e9"}'),
    ],
)
def test_escaped_halves_of_surrogate_pairs_become_storable(text: str, stored: str) -> None:
    assert storable_json(text) == stored


def test_whole_characters_are_no_lone_surrogates() -> None:
    assert find_lone_surrogate({"a": ["\U0001f600", 1, None, True]}, "x") == ""


def test_the_places_of_values_take_little_memory_whatever_the_names_are() -> None:
    def look() -> int:
        assert find_lone_surrogate({"x" * 20_000: [0] * 2_000}, "x") == ""
        return most_memory()

    assert measured(look) < 2_000_000  # it was 40 MB
