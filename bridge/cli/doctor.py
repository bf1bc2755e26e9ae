"""Says what is in order and what to do about the rest."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict

import click

from bridge.cli.showing import as_json, show_json, visible
from bridge.cli.tools import Shop
from bridge.errors import BridgeError, SettingsError
from bridge.operation.doctor import Check, examine

MARKS = {"good": ("✓", "green"), "warning": ("!", "yellow"), "bad": ("✗", "red")}


def add_doctor(group: click.Group, shop: Shop) -> None:
    @group.command("doctor", help="Check everything, down to a whole tool round trip on an agent made for it.")
    @click.option("--agent", default="", metavar="ID", help="The agent whose model the round trip thinks with.")
    @as_json
    def doctor(agent: str, as_json: bool) -> None:
        found: list[Check] = []
        for check in _examined(shop, agent):
            found.append(check)
            if not as_json:
                _tell(check)
        if as_json:
            show_json([asdict(check) for check in found])
        sys.exit(any(check.verdict == "bad" for check in found))


def _examined(shop: Shop, agent: str) -> Iterator[Check]:
    """What stops the examination is its last finding, so that programs are told all."""
    try:
        yield from examine(shop.parts, agent)
    except SettingsError as faults:
        yield Check("settings", "bad", str(faults), "Set them in the environment, or in a file .env.")
    except BridgeError as failure:
        yield Check("doctor", "bad", failure.message, "Put that right, then run the doctor again.")


def _tell(check: Check) -> None:
    mark, colour = MARKS[check.verdict]
    click.echo(f"{click.style(mark, fg=colour)} {visible(check.name)}: {visible(check.found)}")
    if check.verdict != "good" and check.advice:
        click.echo(f"    {check.advice}")
