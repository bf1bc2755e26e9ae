"""The command `chat`: lets you talk to an agent from the terminal. Tools run on this machine after you allow it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from bridge.cli.client import BridgeClient, RequestFailed, Talk
from bridge.cli.local_tools import BadTools, LocalTool, load_tools
from bridge.cli.service import Service
from bridge.cli.showing import to_printable

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
            tools = load_tools(file) if file else {}
        except BadTools as fault:
            raise click.ClickException(str(fault)) from fault
        runner = CallRunner(tools, yes)
        talk = Talk(BridgeClient(url, key), agent, [tool.schema for tool in tools.values()], runner.run, _print_text)
        for text in said or _read_typed_messages(agent, list(tools)):
            _say_and_print(talk, text, turns)


def _say_and_print(talk: Talk, text: str, turns: int) -> None:
    try:
        done = talk.say(text, turns)
    except RequestFailed as failure:
        raise click.ClickException(to_printable(str(failure))) from failure
    click.echo()
    if not done:
        raise click.ClickException(f"The agent still calls tools after {turns} turns; see --turns.")


def _read_typed_messages(agent: str, tools: list[str]) -> Iterator[str]:
    """Yields the lines that the user types, until the end of the input. Empty lines are left out."""
    click.echo(f"Talking to {to_printable(agent)}. Tools: {', '.join(tools) or 'none'}. End with Ctrl-D.", err=True)
    while True:
        try:
            text = input("> " if sys.stdin.isatty() else "")
        except EOFError:
            return
        if text.strip():
            yield text


def _print_text(piece: str) -> None:
    click.echo(to_printable(piece), nl=False)


class CallRunner:
    """Runs the tool calls of the agent on this machine. Asks the user before each call, unless `yes`."""

    def __init__(self, tools: dict[str, LocalTool], yes: bool) -> None:
        self._tools = tools
        self._yes = yes

    def run(self, name: str, arguments: dict[str, Any]) -> tuple[str, bool]:
        """Asks for permission and runs a call. Returns the result for the agent, and whether the tool worked."""
        tool = self._tools.get(name)
        if tool is None:
            return f"There is no tool {name!r} here.", False
        click.secho(f"\n→ {to_printable(tool.describe_call(arguments))}", fg="cyan", err=True)
        if not self._yes and not self._ask_user():
            return "The user did not allow this call.", False
        text, worked = _run_tool(tool, arguments)
        shown = text if len(text) <= SHOWN else f"{text[:SHOWN]}… ({len(text)} characters)"
        click.secho(f"← {to_printable(shown)}", fg="green" if worked else "red", err=True)
        return text, worked

    @staticmethod
    def _ask_user() -> bool:
        """Asks whether the call may run. Returns False also if the user interrupts the question."""
        try:
            return click.confirm("  run it?", err=True)
        except click.Abort:
            return False


def _run_tool(tool: LocalTool, arguments: dict[str, Any]) -> tuple[str, bool]:
    """Runs a tool. An exception becomes the result, so that the agent is shown it and the conversation goes on."""
    try:
        return tool.run(arguments), True
    except subprocess.TimeoutExpired as fault:
        return f"The tool did not end within {fault.timeout:.0f} seconds.", False
    except Exception as fault:  # a tool may raise anything
        return f"{type(fault).__name__}: {fault}", False
