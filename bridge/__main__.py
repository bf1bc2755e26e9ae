"""`python -m bridge`: the commands, with the settings of the environment."""

from __future__ import annotations

import sys

from app import create_app
from bridge.errors import SettingsError


def main() -> None:
    try:
        app = create_app()
    except SettingsError as faults:
        sys.exit(f"The settings are wrong:\n{faults}")
    app.cli.commands["bridge"](prog_name="python -m bridge")


if __name__ == "__main__":
    main()
