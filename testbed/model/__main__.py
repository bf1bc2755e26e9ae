"""Runs the scripted model by hand: `python -m testbed.model --port 8900`."""

import argparse
import signal
import sys
import threading

from testbed.model.server import ScriptedModel
from testbed.model.strictness import ModelLimits


def main() -> None:
    """Serves until SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(
        prog="python -m testbed.model",
        description="An OpenAI-type endpoint whose answers are dictated by the messages it gets.",
    )
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8900, help="0 takes a free one (default: 8900)")
    parser.add_argument("--max-tools", type=int, default=128, help="tools a request may have (default: 128)")
    parser.add_argument(
        "--strict-schemas",
        choices=("record", "enforce"),
        default="record",
        help="what to do with strict functions whose schema is not strict (default: record)",
    )
    given = parser.parse_args()
    limits = ModelLimits(max_tools=given.max_tools, strict_schemas=given.strict_schemas)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    try:
        serving = ScriptedModel(given.host, given.port, limits)
    except OSError as error:
        parser.exit(1, f"cannot listen at {given.host}:{given.port}: {error.strerror}; try another --port\n")
    with serving as model:
        sys.stdout.write(f"The scripted model listens at {model.url}\n")
        sys.stdout.flush()
        stop.wait()


if __name__ == "__main__":
    main()
