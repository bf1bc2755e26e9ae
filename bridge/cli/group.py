"""The commands for a terminal: `python -m bridge ...` or `flask bridge ...`. Tables for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import click

from bridge import __version__
from bridge.cli.agents import add_agents
from bridge.cli.chat import add_chat
from bridge.cli.completion import add_completion
from bridge.cli.doctor import add_doctor
from bridge.cli.settings import add_settings
from bridge.cli.tools import add_tools
from bridge.config import Settings
from bridge.operation.parts import Parts


class Shop:
    """What commands work with, made when the first of them asks: some need no Letta, and some no settings at all."""

    def __init__(self, settings: Callable[[], Settings], parts: Callable[[Settings], Parts]) -> None:
        self._make_settings = settings
        self._make_parts = parts

    @cached_property
    def settings(self) -> Settings:
        return self._make_settings()

    @cached_property
    def parts(self) -> Parts:
        return self._make_parts(self.settings)


def commands(settings: Callable[[], Settings], parts: Callable[[Settings], Parts]) -> click.Group:
    shop = Shop(settings, parts)

    @click.group("bridge", help="Look after the Letta tool bridge.")
    @click.version_option(__version__, prog_name="letta-tool-bridge")
    def group() -> None:
        """Nothing by itself."""

    for add in (add_doctor, add_tools, add_agents, add_settings, add_chat, add_completion):
        add(group, shop)
    return group


def is_command_of_flask() -> bool:
    """Whether Flask's command line loads the app to find a command in it, which serves nobody."""
    context = click.get_current_context(silent=True)
    return context is not None and type(context.command).__name__ == "FlaskGroup"
