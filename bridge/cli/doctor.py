"""Says what is in order and what to do about the rest."""

from __future__ import annotations

import sys
from dataclasses import asdict

import click

from bridge.cli.showing import as_json, show_json, telling_failures, visible
from bridge.cli.tools import Shop
from bridge.errors import SettingsError
from bridge.operation.doctor import Check, examine

MARKS = {"good": ("✓", "green"), "warning": ("!", "yellow"), "bad": ("✗", "red")}


def add_doctor(group: click.Group, shop: Shop) -> None:
    @group.command("doctor", help="Check everything, down to a whole tool round trip on an agent made for it.")
    @click.option("--agent", default="", metavar="ID", help="The agent whose model the round trip thinks with.")
    @as_json
    @telling_failures
    def doctor(agent: str, as_json: bool) -> None:
        found: list[Check] = []
        try:
            for check in examine(shop.parts, agent):
                found.append(check)
                if not as_json:
                    _tell(check)
        except SettingsError as faults:
            found.append(Check("settings", "bad", str(faults), "Set them in the environment, or in a file .env."))
            if not as_json:
                _tell(found[-1])
        if as_json:
            show_json([asdict(check) for check in found])
        sys.exit(any(check.verdict == "bad" for check in found))


def _tell(check: Check) -> None:
    mark, colour = MARKS[check.verdict]
    click.echo(f"{click.style(mark, fg=colour)} {visible(check.name)}: {visible(check.found)}")
    if check.verdict != "good" and check.advice:
        click.echo(f"    {check.advice}")
