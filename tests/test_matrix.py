"""The table at the end of a run against all servers."""

from __future__ import annotations

from tests.real.matrix import table


def test_the_table_counts_passed_tests_by_server_agent_type_and_scenario() -> None:
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


def test_without_tests_of_servers_there_is_no_table() -> None:
    assert table([("tests/test_else.py::test_d", True)]) == []
