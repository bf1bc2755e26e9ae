"""The group of all commands: `letta-bridge ...` or `flask bridge ...`. Tables for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Callable

import click

from bridge import __version__
from bridge.cli.agents import add_agents
from bridge.cli.chat import add_chat
from bridge.cli.completion import add_completion
from bridge.cli.doctor import add_doctor
from bridge.cli.service import Service
from bridge.cli.settings import add_settings
from bridge.cli.tools import add_tools
from bridge.config import Settings
from bridge.operation.parts import Parts


def make_command_group(settings: Callable[[], Settings], parts: Callable[[Settings], Parts]) -> click.Group:
    """Returns the group of all commands. The settings and the parts are made only when a command needs them."""

    service = Service(settings, parts)

    @click.group("bridge", help="Look after the Letta tool bridge.")
    @click.version_option(__version__, prog_name="letta-tool-bridge")
    def group() -> None:
        """Does nothing itself: click runs it before each subcommand."""

    for add in (add_doctor, add_tools, add_agents, add_settings, add_chat, add_completion):
        add(group, service)
    return group


def is_flask_command_line() -> bool:
    """Returns whether Flask's command line loads the app only to look for a command in it, not to serve."""
    context = click.get_current_context(silent=True)
    return context is not None and type(context.command).__name__ == "FlaskGroup"
