from __future__ import annotations

from typing import get_args

import pytest
from letta_client.types.stop_reason_type import StopReasonType

from bridge.dialects.openai.finish import FINISH_REASONS, finish_reason
from bridge.letta import failures


@pytest.mark.parametrize("reason", get_args(StopReasonType))
def test_every_stop_reason_of_letta_is_either_a_finish_or_a_failure(reason: str) -> None:
    assert (reason in FINISH_REASONS) != (failures.error_from_stop_reason(reason) is not None)


def test_the_normal_ends_are_those_that_have_a_finish_reason() -> None:
    assert FINISH_REASONS.keys() == failures.ORDERLY_STOPS


@pytest.mark.parametrize(("reason", "finish"), FINISH_REASONS.items())
def test_a_finish_reason_is_one_of_openais(reason: str, finish: str) -> None:
    assert finish_reason(reason, called=False) == finish
    assert finish in ("stop", "length")
    assert finish_reason(reason, called=True) == "tool_calls"
