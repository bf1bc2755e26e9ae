"""Reads the data of a page from Letta and the history. A failure becomes a warning on the page, where possible."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from bridge.errors import LettaError, StoreUnavailable
from bridge.history.activity import Activity
from bridge.operation.parts import Parts
from bridge.operation.probe import OK
from bridge.operation.snapshots import Snapshot

Known = TypeVar("Known")


@dataclass(slots=True)
class PageData:
    """The sources of one page's data, for one request at the Unix time `now`.
    `origin` is the bridge's address, as the browser reached it, without a slash at the end.
    `warnings` are sentences that say what could not be read; the page shows them. `strict`: whatever can't be read
    raises its error instead, because the data has no place for warnings. `polled`: a page that is open asks again and
    again, so Letta is asked for nothing but the snapshots.
    """

    parts: Parts
    arguments: Mapping[str, str] = field(default_factory=dict)
    now: float = field(default_factory=time.time)
    warnings: list[str] = field(default_factory=list)
    strict: bool = False
    polled: bool = False
    origin: str = ""

    def snapshot(self) -> Snapshot:
        """Returns the tools and agents on Letta. If Letta fails, the snapshot is older, and a warning is added."""
        view = self.parts.snapshots.view()
        if view.snapshot is None or (self.strict and view.failure is not None):
            raise view.failure or LettaError("The Letta server could not be read.")
        trouble = view.failure.message if view.failure else self.letta_trouble()
        if trouble:
            age = int(self.now - view.snapshot.at)
            self.warnings.append(f"{trouble} What you see of it is {age} s old.")
        return view.snapshot

    def letta_trouble(self) -> str:
        """Returns what is wrong with Letta as /readyz knows it, "" if it answers."""
        found = self.parts.letta_probe.find()
        if found.state == OK:
            return ""
        return found.message or f"The Letta server could not be checked: {found.state}."

    def read_history(self, ask: Callable[[Activity], Known]) -> Known | None:
        """Returns what `ask` reads from the history. If the store fails, adds one warning and returns None."""
        try:
            return ask(self.parts.activity)
        except StoreUnavailable as failure:
            if self.strict:
                raise
            warning = f"{failure.message} So the history is missing here."
            if warning not in self.warnings:
                self.warnings.append(warning)
            return None
