"""The command `doctor`, which checks the bridge and says what to do about each fault."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict

import click

from bridge.cli.service import Service
from bridge.cli.showing import SETTINGS_ADVICE, as_json, show_json, to_printable
from bridge.errors import BridgeError, SettingsError
from bridge.operation.doctor import Check, run_checks

MARKS = {"good": ("✓", "green"), "warning": ("!", "yellow"), "bad": ("✗", "red")}


def add_doctor(group: click.Group, service: Service) -> None:
    @group.command("doctor", help="Check everything, down to a whole tool round trip on an agent made for it.")
    @click.option("--agent", default="", metavar="ID", help="The agent whose model the round trip uses.")
    @as_json
    def doctor(agent: str, as_json: bool) -> None:
        found: list[Check] = []
        for check in _run_checks(service, agent):
            found.append(check)
            if not as_json:
                _print_check(check)
        if as_json:
            show_json([asdict(check) for check in found])
        sys.exit(any(check.verdict == "bad" for check in found))


def _run_checks(service: Service, agent: str) -> Iterator[Check]:
    """Yields the checks. A failure that stops them becomes a last check, so that it is in the JSON, too."""
    try:
        yield from run_checks(service.parts, agent)
    except SettingsError as faults:
        yield Check("settings", "bad", str(faults), SETTINGS_ADVICE)
    except BridgeError as failure:
        yield Check("doctor", "bad", failure.message, "Put that right, then run the doctor again.")


def _print_check(check: Check) -> None:
    mark, colour = MARKS[check.verdict]
    click.echo(f"{click.style(mark, fg=colour)} {to_printable(check.name)}: {to_printable(check.found)}")
    if check.verdict != "good" and check.advice:
        click.echo(f"    {check.advice}")
