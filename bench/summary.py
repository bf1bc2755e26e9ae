"""Writes the short table for users: what the bridge adds to a turn, and what two cores carry."""

from __future__ import annotations

from dataclasses import dataclass

from bench.samples import BRIDGE, DIRECT, FLOOR, LITELLM, Samples
from bench.table import number

COLUMNS = {
    "through the bridge": BRIDGE,
    "the least service": FLOOR,
    "through LiteLLM": LITELLM,
    "without any": DIRECT,
}


@dataclass(frozen=True, slots=True)
class Line:
    """What a user wants to know, and the figure that says it, in the unit that users see."""

    words: str
    scenario: str
    measure: str
    unit: str = "ms"


LINES = (
    Line("a turn, one after the other", "one client", "p50 ms"),
    Line("turns a second, ten clients at once", "ten clients", "requests/s", ""),
    Line("processor time of a turn", "ten clients", "CPU ms a request"),
    Line("until the first piece of text, 50 streams at once", "50 streams", "first p50 ms"),
    Line("until the first piece of text, 200 streams at once", "200 streams", "first p50 ms"),
    Line("delay of a piece, 50 streams at once", "50 streams", "delay p50 ms"),
    Line("delay of a piece, 200 streams at once", "200 streams", "delay p50 ms"),
    Line("processor time of a piece", "50 streams", "CPU µs a frame", "µs"),
    Line("pieces lost, 200 streams at once", "200 streams", "lost", ""),
    Line("start to first answer", "start", "first answer s", "s"),
    Line("memory, before the first stream", "memory", "idle MB", "MB"),
    Line("more memory for the first 100 streams", "memory", "more for the first 100 streams MB", "MB"),
    Line("a turn with 512 tools", "512 tools in the request", "ms"),
    Line("a turn with 2,000 messages in the transcript", "2,000 messages in the transcript", "ms"),
    Line("a turn on a server with 1,000 agents", "1,000 agents on the server", "ms"),
    Line(
        "a turn that brings 50 new tools, 20 ms for each call to Letta", "50 tools", "50 new tools: ms at 20 ms a call"
    ),
    Line("a plain turn with a real Letta", "real Letta, plain turn", "ms"),
    Line("a tool call and its result with a real Letta", "real Letta, call and result", "ms"),
)


def summary(samples: Samples) -> str:
    """Returns a Markdown table of the medians. A figure that was not measured has no line."""
    lines = [_row("", *COLUMNS), _row(*("---" for _ in range(len(COLUMNS) + 1)))]
    for line in LINES:
        found = [samples.median_of(line.scenario, line.measure, system) for system in COLUMNS.values()]
        if found[0] is not None:
            cells = ("" if figure is None else f"{number(figure)} {line.unit}".rstrip() for figure in found)
            lines.append(_row(line.words, *cells))
    return "\n".join(lines)


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"
