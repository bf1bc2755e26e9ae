"""What was measured: for each lane, measure and leg one figure a round."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median

DIRECT, BRIDGE, LITELLM = "direct", "bridge", "LiteLLM"
LEGS = (DIRECT, BRIDGE, LITELLM)


class Samples:
    """`busy` is the part of the machine that others used while each lane ran. The named lanes come first in a table."""

    def __init__(self, lanes: Sequence[str] = ()) -> None:
        self._lanes = list(lanes)
        self._figures: defaultdict[tuple[str, str, str], list[float]] = defaultdict(list)
        self.busy: list[float] = []

    def add(self, lane: str, leg: str, measured: Mapping[str, float]) -> None:
        for measure, figure in measured.items():
            self._figures[lane, measure, leg].append(figure)

    def of(self, lane: str, measure: str, leg: str) -> Sequence[float]:
        return self._figures.get((lane, measure, leg), ())

    def middle(self, lane: str, measure: str, leg: str) -> float | None:
        found = self.of(lane, measure, leg)
        return median(found) if found else None

    def rows(self) -> list[tuple[str, str]]:
        rows = list(dict.fromkeys((lane, measure) for lane, measure, _ in self._figures))
        return sorted(rows, key=lambda row: self._lanes.index(row[0]) if row[0] in self._lanes else len(self._lanes))

    def as_json(self) -> dict[str, dict[str, list[float]]]:
        told: defaultdict[str, dict[str, list[float]]] = defaultdict(dict)
        for (lane, measure, leg), figures in self._figures.items():
            told[f"{lane}: {measure}"][leg] = figures
        return dict(told)
