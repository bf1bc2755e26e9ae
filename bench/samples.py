"""The measured figures: one a round for each scenario, measure and system."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median

DIRECT, FLOOR, BRIDGE, LITELLM = "direct", "floor", "bridge", "LiteLLM"
SYSTEMS = (DIRECT, FLOOR, BRIDGE, LITELLM)


class Samples:
    """Collects figures. `busy` is the part of the machine that other processes used, for each run of a scenario.

    The scenarios named at construction come first in the table.
    """

    def __init__(self, scenarios: Sequence[str] = ()) -> None:
        self._scenarios = list(scenarios)
        self._figures: defaultdict[tuple[str, str, str], list[float]] = defaultdict(list)
        self.busy: list[float] = []

    def add(self, scenario: str, system: str, measured: Mapping[str, float]) -> None:
        for measure, figure in measured.items():
            self._figures[scenario, measure, system].append(figure)

    def figures(self, scenario: str, measure: str, system: str) -> Sequence[float]:
        return self._figures.get((scenario, measure, system), ())

    def median_of(self, scenario: str, measure: str, system: str) -> float | None:
        found = self.figures(scenario, measure, system)
        return median(found) if found else None

    def rows(self) -> list[tuple[str, str]]:
        rows = list(dict.fromkeys((scenario, measure) for scenario, measure, _ in self._figures))
        order = {scenario: place for place, scenario in enumerate(self._scenarios)}
        return sorted(rows, key=lambda row: order.get(row[0], len(order)))

    def as_json(self) -> dict[str, dict[str, list[float]]]:
        by_name: defaultdict[str, dict[str, list[float]]] = defaultdict(dict)
        for (scenario, measure, system), figures in self._figures.items():
            by_name[f"{scenario}: {measure}"][system] = figures
        return dict(by_name)
