"""Which calls Letta can write into the script that runs a stub."""

from __future__ import annotations

import pytest

from bridge.interception.relay import are_arguments_runnable

PARAMETERS = {"properties": {"text": {"type": "string"}, "count": {"type": "integer"}, "on": {"type": "boolean"}}}


@pytest.mark.parametrize(
    "arguments",
    ["", "{}", '{"text": "a\\"; import os"}', '{"text": null, "count": 3.0, "on": true}', '{"thinking": "x y"}'],
)
def test_names_and_values_that_can_not_be_code_are_run(arguments: str) -> None:
    assert are_arguments_runnable(arguments, PARAMETERS)


@pytest.mark.parametrize(
    "arguments",
    [
        '{"count": "__import__(1)"}',
        '{"on": 1}',
        '{"x-y": 1}',
        '{"unknown": "f()"}',
        "[1]",
        "{",
        pytest.param("[" * 100_000, id="too deep"),
    ],
)
def test_names_and_values_that_may_be_code_are_not_run(arguments: str) -> None:
    assert not are_arguments_runnable(arguments, PARAMETERS)
