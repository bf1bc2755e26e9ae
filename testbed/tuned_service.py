"""Starts the service as the Procfile does, with parameters that are not settings: TEST_PARAMETERS has them as JSON."""

from __future__ import annotations

import json
import os
import shlex
import sys
from functools import partial

from gunicorn.app.wsgiapp import run  # type: ignore[import-untyped] # it has no types

from bridge import config
from testbed.service import web_command


def main() -> None:
    """Replaces `read_settings` before app.py and gunicorn.conf.py import it."""
    parameters = json.loads(os.environ.pop("TEST_PARAMETERS"))
    vars(config)["read_settings"] = partial(config.read_settings, **parameters)
    sys.argv = shlex.split(web_command())
    run()


if __name__ == "__main__":
    main()
