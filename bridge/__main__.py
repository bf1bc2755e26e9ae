"""`python -m bridge`: the commands, with the settings of the environment."""

from __future__ import annotations

from app import assemble_parts, read_environment_settings
from bridge.cli.completion import VARIABLE
from bridge.cli.group import make_command_group


def main() -> None:
    group = make_command_group(lambda: read_environment_settings(serving=False), assemble_parts)
    group(prog_name="python -m bridge", complete_var=VARIABLE)


if __name__ == "__main__":
    main()
