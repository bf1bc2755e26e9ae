from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from enum import Enum

import pytest

from bridge.turns.life import ATTEMPT_MOVES, PART_MOVES, AttemptState, Life, Mover, Moves, PartState

A, P = AttemptState, PartState


@pytest.mark.parametrize(("states", "moves"), [(AttemptState, ATTEMPT_MOVES), (PartState, PART_MOVES)])
def test_every_state_is_in_its_table(states: type[Enum], moves: Moves[Enum]) -> None:
    assert set(moves) == set(states)
    reached = {to for found in moves.values() for to in found}
    begins = {A.WAITING, P.BEGUN, P.JOINED, P.REPEATED}
    assert set(states) - reached <= begins


def test_a_turn_runs_once() -> None:
    life = Life(A.WAITING, ATTEMPT_MOVES)
    assert life.move(A.RUNNING, Mover.ATTEMPT)
    assert not life.move(A.WAITING, Mover.ATTEMPT)
    assert life.move(A.ENDED, Mover.ATTEMPT)
    assert not life.move(A.FAILED, Mover.ATTEMPT)
    assert life.state is A.ENDED


@pytest.mark.parametrize("end", [P.DELIVERED, P.LEFT_EARLY, P.GIVEN_UP, P.SENT_AWAY, P.REFUSED])
def test_a_part_that_has_ended_does_not_come_back(end: PartState) -> None:
    assert PART_MOVES[end] == {}


def test_a_part_of_which_something_was_shown_is_not_attempted_again() -> None:
    life = Life(P.JOINED, PART_MOVES)
    assert life.move(P.READ, Mover.CLIENT)
    assert not life.move(P.LOST, Mover.REPEAT)
    assert life.move(P.SHOWN, Mover.CLIENT)
    assert not life.move(P.LOST, Mover.REPEAT)


def test_a_client_that_was_shown_something_did_not_leave_early() -> None:
    early = {state for state, moves in PART_MOVES.items() if P.LEFT_EARLY in moves}
    assert early == {P.BEGUN, P.JOINED, P.REPEATED, P.LOST, P.READ}


def test_an_attempt_without_a_client_does_not_begin_to_run() -> None:
    life = Life(A.WAITING, ATTEMPT_MOVES)
    assert life.move(A.WAITING_ALONE, Mover.CLIENT)
    assert not life.move(A.RUNNING, Mover.ATTEMPT)
    assert life.move(A.WAITING, Mover.REPEAT)
    assert life.move(A.RUNNING, Mover.ATTEMPT)


@pytest.mark.parametrize("given_up", [A.WITHDRAWN, A.CANCELLED])
def test_only_an_attempt_without_a_client_is_given_up_and_no_repeat_brings_it_back(given_up: AttemptState) -> None:
    before = {state for state, moves in ATTEMPT_MOVES.items() if given_up in moves}
    assert before == {A.WAITING_ALONE if given_up is A.WITHDRAWN else A.RUNNING_ALONE}
    assert set(ATTEMPT_MOVES[given_up]) == {A.ENDED, A.FAILED}


def test_only_a_part_that_joined_can_be_lost() -> None:
    assert [state for state, moves in PART_MOVES.items() if P.LOST in moves] == [P.JOINED]


def test_a_state_is_moved_by_its_mover_only() -> None:
    life = Life(P.BEGUN, PART_MOVES)
    assert not life.move(P.DELIVERED, Mover.ATTEMPT)
    assert not life.move(P.SHOWN, Mover.REPEAT)
    assert life.state is P.BEGUN


def test_of_two_threads_that_end_a_part_one_wins() -> None:
    for _ in range(50):
        life, together = Life(P.SHOWN, PART_MOVES), threading.Barrier(2)
        with ThreadPoolExecutor(2) as pool:
            ends = [pool.submit(_end, life, state, together) for state in (P.DELIVERED, P.GIVEN_UP)]
        assert [end.result() for end in ends].count(True) == 1


def _end(life: Life[PartState], state: PartState, together: threading.Barrier) -> bool:
    together.wait()
    return life.move(state, Mover.CLIENT)
