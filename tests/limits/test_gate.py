from __future__ import annotations

import pytest

from bridge.errors import TooManyTurns
from bridge.limits.gate import Gate


def test_a_place_is_taken_until_request_and_turn_are_over() -> None:
    gate, left = Gate(1), list[str]()
    slot = gate.enter(lambda: left.append("left"))
    with slot.turn():
        slot.leave()
        with pytest.raises(TooManyTurns):
            gate.enter()
        assert left == []
    assert left == ["left"]
    gate.enter().leave()
    assert gate.inside == 0


def test_a_turn_that_begins_after_its_request_is_over_gives_no_place_away() -> None:
    gate, left = Gate(1), list[str]()
    slot = gate.enter(lambda: left.append("left"))
    slot.leave()
    with slot.turn():
        pass
    assert left == ["left"]
    gate.enter()
    with pytest.raises(TooManyTurns):
        gate.enter()
