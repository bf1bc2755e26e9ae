"""The list of turns is filtered by what its address says."""

from __future__ import annotations

import pytest

from bridge.history.records import TurnRecord
from bridge.web.admin.turn_query import PAGE, TurnQuery, make_turn_listing

NOON = 1_700_000_000.0  # 2023-11-14T22:13:20Z


def turn(number: int, outcome: str = "stop", key: str = "", agent: str = "Ada") -> TurnRecord:
    return TurnRecord(
        f"t{number}",
        NOON + 60 * number,
        agent,
        key_name=key,
        agent_id=f"agent-{agent}",
        agent_name=agent,
        outcome=outcome,
        ended=outcome != "busy",
    )


TURNS = [turn(3, "busy", "roo"), turn(2, "tool_calls", "roo", "Bob"), turn(1, "stop", "phone"), turn(0)]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, ["t3", "t2", "t1", "t0"]),
        ({"agent": "Bob"}, ["t2"]),
        ({"agent": "agent-Ada"}, ["t3", "t1", "t0"]),
        ({"agent": "Bo"}, []),
        ({"outcome": "stop"}, ["t1", "t0"]),
        ({"outcome": "failed"}, ["t3"]),
        ({"outcome": "busy"}, ["t3"]),
        ({"key": "roo"}, ["t3", "t2"]),
        ({"key": "-"}, ["t0"]),
        ({"key": "roo", "agent": "Ada"}, ["t3"]),
        ({"since": "2023-11-14T22:15"}, ["t3", "t2"]),
        ({"until": "2023-11-14T22:15"}, ["t1", "t0"]),
        ({"since": "2023-11-14T23:15:00+01:00", "until": "2023-11-14T22:15:30Z"}, ["t2"]),
        ({"since": "2023-11-14"}, ["t3", "t2", "t1", "t0"]),
        ({"since": "yesterday", "until": "0", "page": "x"}, ["t3", "t2", "t1", "t0"]),
        ({"since": "0001-01-01T00:00:00+23:00", "until": "9999-12-31T23:59:59-23:00"}, ["t3", "t2", "t1", "t0"]),
    ],
)
def test_turns_are_filtered_by_agent_outcome_key_and_time(arguments: dict[str, str], expected: list[str]) -> None:
    listing = make_turn_listing(TURNS, TurnQuery.from_arguments(arguments))
    assert [one.id for one in listing.turns] == expected
    assert (listing.found, listing.total) == (len(expected), 4)


def test_many_turns_are_divided_into_pages() -> None:
    turns = [turn(number) for number in range(2 * PAGE + 1)]
    pages = [make_turn_listing(turns, TurnQuery(page=page)) for page in (0, 1, 2, 3, 4)]
    assert [len(one.turns) for one in pages] == [PAGE, PAGE, PAGE, 1, 1]
    assert {one.pages for one in pages} == {3}


def test_the_links_of_a_page_keep_its_filters() -> None:
    wanted = TurnQuery.from_arguments({"agent": "Ada", "page": "2", "outcome": "", "other": "x"})
    assert wanted.arguments_with(page=3) == {"agent": "Ada", "page": "3"}
    assert wanted.arguments_with(outcome="busy") == {"agent": "Ada", "outcome": "busy"}
    assert wanted.filters
    assert not TurnQuery(page=2).filters
