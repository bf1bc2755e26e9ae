from __future__ import annotations

import pytest

from bridge.json_text import find_lone_surrogate, storable_json


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
