"""The command `completion`, which prints shell code that completes the commands."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from bridge.cli.service import Service

NAME = "letta-bridge"
VARIABLE = "_LETTA_BRIDGE_COMPLETE"
PROGRAM = Path(__file__).parents[2] / NAME


def add_completion(group: click.Group, service: Service) -> None:
    @group.command(
        "completion", help=f'Shell code for a command `{NAME}` that completes: eval "$(... completion bash)"'
    )
    @click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
    def completion(shell: str) -> None:
        kind = get_completion_class(shell)
        assert kind is not None
        run = shlex.quote(str(PROGRAM))
        function = f"function {NAME}; {run} $argv; end" if shell == "fish" else f'{NAME}() {{ {run} "$@"; }}'
        click.echo(function)
        click.echo(_call_program_in(kind(group, {}, NAME, VARIABLE).source(), run))


def _call_program_in(source: str, run: str) -> str:
    """Returns click's shell code `source`, changed so that it calls the program, not the shell function of its name.
    click calls the name through `env`, which cannot call a shell function. click's test whether the command exists is
    removed, because zsh does not find a function as a command.
    """
    for call in ("bash_complete $1", f"zsh_complete {NAME}", f"(commandline -t) {NAME}"):
        source = source.replace(call, f"{call.rpartition(' ')[0]} {run}")
    return "\n".join(line for line in source.split("\n") if f"$+commands[{NAME}]" not in line)
