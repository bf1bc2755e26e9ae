"""Filters the list of turns by agent, outcome, key and time. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime

from bridge.history.records import TurnRecord

# Turns on a page.
PAGE = 50
# The filter for all errors, beside the outcomes themselves.
FAILED = "failed"
# In an address, the key's name of turns without a key.
NO_KEY = "-"


@dataclass(frozen=True, slots=True)
class TurnQuery:
    """What the address of the list asks for. "" matches every turn. `agent` is an id or a name, `outcome` an outcome or
    FAILED, `key` a key's name or NO_KEY. `since` and `until` are times in ISO 8601, in UTC if they name no zone.
    """

    agent: str = ""
    outcome: str = ""
    key: str = ""
    since: str = ""
    until: str = ""
    page: int = 1

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, str]) -> TurnQuery:
        """Returns the query in the arguments of an address. An invalid or missing argument becomes the default."""
        page = arguments.get("page", "1")
        return cls(
            agent=arguments.get("agent", "")[:200],
            outcome=arguments.get("outcome", "")[:100],
            key=arguments.get("key", "")[:200],
            since=_valid_time(arguments.get("since", "")),
            until=_valid_time(arguments.get("until", "")),
            page=int(page) if page.isdecimal() and len(page) < 6 else 1,
        )

    @property
    def filters(self) -> bool:
        """Whether the query leaves out any turn."""
        return replace(self, page=1) != TurnQuery()

    def arguments_with(self, **changes: object) -> dict[str, str]:
        """Returns the arguments of this query with `changes`. The page becomes 1, unless `changes` has a `page`."""
        changed = asdict(self) | {"page": 1} | changes
        defaults = asdict(TurnQuery())
        return {name: str(value) for name, value in changed.items() if value != defaults[name]}

    def matches(self, turn: TurnRecord) -> bool:
        return (
            (not self.agent or self.agent in (turn.agent_id, turn.agent_name))
            and (not self.outcome or self.outcome == turn.outcome or (self.outcome == FAILED and turn.failed))
            and (not self.key or self.key == (turn.key_name or NO_KEY))
            and (not self.since or turn.started >= _unix_time(self.since))
            and (not self.until or turn.started <= _unix_time(self.until))
        )


@dataclass(frozen=True, slots=True)
class TurnListing:
    """One page of the turns that match a query. `found` counts those that match, `total` all that the history has."""

    turns: Sequence[TurnRecord]
    found: int
    total: int
    page: int
    pages: int


def make_turn_listing(turns: Sequence[TurnRecord], wanted: TurnQuery) -> TurnListing:
    """Returns the page that the query wants, or the last page if there are fewer."""
    found = [turn for turn in turns if wanted.matches(turn)]
    pages = max(1, -(-len(found) // PAGE))
    page = min(max(1, wanted.page), pages)
    return TurnListing(found[(page - 1) * PAGE : page * PAGE], len(found), len(turns), page, pages)


def _valid_time(text: str) -> str:
    """Returns the time as text, "" if it is no time that can be compared."""
    try:
        _unix_time(text)
    except (ValueError, OverflowError):
        return ""
    return text


def _unix_time(text: str) -> float:
    found = datetime.fromisoformat(text)
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
