"""Fills a page of a list of agents for a key that may see only some: Letta counts its `limit` before the bridge takes
the others out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from urllib.parse import parse_qsl, urlencode

from bridge.directory import Visible, sees
from bridge.letta.foreign import ForeignBody
from bridge.letta.gateway import ForeignAnswer, ForeignCall
from bridge.letta.rows import agent_summary_from_row
from bridge.letta.trouble import make_error
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
    found = visible_rows(first, agents)
    others = [pair for pair in query if pair[0] not in ("limit", "after")]
    is_short = len(found) < limit <= len(first)
    for page in (
        _pages(names.get("after", ""), lambda after: fetch(_page_call(call, others, after))) if is_short else ()
    ):
        known = {row.get("id") for row in found}
        found += [row for row in visible_rows(page, agents) if row.get("id") not in known]
        if len(found) >= limit:
            break
    headers = [(name, text) for name, text in answer.headers if name.lower() != "content-length"]
    return replace(answer, headers=headers, pieces=ForeignBody([json.dumps(found[:limit]).encode()]))


def _pages(after: str, ask: Callable[[str], ForeignAnswer]) -> Iterator[list[JsonObject]]:
    """Yields large pages, each with the agents that no page before had. The first begins where the client's does: Letta
    0.6 may leave agents out after another one that was made in the same second.
    """
    seen: set[str] = set()
    for _ in range(MOST_PAGES):
        rows = _read_page(ask(after))
        page = [row for row in rows if str(row.get("id")) not in seen]
        seen |= {str(row.get("id")) for row in page}
        yield page
        if len(rows) < PAGE_SIZE or not page:
            return
        after = str(page[-1].get("id"))


def _page_call(call: ForeignCall, others: list[tuple[str, str]], after: str) -> ForeignCall:
    more = {"limit": str(PAGE_SIZE), **({"after": after} if after else {})}
    return replace(call, query=urlencode([*others, *more.items()]))


def _read_page(answer: ForeignAnswer) -> list[JsonObject]:
    content = answer.read(LONGEST_PAGE)
    try:
        rows = json.loads(content)
    except (ValueError, RecursionError) as fault:
        raise make_error("not Letta") from fault
    if answer.status != 200 or not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise make_error("not Letta")
    return rows


def visible_rows(rows: list[JsonObject], agents: Visible) -> list[JsonObject]:
    return [row for row in rows if sees(agents, agent_summary_from_row(row))]
