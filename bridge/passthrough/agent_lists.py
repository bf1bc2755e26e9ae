"""Fills a page of a list of agents for a key that may see only some: Letta counts its `limit` before the bridge takes
the others out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from urllib.parse import parse_qsl, urlencode

from bridge.directory import Visible
from bridge.errors import LettaError
from bridge.letta.failures import NOT_LETTA
from bridge.letta.foreign import ForeignBody
from bridge.letta.gateway import ForeignAnswer, ForeignCall
from bridge.turn import JsonObject

# How many agents Letta lists if a request does not say it.
USUAL_LIMIT = 50
# How many agents are asked for at once to fill a page, and how often. A request for more is not filled.
PAGE_SIZE = 200
MOST_PAGES = 20
# The most bytes of one answer.
LONGEST_PAGE = 64_000_000

Fetch = Callable[[ForeignCall], ForeignAnswer]


def fill_list_of_agents(call: ForeignCall, answer: ForeignAnswer, agents: Visible, fetch: Fetch) -> ForeignAnswer:
    """Returns the answer to a list of agents with those that a key may see, as many as the call asks for. Reads on
    until the page is full or the list ends, or MOST_PAGES were read. Returns any other answer as it is, also that to a
    list which is read backwards, with `before`.
    """
    query = parse_qsl(call.query, keep_blank_values=True)
    names = dict(query)
    limit = int(names["limit"]) if names.get("limit", "").isdecimal() else USUAL_LIMIT
    is_list = (call.verb, call.path.removesuffix("/")) == ("GET", "/v1/agents") and answer.status == 200
    if not (agents and is_list and limit <= PAGE_SIZE) or "before" in names:
        return answer
    first = _read_page(answer)
    found = _visible_rows(first, agents)
    others = [pair for pair in query if pair[0] not in ("limit", "after")]
    pages = _pages_after(first, lambda last: fetch(_page_call(call, others, last))) if len(first) >= limit else ()
    for page in pages if len(found) < limit else ():
        found += _visible_rows(page, agents)
        if len(found) >= limit:
            break
    headers = [(name, text) for name, text in answer.headers if name.lower() != "content-length"]
    return replace(answer, headers=headers, pieces=ForeignBody([json.dumps(found[:limit]).encode()]))


def _pages_after(first: list[JsonObject], ask: Callable[[str], ForeignAnswer]) -> Iterator[list[JsonObject]]:
    """Yields the pages after the first one, each with the agents that no page before had."""
    page, seen = first, {row.get("id") for row in first}
    for _ in range(MOST_PAGES):
        rows = _read_page(ask(str(page[-1].get("id"))))
        page = [row for row in rows if row.get("id") not in seen]
        seen |= {row.get("id") for row in page}
        yield page
        if len(rows) < PAGE_SIZE or not page:
            return


def _page_call(call: ForeignCall, others: list[tuple[str, str]], last: str) -> ForeignCall:
    return replace(call, query=urlencode([*others, ("limit", str(PAGE_SIZE)), ("after", last)]))


def _read_page(answer: ForeignAnswer) -> list[JsonObject]:
    content = answer.read(LONGEST_PAGE)
    try:
        rows = json.loads(content)
    except (ValueError, RecursionError) as fault:
        raise LettaError(NOT_LETTA) from fault
    if answer.status != 200 or not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise LettaError(NOT_LETTA)
    return rows


def _visible_rows(rows: list[JsonObject], agents: Visible) -> list[JsonObject]:
    return [row for row in rows if not agents.isdisjoint({row.get("id"), row.get("name")})]
