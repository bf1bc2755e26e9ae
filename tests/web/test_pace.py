from __future__ import annotations

from bridge.web.pace import SLOWEST_RATE, Pace

PAUSE = 10


def test_who_does_nothing_is_overdue_after_the_pause() -> None:
    pace = Pace(100)
    assert not pace.is_overdue(100 + PAUSE, PAUSE)
    assert pace.is_overdue(101 + PAUSE, PAUSE)


def test_a_step_begins_the_pause_again_but_nothing_does_not() -> None:
    moving, still = Pace(100), Pace(100)
    moving.note(10 * SLOWEST_RATE, 105)
    still.note(0, 105)
    assert not moving.is_overdue(105 + PAUSE, PAUSE)
    assert moving.is_overdue(106 + PAUSE, PAUSE)
    assert still.is_overdue(101 + PAUSE, PAUSE)


def test_who_is_slower_than_the_slowest_rate_is_overdue_in_the_long_run() -> None:
    slow, steady = Pace(0), Pace(0)
    for second in range(1, 100):
        slow.note(SLOWEST_RATE // 2, second)
        steady.note(SLOWEST_RATE, second)
    assert slow.is_overdue(99, PAUSE)
    assert not steady.is_overdue(99, PAUSE)
