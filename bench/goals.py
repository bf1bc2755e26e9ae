"""The goals of the benchmark, and whether they are met."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench.samples import BRIDGE, DIRECT, FLOOR, LITELLM, Samples

# Computes the figure of a goal; None if a system was not measured.
Figure = Callable[[Samples, str, str], float | None]


def plain(samples: Samples, scenario: str, measure: str) -> float | None:
    return samples.median_of(scenario, measure, BRIDGE)


def added(samples: Samples, scenario: str, measure: str) -> float | None:
    """Returns how much the bridge adds to direct requests."""
    ours, theirs = samples.median_of(scenario, measure, BRIDGE), samples.median_of(scenario, measure, DIRECT)
    return None if ours is None or theirs is None else ours - theirs


def to_floor(samples: Samples, scenario: str, measure: str) -> float | None:
    """Returns how many times the floor's figure."""
    ours, theirs = samples.median_of(scenario, measure, BRIDGE), samples.median_of(scenario, measure, FLOOR)
    return None if not ours or not theirs else ours / theirs


def times_more(samples: Samples, scenario: str, measure: str) -> float | None:
    """Returns how many times more than LiteLLM."""
    ours, theirs = samples.median_of(scenario, measure, BRIDGE), samples.median_of(scenario, measure, LITELLM)
    return None if not ours or not theirs else ours / theirs


def times_less(samples: Samples, scenario: str, measure: str) -> float | None:
    """Returns how many times less than LiteLLM."""
    more = times_more(samples, scenario, measure)
    return None if more is None else 1 / more


@dataclass(frozen=True, slots=True)
class Goal:
    scenario: str
    measure: str
    words: str
    figure: Figure
    limit: float
    at_least: bool = False

    def reached(self, samples: Samples) -> tuple[float, bool] | None:
        """Returns the figure, and whether it meets the goal."""
        figure = self.figure(samples, self.scenario, self.measure)
        if figure is None:
            return None
        return figure, figure >= self.limit if self.at_least else figure <= self.limit


GOALS = (
    Goal("one client", "p50 ms", "<= 1.6 x floor", to_floor, 1.6),
    Goal("ten clients", "requests/s", ">= 0.55 x floor", to_floor, 0.55, at_least=True),
    Goal("ten clients", "requests/s", ">= 2.5 x LiteLLM", times_more, 2.5, at_least=True),
    Goal("ten clients", "CPU ms a request", "<= 1.7 x floor", to_floor, 1.7),
    Goal("50 streams", "first p50 ms", "added <= 2.5 ms", added, 2.5),
    Goal("50 streams", "first p99 ms", "added <= 6 ms", added, 6),
    Goal("50 streams", "lost", "0", plain, 0),
    Goal("50 streams", "CPU µs a frame", "<= 1/5 of LiteLLM", times_less, 5, at_least=True),
    Goal("200 streams", "first p50 ms", "added <= 40 ms", added, 40),
    Goal("200 streams", "lost", "0", plain, 0),
    Goal("200 streams", "CPU µs a frame", "<= 1/5 of LiteLLM", times_less, 5, at_least=True),
    Goal("start", "first answer s", "<= 1.5 s", plain, 1.5),
    Goal("memory", "idle MB", "<= 120 MB", plain, 120),
    Goal("memory", "more for the first 100 streams MB", "<= 15 MB", plain, 15),
    Goal("memory", "more for 100 streams again MB", "<= 8 MB", plain, 8),
    Goal("50 tools", "unchanged: more calls than without tools", "0", plain, 0),
    Goal("512 tools in the request", "ms", "<= 12 ms", plain, 12),
    Goal("2,000 messages in the transcript", "ms", "<= 30 ms", plain, 30),
)
