"""What is to be reached, and whether it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench.samples import BRIDGE, DIRECT, LITELLM, Samples

# How the figure comes about that a goal is for; None where a leg did not run.
Figure = Callable[[Samples, str, str], float | None]


def plain(samples: Samples, lane: str, measure: str) -> float | None:
    return samples.middle(lane, measure, BRIDGE)


def added(samples: Samples, lane: str, measure: str) -> float | None:
    """What the bridge adds to the direct way."""
    ours, theirs = samples.middle(lane, measure, BRIDGE), samples.middle(lane, measure, DIRECT)
    return None if ours is None or theirs is None else ours - theirs


def times_more(samples: Samples, lane: str, measure: str) -> float | None:
    """How many times as much as LiteLLM."""
    ours, theirs = samples.middle(lane, measure, BRIDGE), samples.middle(lane, measure, LITELLM)
    return None if not ours or not theirs else ours / theirs


def times_less(samples: Samples, lane: str, measure: str) -> float | None:
    """How many times as little as LiteLLM."""
    more = times_more(samples, lane, measure)
    return None if more is None else 1 / more


@dataclass(frozen=True, slots=True)
class Goal:
    lane: str
    measure: str
    words: str
    figure: Figure
    limit: float
    at_least: bool = False

    def reached(self, samples: Samples) -> tuple[float, bool] | None:
        """The figure, and whether it is good enough."""
        figure = self.figure(samples, self.lane, self.measure)
        if figure is None:
            return None
        return figure, figure >= self.limit if self.at_least else figure <= self.limit


GOALS = (
    Goal("alone", "p50 ms", "added <= 1.5 ms", added, 1.5),
    Goal("ten", "requests/s", ">= 700", plain, 700, at_least=True),
    Goal("ten", "requests/s", ">= 5 x LiteLLM", times_more, 5, at_least=True),
    Goal("50 streams", "first p50 ms", "added <= 2 ms", added, 2),
    Goal("50 streams", "first p99 ms", "added <= 8 ms", added, 8),
    Goal("50 streams", "lost", "0", plain, 0),
    Goal("50 streams", "CPU µs a frame", "<= 1/5 of LiteLLM", times_less, 5, at_least=True),
    Goal("200 streams", "lost", "0", plain, 0),
    Goal("200 streams", "CPU µs a frame", "<= 1/5 of LiteLLM", times_less, 5, at_least=True),
    Goal("start", "first answer s", "<= 1.5 s", plain, 1.5),
    Goal("memory", "idle MB", "<= 120 MB", plain, 120),
    Goal("memory", "idle after them MB", "<= 120 MB", plain, 120),
    Goal("memory", "more for the first 100 streams MB", "<= 8 MB", plain, 8),
    Goal("memory", "more for 100 streams again MB", "<= 8 MB", plain, 8),
    Goal("50 tools", "unchanged: more calls than without tools", "0", plain, 0),
)
