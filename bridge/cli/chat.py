"""The command `chat`: lets you talk to an agent from the terminal. Tools run on this machine after you allow it."""

from __future__ import annotations

import re
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
from bridge.errors import Unauthorized, UnknownModel
from bridge.running import find_running
from bridge.turn import ASIDE_SUFFIX

SHOWN = 600
MOST_LISTED = 20
INTERRUPTED = 130  # as of a program that Ctrl-C ends
USUAL_URL = "http://localhost:8080"
HELP = """/help shows this. /quit ends, as Ctrl-D and Ctrl-C do.
Every other line is a message to the agent; put a blank before a / that is meant for it."""
_COMMAND = re.compile(r"(/\w*)(\s|$)")
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def add_chat(group: click.Group, service: Service) -> None:
    @group.command("chat", help="Talk to AGENT through a running bridge, with tools of your own that run here.")
    @click.argument("agent", default="")
    @click.option("--tools", "file", type=FILE, help="FILE.py: its functions; FILE.json: tools with a `command`.")
    @click.option("--say", "said", multiple=True, metavar="TEXT", help="Say this and end; may be repeated.")
    @click.option("--yes", is_flag=True, help="Run every call without asking.")
    @click.option("--turns", default=20, show_default=True, type=click.IntRange(1), help="Most turns for one answer.")
    @click.option("--url", envvar="BRIDGE_URL", help=f"The bridge. Default: that of `make run`, or {USUAL_URL}.")
    @click.option("--key", envvar="BRIDGE_KEY", default="", help="Its key; better in BRIDGE_KEY.")
    def chat(agent: str, file: Path | None, said: tuple[str, ...], yes: bool, turns: int, url: str, key: str) -> None:
        try:
            tools = load_tools(file) if file else {}
            bridge = BridgeClient(url or _usual_url(), key)
            name = _choose_agent(bridge, agent)
            runner = CallRunner(tools, yes)
            talk = Talk(bridge, name, [tool.schema for tool in tools.values()], runner.run, _print_text)
            for text in said or _read_typed_messages(name, list(tools)):
                _say_and_print(talk, text, turns)
        except (BadTools, RequestFailed) as fault:
            raise click.ClickException(to_printable(f"{fault}{_advice(fault)}")) from fault
        except KeyboardInterrupt:
            click.echo(err=True)
            sys.exit(INTERRUPTED)


def _advice(fault: Exception) -> str:
    needs_key = isinstance(fault, RequestFailed) and fault.code == Unauthorized.code
    return " This command takes it from the variable BRIDGE_KEY, or from `--key`." if needs_key else ""


def _usual_url() -> str:
    running = find_running()
    return running.url if running else USUAL_URL


def _choose_agent(bridge: BridgeClient, agent: str) -> str:
    """Returns the agent of this name or id; without a name, the only agent. Otherwise, the failure lists the agents."""
    if not agent:
        names = bridge.list_agents()
        if len(names) == 1:
            return names[0]
        raise RequestFailed(f"Name the agent to talk to.{_listed(names)}")
    try:
        bridge.check_agent(agent.removesuffix(ASIDE_SUFFIX))
    except RequestFailed as failure:
        if failure.code != UnknownModel.code:
            raise
        raise RequestFailed(f"{failure}{_listed(bridge.list_agents())}") from failure
    return agent


def _listed(names: list[str]) -> str:
    """Returns the end of a message that lists agents."""
    if not names:
        return " There is no agent yet that you may talk to."
    more = [f"and {len(names) - MOST_LISTED} more"] if len(names) > MOST_LISTED else []
    return "\nThe agents are:\n" + "\n".join(f"  {name}" for name in [*names[:MOST_LISTED], *more])


def _say_and_print(talk: Talk, text: str, turns: int) -> None:
    done = talk.say(text, turns)
    click.echo()
    if not done:
        raise click.ClickException(f"The agent still calls tools after {turns} turns; see --turns.")


def _read_typed_messages(agent: str, tools: list[str]) -> Iterator[str]:
    """Yields the lines that the user types, until the end of the input, Ctrl-C or /quit. Empty lines are left out."""
    click.echo(
        f"Talking to {to_printable(agent)}. Tools: {', '.join(tools) or 'none'}. /help helps, /quit ends.", err=True
    )
    while True:
        try:
            text = input("> " if sys.stdin.isatty() else "")
        except (EOFError, KeyboardInterrupt):
            click.echo(err=True)
            return
        if text.strip() == "/quit":
            return
        if command := _COMMAND.match(text):
            known = command[1] == "/help"
            click.echo(HELP if known else f"There is no command {command[1]}.\n{HELP}", err=True)
        elif text.strip():
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
