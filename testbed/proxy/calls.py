"""The calls that went through the proxy."""

import json
import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

Outcome = Literal[
    "running",
    "answered",
    "refused",
    "reset",
    "dropped",
    "cut",
    "client left",
    "target refused",
    "target left",
    "proxy closed",
]


@dataclass
class ProxiedCall:
    """One request and its answer. `outcome` says how it ended for the client. Times are from time.time()."""

    number: int
    connection: int
    method: str
    path: str
    query: str = ""
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    raw: bytes = field(default=b"", repr=False)
    size: int = 0
    status: int | None = None
    received: int = 0
    faults: tuple[str, ...] = ()
    outcome: Outcome = "running"
    started: float = field(default_factory=time.time, repr=False)
    ended: float | None = field(default=None, repr=False)

    @cached_property
    def body(self) -> Any:
        """The request's JSON, or None if it has none or was too large to keep."""
        try:
            return json.loads(self.raw) if self.raw else None
        except (ValueError, RecursionError):
            return None

    @property
    def seconds(self) -> float | None:
        """The duration of the call, or None while it runs."""
        return None if self.ended is None else self.ended - self.started


class ConnectionEnds(Exception):
    """The connection ends here; `outcome` says how the call in progress ended."""

    def __init__(self, outcome: Outcome, reset: bool = False) -> None:
        super().__init__(outcome)
        self.outcome = outcome
        self.reset = reset
