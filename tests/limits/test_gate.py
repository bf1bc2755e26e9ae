from __future__ import annotations

import pytest

from bridge.errors import TooManyTurns
from bridge.limits.gate import Gate


def test_a_slot_is_taken_until_request_and_turn_are_over() -> None:
    gate, left = Gate(1, lambda: TooManyTurns("Too many.")), list[str]()
    slot = gate.enter(lambda: left.append("left"))
    slot.share()
    slot.leave()
    with pytest.raises(TooManyTurns):
        gate.enter()
    assert left == []
    slot.leave()
    assert left == ["left"]
    gate.enter().leave()
    gate.enter()
