"""The table at the end of a run: which scenario passed on which server with which type of agent."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

NODE = re.compile(r"tests/real/test_(?P<scenario>\w+)\.py::\w+\[(?P<version>\d+\.\d+\.\d+)(?:-(?P<agent>\w+_agent))?")
ANY = "(any)"


@dataclass(frozen=True, slots=True, order=True)
class Server:
    """A row: a version, by number, and a type of agent; tests that make their own agents count under ANY."""

    numbers: tuple[int, ...]
    agent: str

    @property
    def version(self) -> str:
        return ".".join(map(str, self.numbers))


def table(outcomes: Iterable[tuple[str, bool]]) -> list[str]:
    """Returns Markdown lines from pairs of a test's name and whether it passed. Other tests are ignored."""
    passed: Counter[tuple[str, Server]] = Counter()
    ran: Counter[tuple[str, Server]] = Counter()
    for name, good in outcomes:
        found = NODE.match(name)
        if found is None:
            continue
        place = found["scenario"], Server(tuple(map(int, found["version"].split("."))), found["agent"] or ANY)
        ran[place] += 1
        passed[place] += good
    if not ran:
        return []
    scenarios = sorted({scenario for scenario, _ in ran})
    lines = [
        f"| version | agent | {' | '.join(scenario.replace('_', ' ') for scenario in scenarios)} |",
        "|---" * (len(scenarios) + 2) + "|",
    ]
    for server in sorted({server for _, server in ran}):
        cells = (_cell(passed[scenario, server], ran[scenario, server]) for scenario in scenarios)
        lines.append(f"| {server.version} | {server.agent} | {' | '.join(cells)} |")
    return lines


def _cell(passed: int, ran: int) -> str:
    if not ran:
        return ""
    return f"{passed}" if passed == ran else f"**{passed} of {ran}**"
