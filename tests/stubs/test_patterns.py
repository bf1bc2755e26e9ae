from __future__ import annotations

import re
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.stubs.patterns import is_common_pattern
from tests.stubs.test_properties import hostile

PIECES = [
    *r"ab0-^$.|()[]{}*+?\/ ,:=!<",
    "(?:",
    "(?=",
    "(?<a>",
    r"\d",
    r"\w",
    r"\p{L}",
    r"\u0041",
    "{2}",
    "{3,1}",
    "[a-z]",
]


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "^[1-9][0-9]*$",
        r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$",
        r"^\d{4}-\d{2}-\d{2}$",
        r"^(?:(?!\.\.)[\w.-])+@[a-z0-9]+(?:\.[a-z]{2,})*?$",
        r"^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}|0{8,})$",
        r"^https?:\/\/[^\s/$.?#].[^\s]*$",
        r"[\u4e00-\u9fff\-\]]|\x41",
    ],
)
def test_a_usual_pattern_is_common(pattern: str) -> None:
    assert is_common_pattern(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            "[",
            "(",
            ")",
            "a)",
            "*",
            "a**",
            "^*",
            "(*a)",
            "|+",
            "[z-a]",
            r"[\w-.]",
            "[]",
            "[^]",
            "a{2,1}",
            "a{,3}",
            "a{",
        ),
        *(
            r"\p{L}",
            r"\u{1F600}",
            "(?<year>a)",
            r"\k<a>",
            r"\cA",
            r"\z",
            r"\1",
            "(?i)a",
            "(?<=a+)b",
            "\\",
            "[a",
            "[[a]",
        ),
        *("(" * 1000 + ")" * 1000, "a{9999999999}", "a++"),
    ],
)
def test_a_pattern_that_is_wrong_or_that_only_one_language_has_is_not_common(pattern: str) -> None:
    assert not is_common_pattern(pattern)


@hostile
@given(st.one_of(st.lists(st.sampled_from(PIECES), max_size=12).map("".join), st.text(max_size=12)))
def test_python_can_read_every_common_pattern(pattern: str) -> None:
    if is_common_pattern(pattern):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            re.compile(pattern)
