from __future__ import annotations

import re

import pytest

from bridge.dialects.responses.ids import ItemIds, response_id, turn_of_response

TURN = "turn-" + "0123456789ab" * 2
MESSAGE = "message-12345678-1234-1234-1234-123456789abc"


def test_the_id_of_a_response_leads_back_to_its_turn() -> None:
    made = response_id(TURN)
    assert re.fullmatch(r"resp_[0-9a-f]{32}", made)
    assert turn_of_response(made) == TURN


@pytest.mark.parametrize(
    "given", ["", "resp_1", "resp_" + "a" * 32, response_id(TURN)[:-1], response_id(TURN) + "0", "msg_" + "a" * 32]
)
def test_an_id_that_the_bridge_did_not_make_leads_nowhere(given: str) -> None:
    assert turn_of_response(given) is None


def test_ids_of_items_are_the_same_each_time_and_unique_in_a_response() -> None:
    first, again = ItemIds(), ItemIds()
    made = [first.new("msg", MESSAGE), first.new("rs", MESSAGE), first.new("msg", MESSAGE)]
    assert made == [again.new("msg", MESSAGE), again.new("rs", MESSAGE), again.new("msg", MESSAGE)]
    assert len(set(made)) == 3
    assert all(re.fullmatch(r"(msg|rs)_[0-9a-f]{32,35}", one) for one in made)


def test_an_item_of_no_known_message_gets_a_new_id_each_time() -> None:
    assert ItemIds().new("msg", "") != ItemIds().new("msg", "")
