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
    "look_wrong": lambda row: row.look_wrong,
}
# Filters in addition to the states of tools.
_FLAGS: Mapping[str, Callable[[ToolRow], bool]] = {
    "taken": lambda row: row.taken_by == "foreign",
    "errors": lambda row: row.errors > 0,
    "look_wrong": lambda row: row.look_wrong > 0,
}
# The first click on these columns puts the largest values first.
_LARGE_FIRST = frozenset({"agents", "created", "used", "calls", "results", "errors", "look_wrong"})


@dataclass(frozen=True, slots=True)
class ListingQuery:
    """What the address of the list asks for. `q` are words to search for, `agent` is an id or a name.
    `state` is a state of tools or a filter in _FLAGS. "" in these three matches every tool.
    `sort` is the name of a column, with "-" before the name for falling order.
    """

    q: str = ""
    state: str = ""
    agent: str = ""
    sort: str = "name"
    page: int = 1

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, str]) -> ListingQuery:
        """Returns the query in the arguments of an address. An invalid or missing argument becomes the default."""
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
        """Returns the arguments of this query with `changes`. The page becomes 1, unless `changes` has a `page`."""
        changed = replace(self, **({"page": 1} | changes))
        defaults = asdict(ListingQuery())
        return {name: str(value) for name, value in asdict(changed).items() if value != defaults[name]}

    def arguments_sorted_by(self, column: str) -> dict[str, str]:
        """Returns the arguments that sort the list by this column, or reverse its order if it is sorted so already."""
        if self.column == column:
            return self.arguments_with(sort=column if self.falling else f"-{column}")
        return self.arguments_with(sort=f"-{column}" if column in _LARGE_FIRST else column)

    def aria_sort(self, column: str) -> str:
        if self.column != column:
            return "none"
        return "descending" if self.falling else "ascending"


@dataclass(frozen=True, slots=True)
class Listing:
    """One page of the rows that match a query. `found` counts the rows that match, `total` all rows.
    `counts` has the numbers of all rows for each state and each filter in _FLAGS.
    """

    rows: Sequence[ToolRow]
    found: int
    total: int
    page: int
    pages: int
    counts: Mapping[str, int]


def make_listing(rows: Sequence[ToolRow], wanted: ListingQuery) -> Listing:
    """Returns the page that the query wants, or the last page if there are fewer."""
    found = matching_tools(rows, wanted)
    pages = max(1, -(-len(found) // PAGE))
    page = min(max(1, wanted.page), pages)
    counts = {state: sum(_has_state(row, state) for row in rows) for state in (*STATES, *_FLAGS)}
    return Listing(found[(page - 1) * PAGE : page * PAGE], len(found), len(rows), page, pages, counts)


def matching_tools(rows: Sequence[ToolRow], wanted: ListingQuery) -> list[ToolRow]:
    """Returns all rows that the query wants, in its order."""
    found = [row for row in rows if _matches_query(row, wanted)]
    found.sort(key=lambda row: (row.client_name.lower(), row.key))
    found.sort(key=_KEYS[wanted.column], reverse=wanted.falling)
    return found


def _matches_query(row: ToolRow, wanted: ListingQuery) -> bool:
    """Returns whether the query wants the tool. Words are searched in its names, its digest and its agents' names."""
    words = wanted.q.lower().split()
    text = f"{row.client_name} {row.server_name} {row.digest} {' '.join(agent.name for agent in row.agents)}".lower()
    if not all(word in text for word in words):
        return False
    if wanted.agent and all(wanted.agent not in (agent.id, agent.name) for agent in row.agents):
        return False
    return _has_state(row, wanted.state)


def _has_state(row: ToolRow, state: str) -> bool:
    return _FLAGS[state](row) if state in _FLAGS else state in ("", row.state)
