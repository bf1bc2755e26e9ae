"""The command `chat`: talk to an agent from the terminal, with tools that run here after you allow it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from bridge.cli.client import Bridge, RequestFailed, Talk
from bridge.cli.local_tools import BadTools, LocalTool, load
from bridge.cli.service import Service
from bridge.cli.showing import visible

SHOWN = 600
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def add_chat(group: click.Group, service: Service) -> None:
    @group.command("chat", help="Talk to AGENT through a running bridge, with tools of your own that run here.")
    @click.argument("agent")
    @click.option("--tools", "file", type=FILE, help="FILE.py: its functions; FILE.json: tools with a `command`.")
    @click.option("--say", "said", multiple=True, metavar="TEXT", help="Say this and end; may be repeated.")
    @click.option("--yes", is_flag=True, help="Run every call without asking.")
    @click.option("--turns", default=20, show_default=True, type=click.IntRange(1), help="Most turns for one answer.")
    @click.option("--url", envvar="BRIDGE_URL", default="http://localhost:8080", show_default=True, help="The bridge.")
    @click.option("--key", envvar="BRIDGE_KEY", default="", help="Its key; better in BRIDGE_KEY.")
    def chat(agent: str, file: Path | None, said: tuple[str, ...], yes: bool, turns: int, url: str, key: str) -> None:
        try:
            tools = load(file) if file else {}
        except BadTools as fault:
            raise click.ClickException(str(fault)) from fault
        runner = CallRunner(tools, yes)
        talk = Talk(Bridge(url, key), agent, [tool.schema for tool in tools.values()], runner.run, _print)
        for text in said or _typed(agent, list(tools)):
            _answer(talk, text, turns)


def _answer(talk: Talk, text: str, turns: int) -> None:
    try:
        done = talk.say(text, turns)
    except RequestFailed as failure:
        raise click.ClickException(visible(str(failure))) from failure
    click.echo()
    if not done:
        raise click.ClickException(f"The agent still calls tools after {turns} turns; see --turns.")


def _typed(agent: str, tools: list[str]) -> Iterator[str]:
    """Reads what is typed, until the end of the input."""
    click.echo(f"Talking to {visible(agent)}. Tools: {', '.join(tools) or 'none'}. End with Ctrl-D.", err=True)
    while True:
        try:
            text = input("> " if sys.stdin.isatty() else "")
        except EOFError:
            return
        if text.strip():
            yield text


def _print(piece: str) -> None:
    click.echo(visible(piece), nl=False)


class CallRunner:
    """Runs calls. Asks before each call, unless `yes`."""

    def __init__(self, tools: dict[str, LocalTool], yes: bool) -> None:
        self._tools = tools
        self._yes = yes

    def run(self, name: str, arguments: dict[str, Any]) -> tuple[str, bool]:
        tool = self._tools.get(name)
        if tool is None:
            return f"There is no tool {name!r} here.", False
        click.secho(f"\n→ {visible(tool.shown(arguments))}", fg="cyan", err=True)
        if not self._yes and not self._allowed():
            return "The user did not allow this call.", False
        text, worked = _run(tool, arguments)
        shown = text if len(text) <= SHOWN else f"{text[:SHOWN]}… ({len(text)} characters)"
        click.secho(f"← {visible(shown)}", fg="green" if worked else "red", err=True)
        return text, worked

    @staticmethod
    def _allowed() -> bool:
        try:
            return click.confirm("  run it?", err=True)
        except click.Abort:
            return False


def _run(tool: LocalTool, arguments: dict[str, Any]) -> tuple[str, bool]:
    """Turns what a tool raises into its result, so that the agent gets it and the conversation goes on."""
    try:
        return tool.run(arguments), True
    except subprocess.TimeoutExpired as fault:
        return f"The tool did not end within {fault.timeout:.0f} seconds.", False
    except Exception as fault:  # a tool may raise anything
        return f"{type(fault).__name__}: {fault}", False
