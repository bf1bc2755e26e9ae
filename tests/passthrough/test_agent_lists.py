"""A page of a list of agents is full also for a key that may see only some of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

import pytest

from bridge import errors
from bridge.directory import ALL
from bridge.letta.foreign import ForeignBody
from bridge.letta.gateway import ForeignAnswer, ForeignCall
from bridge.passthrough.agent_lists import MOST_PAGES, PAGE_SIZE, USUAL_LIMIT, fill_list_of_agents
from bridge.turn import JsonObject

NAMES = frozenset({"mine", "agent-7"})
HEADERS = [("Content-Type", "application/json"), ("content-length", "1"), ("X-Odd", "1")]


def answer_with(value: Any, status: int = 200) -> ForeignAnswer:
    content = value if isinstance(value, bytes) else json.dumps(value).encode()
    return ForeignAnswer(status, HEADERS, ForeignBody([content]))


class Letta:
    """A server with agents. `mine` are the numbers of those with the name "mine". `pages`: it knows `after`."""

    def __init__(self, count: int, mine: Callable[[int], bool], *, pages: bool = True) -> None:
        self.agents = [{"id": f"agent-{number}", "name": "mine" if mine(number) else "x"} for number in range(count)]
        self.queries: list[dict[str, list[str]]] = []
        self._pages = pages

    def fetch(self, call: ForeignCall) -> ForeignAnswer:
        query = parse_qs(call.query)
        self.queries.append(query)
        ids = [agent["id"] for agent in self.agents]
        start = ids.index(query["after"][0]) + 1 if self._pages and "after" in query else 0
        return answer_with(self.agents[start : start + int(query.get("limit", [str(USUAL_LIMIT)])[0])])

    def list(self, query: str) -> list[JsonObject]:
        call = ForeignCall("GET", "/v1/agents/", query)
        return json.loads(fill_list_of_agents(call, self.fetch(call), NAMES, self.fetch).read(10**9))


@pytest.mark.parametrize("limit", [1, 3, 50])
def test_a_page_has_as_many_agents_as_the_key_may_see(limit: int) -> None:
    letta = Letta(1_000, lambda number: number % 10 == 9)
    rows = letta.list(f"limit={limit}&tags=a&tags=b")
    assert [row["id"] for row in rows] == [
        f"agent-{number}" for number in range(1_000) if number % 10 == 9 or number == 7
    ][:limit]
    assert all(query["tags"] == ["a", "b"] for query in letta.queries)


def test_a_list_ends_where_lettas_ends() -> None:
    letta = Letta(440, lambda number: number == 439)
    assert [row["id"] for row in letta.list("")] == ["agent-7", "agent-439"]
    assert len(letta.queries) == 4  # 50, and three times 200


def test_a_full_page_needs_no_other() -> None:
    letta = Letta(450, lambda number: True)
    assert len(letta.list("limit=5&after=agent-9")) == 5
    assert letta.queries == [{"limit": ["5"], "after": ["agent-9"]}]


def test_a_server_with_one_page_only_is_asked_once_more() -> None:
    letta = Letta(PAGE_SIZE, lambda number: number == 60, pages=False)
    assert [row["id"] for row in letta.list("limit=10")] == ["agent-7", "agent-60"]
    letta = Letta(10_000, lambda number: False, pages=False)
    letta.list("limit=10")
    assert len(letta.queries) == 3


def test_a_very_long_list_is_not_read_to_its_end() -> None:
    letta = Letta(PAGE_SIZE * (MOST_PAGES + 5), lambda number: False)
    assert [row["id"] for row in letta.list("limit=10")] == ["agent-7"]
    assert len(letta.queries) == MOST_PAGES + 1


def test_a_filled_page_keeps_lettas_headers_but_its_length() -> None:
    letta = Letta(10, lambda number: True)
    call = ForeignCall("GET", "/v1/agents/", "limit=2")
    assert fill_list_of_agents(call, letta.fetch(call), NAMES, letta.fetch).headers == [HEADERS[0], HEADERS[2]]


@pytest.mark.parametrize(
    ("call", "status", "agents"),
    [
        (ForeignCall("GET", "/v1/agents/"), 200, ALL),
        (ForeignCall("GET", "/v1/agents/"), 500, NAMES),
        (ForeignCall("GET", "/v1/agents/agent-1"), 200, NAMES),
        (ForeignCall("HEAD", "/v1/agents/"), 200, NAMES),
        (ForeignCall("GET", "/v1/agents/", "before=agent-5"), 200, NAMES),
        (ForeignCall("GET", "/v1/agents/", f"limit={PAGE_SIZE + 1}"), 200, NAMES),
    ],
)
def test_other_answers_are_not_read(call: ForeignCall, status: int, agents: frozenset[str]) -> None:
    answer = answer_with([], status)
    assert fill_list_of_agents(call, answer, agents, Letta(0, bool).fetch) is answer


@pytest.mark.parametrize("value", [b"no JSON", {"agents": []}, [5]])
def test_what_is_no_list_of_agents_is_not_passed_on(value: Any) -> None:
    with pytest.raises(errors.LettaError):
        fill_list_of_agents(ForeignCall("GET", "/v1/agents/"), answer_with(value), NAMES, Letta(0, bool).fetch)
