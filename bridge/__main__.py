"""The commands, with the settings of the environment. The program `letta-bridge` calls `main`."""

from __future__ import annotations

from app import assemble_parts, read_environment_settings
from bridge.cli.completion import NAME, VARIABLE
from bridge.cli.group import make_command_group


def main() -> None:
    group = make_command_group(lambda: read_environment_settings(serving=False), assemble_parts)
    group(prog_name=NAME, complete_var=VARIABLE)


if __name__ == "__main__":
    main()
