"""What a shell needs to complete the commands."""

from __future__ import annotations

import shlex
import sys

import click
from click.shell_completion import get_completion_class

from bridge.cli.tools import Shop

NAME = "bridge"
VARIABLE = "_BRIDGE_COMPLETE"


def add_completion(group: click.Group, shop: Shop) -> None:
    @group.command("completion", help='Shell code for a command `bridge` that completes: eval "$(... completion bash)"')
    @click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
    def completion(shell: str) -> None:
        kind = get_completion_class(shell)
        assert kind is not None
        run = f"{shlex.quote(sys.executable)} -m bridge"
        function = f"function {NAME}; {run} $argv; end" if shell == "fish" else f'{NAME}() {{ {run} "$@"; }}'
        click.echo(function)
        click.echo(_asking(kind(group, {}, NAME, VARIABLE).source(), run))


def _asking(source: str, run: str) -> str:
    """A function of the shell can't be called by `env`, and is no command to zsh: what it stands for is asked."""
    for asked in ("bash_complete $1", f"zsh_complete {NAME}", f"(commandline -t) {NAME}"):
        source = source.replace(asked, f"{asked.rpartition(' ')[0]} {run}")
    return "\n".join(line for line in source.split("\n") if f"$+commands[{NAME}]" not in line)
