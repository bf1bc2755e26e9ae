from __future__ import annotations

import sys

import pytest

from bridge.errors import TooManyBytes
from bridge.web.room import LARGE, MOST_HELD, SMALL, Room


def test_the_more_is_held_the_smaller_must_be_what_comes() -> None:
    room = Room()
    room.add(MOST_HELD * 3 // 4)
    assert room.most_for_one == sys.maxsize
    room.add(1)
    assert room.most_for_one == LARGE
    room.add(MOST_HELD // 4)
    assert room.most_for_one == SMALL
    room.remove(MOST_HELD)
    assert room.most_for_one == sys.maxsize


def test_what_finds_no_room_is_refused_and_not_counted() -> None:
    room = Room(10 * LARGE)
    room.take(5 * LARGE)
    with pytest.raises(TooManyBytes) as caught:
        room.take(3 * LARGE)
    assert (caught.value.status, caught.value.retry_after) == (503, 2)
    assert room.held == 5 * LARGE
    room.take(2 * LARGE)


def test_all_workers_of_a_small_dyno_have_memory_left_when_as_much_as_allowed_is_held() -> None:
    assert 2 * MOST_HELD < 512_000_000 / 3
