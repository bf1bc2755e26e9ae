"""Searches, filters and sorts the list of tools, and divides it into pages. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from bridge.operation.overview import STATES, ToolRow

# Rows on a page.
PAGE = 100

# The values by which each column is sorted.
_KEYS: Mapping[str, Callable[[ToolRow], Any]] = {
    "name": lambda row: row.client_name.lower(),
    "server": lambda row: row.server_name.lower(),
    "state": lambda row: STATES.index(row.state),
    "agents": lambda row: len(row.agents),
    "created": lambda row: row.created,
    "used": lambda row: row.last_used,
    "calls": lambda row: row.calls,
    "results": lambda row: row.results,
    "errors": lambda row: row.errors,
}
# Filters in addition to the states of tools.
_FLAGS: Mapping[str, Callable[[ToolRow], bool]] = {
    "taken": lambda row: row.taken_by == "foreign",
    "errors": lambda row: row.errors > 0,
}
# The first click on these columns puts the largest values first.
_LARGE_FIRST = frozenset({"agents", "created", "used", "calls", "results", "errors"})


@dataclass(frozen=True, slots=True)
class ListingQuery:
    """The search, the filters, the order and the page that the address of the list asks for.

    `q` are words to search for. `state` is a state of tools or a filter in _FLAGS, `agent` an agent's id or name; "" in
    these three matches every tool. `sort` is the name of a column, with "-" before the name for falling order.
    """

    q: str = ""
    state: str = ""
    agent: str = ""
    sort: str = "name"
    page: int = 1

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, str]) -> ListingQuery:
        """Returns the query from the arguments of an address. An invalid or missing argument becomes the default."""
        state, sort, page = arguments.get("state", ""), arguments.get("sort", "name"), arguments.get("page", "1")
        return cls(
            q=arguments.get("q", "").strip()[:200],
            state=state if state in (*STATES, *_FLAGS) else "",
            agent=arguments.get("agent", "")[:100],
            sort=sort if sort.removeprefix("-") in _KEYS else "name",
            page=int(page) if page.isdecimal() and len(page) < 6 else 1,
        )

    @property
    def column(self) -> str:
        return self.sort.removeprefix("-")

    @property
    def falling(self) -> bool:
        return self.sort.startswith("-")

    def arguments_with(self, **changes: Any) -> dict[str, str]:
        """Returns the arguments of a link to the same list with `changes`, which are new values of the fields.

        The link leads to the first page, unless `changes` has a `page`. Arguments with the default value are left out.
        """
        changed = replace(self, **({"page": 1} | changes))
        defaults = asdict(ListingQuery())
        return {name: str(value) for name, value in asdict(changed).items() if value != defaults[name]}

    def arguments_sorted_by(self, column: str) -> dict[str, str]:
        """Returns the arguments of the link in a column's head, which sorts the list by this column.

        If the list is sorted by this column already, the link reverses the order.
        """
        if self.column == column:
            return self.arguments_with(sort=column if self.falling else f"-{column}")
        return self.arguments_with(sort=f"-{column}" if column in _LARGE_FIRST else column)

    def aria_sort(self, column: str) -> str:
        """Returns the value of the HTML attribute `aria-sort` of a column: its order, "none" if it has none."""
        if self.column != column:
            return "none"
        return "descending" if self.falling else "ascending"


@dataclass(frozen=True, slots=True)
class Listing:
    """One page of the rows that match a query.

    `found` is the number of rows that match, `total` the number of all rows. `page` is the number of this page, from 1
    to `pages`. `counts` has the number of all rows for each state and each filter in _FLAGS.
    """

    rows: Sequence[ToolRow]
    found: int
    total: int
    page: int
    pages: int
    counts: Mapping[str, int]


def make_listing(rows: Sequence[ToolRow], wanted: ListingQuery) -> Listing:
    """Returns the page that the query wants, of the rows that match the query. The last page if there are fewer pages.

    Rows with the same value in the sorted column are sorted by the client's name.
    """
    found = [row for row in rows if _matches_query(row, wanted)]
    found.sort(key=lambda row: (row.client_name.lower(), row.key))
    found.sort(key=_KEYS[wanted.column], reverse=wanted.falling)
    pages = max(1, -(-len(found) // PAGE))
    page = min(max(1, wanted.page), pages)
    counts = {state: sum(_has_state(row, state) for row in rows) for state in (*STATES, *_FLAGS)}
    return Listing(found[(page - 1) * PAGE : page * PAGE], len(found), len(rows), page, pages, counts)


def _matches_query(row: ToolRow, wanted: ListingQuery) -> bool:
    """Returns whether the tool has all words of the search, and the agent and the state that the query wants, if any.

    The words are searched in the tool's names, its digest and the names of its agents.
    """
    words = wanted.q.lower().split()
    text = f"{row.client_name} {row.server_name} {row.digest} {' '.join(agent.name for agent in row.agents)}".lower()
    if not all(word in text for word in words):
        return False
    if wanted.agent and all(wanted.agent not in (agent.id, agent.name) for agent in row.agents):
        return False
    return _has_state(row, wanted.state)


def _has_state(row: ToolRow, state: str) -> bool:
    """Returns whether the tool has the state `state`, or matches the filter in _FLAGS of this name. "" matches all."""
    return _FLAGS[state](row) if state in _FLAGS else state in ("", row.state)
