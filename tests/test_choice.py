"""What `make test` leaves to the matrix, and that it tries every way of catching a call."""

from __future__ import annotations

import pytest

from testbed.versions import VERSIONS
from tests.real.choice import ONE_OF_EACH_GENERATION, Choice

USUAL = ONE_OF_EACH_GENERATION


def pairs(*marks: str, whole: bool = False, servers: tuple[str, ...] = USUAL) -> list[tuple[str, str]]:
    choice = Choice(marks, servers, whole)
    return [(version, kind) for version in choice.versions() for kind in choice.agent_types(version)]


def test_each_way_of_catching_calls_is_tried() -> None:
    """Rewrite without and with approvals, approval, relay, native."""
    assert pairs("real") == [
        ("0.8.17", "memgpt_v2_agent"),
        ("0.11.7", "memgpt_v2_agent"),
        ("0.16.1", "letta_v1_agent"),
        ("0.16.8", "memgpt_v2_agent"),
        ("0.16.8", "letta_v1_agent"),
    ]


def test_a_server_that_has_the_oldest_type_alone_is_tried_with_it() -> None:
    assert pairs("real", servers=("0.6.54",)) == [("0.6.54", "memgpt_agent")]


def test_one_type_of_agent_is_the_newest_of_each_server() -> None:
    assert pairs("one_type") == [
        ("0.8.17", "memgpt_v2_agent"),
        ("0.11.7", "memgpt_v2_agent"),
        ("0.16.1", "letta_v1_agent"),
        ("0.16.8", "letta_v1_agent"),
    ]


def test_two_servers_are_the_oldest_and_the_newest() -> None:
    assert pairs("two_servers") == [("0.8.17", "memgpt_v2_agent"), ("0.16.8", "letta_v1_agent")]
    assert pairs("two_servers", servers=("0.16.1",)) == [("0.16.1", "letta_v1_agent")]


def test_one_server_is_the_usual_one() -> None:
    assert pairs("one_server") == [("0.16.1", "letta_v1_agent")]


@pytest.mark.parametrize("mark", ["real", "one_type", "two_servers", "one_server"])
def test_the_matrix_leaves_nothing_out(mark: str) -> None:
    tried = pairs(mark, whole=True, servers=VERSIONS)
    assert {version for version, _ in tried} == set(VERSIONS)
    assert [kind for version, kind in tried if version == "0.16.1"] == [
        "memgpt_agent",
        "memgpt_v2_agent",
        "letta_v1_agent",
    ]


def test_replies_are_streamed_and_whole_where_letta_is_asked_in_two_ways() -> None:
    some, whole = Choice((), USUAL, False), Choice((), USUAL, True)
    assert some.streamed("0.16.1", "letta_v1_agent") == whole.streamed("0.8.17", "memgpt_agent") == (False, True)
    assert some.streamed("0.16.8", "letta_v1_agent") == some.streamed("0.16.8", "memgpt_v2_agent") == (True,)
