"""What the pages are made from, for one request."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from bridge.errors import LettaError, StoreUnavailable
from bridge.history.activity import Activity
from bridge.operation.parts import Parts
from bridge.operation.snapshots import Snapshot

Known = TypeVar("Known")


@dataclass(slots=True)
class PageData:
    """`warnings` are what the page has to say about what it could not find out."""

    parts: Parts
    now: float = field(default_factory=time.time)
    warnings: list[str] = field(default_factory=list)

    def snapshot(self) -> Snapshot:
        """The server's state; raises why there is none. An older one is shown with a warning."""
        view = self.parts.snapshots.view()
        if view.snapshot is None:
            raise view.failure or LettaError("The Letta server could not be read.")
        if view.failure is not None:
            age = int(self.now - view.snapshot.at)
            self.warnings.append(f"{view.failure.message} What you see of it is {age} s old.")
        return view.snapshot

    def recall(self, ask: Callable[[Activity], Known], nothing: Callable[[], Known]) -> Known:
        """What the history says. A page does without it."""
        try:
            return ask(self.parts.activity)
        except StoreUnavailable as failure:
            warning = f"{failure.message} So the history is missing here."
            if warning not in self.warnings:
                self.warnings.append(warning)
            return nothing()
