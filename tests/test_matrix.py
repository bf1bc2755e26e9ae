"""The table at the end of a run on all servers."""

from __future__ import annotations

from tests.real.matrix import table


def test_it_counts_what_passed_by_server_type_and_scenario() -> None:
    outcomes = [
        ("tests/real/test_tool_turns.py::test_a[0.16.1-letta_v1_agent-whole]", True),
        ("tests/real/test_tool_turns.py::test_a[0.8.17-memgpt_agent-whole]", True),
        ("tests/real/test_tool_turns.py::test_b[0.8.17-memgpt_agent]", False),
        ("tests/real/test_plain_talk.py::test_c[0.8.17]", True),
        ("tests/test_else.py::test_d[0.8.17]", False),
    ]
    assert table(outcomes) == [
        "| version | agent | plain talk | tool turns |",
        "|---|---|---|---|",
        "| 0.8.17 | (any) | 1 |  |",
        "| 0.8.17 | memgpt_agent |  | **1 of 2** |",
        "| 0.16.1 | letta_v1_agent |  | 1 |",
    ]


def test_without_such_tests_there_is_none() -> None:
    assert table([("tests/test_else.py::test_d", True)]) == []
