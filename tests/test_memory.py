"""Memory is measured without the other threads of the tests, and a fault of the measured work is told."""

from __future__ import annotations

import os
import threading

import pytest

from tests.memory import measured, memory_held, most_memory


def test_what_is_held_is_measured_and_the_most_that_was_held() -> None:
    def work() -> tuple[int, int]:
        kept = bytes(1_000_000)
        assert len(bytes(2_000_000) + kept[:1]) == 2_000_001
        return memory_held(), most_memory()

    held, most = measured(work)
    assert 1_000_000 <= held < 1_200_000
    assert most >= 3_000_000


def test_other_threads_do_not_count() -> None:
    over, taken = threading.Event(), []
    thread = threading.Thread(target=lambda: [taken.append(bytes(10_000)) for _ in range(10_000) if not over.wait(0)])
    thread.start()
    try:
        assert measured(memory_held) < 100_000
    finally:
        over.set()
        thread.join()


def test_a_fault_of_the_work_is_told() -> None:
    with pytest.raises(AssertionError, match="no such tool"):
        measured(lambda: {}["no such tool"])
    with pytest.raises(AssertionError, match="ended early"):
        measured(lambda: os._exit(1))
