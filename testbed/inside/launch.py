"""Runs the server, in a Letta version's own Python, and ends it when the owner process is gone.

Standard input is a pipe whose other end the owner holds. When the owner ends in any way, the pipe closes, and the
server's whole process group is killed. If the owner sends a byte first, the server continues to run.
"""

import importlib
import os
import signal
import sys
import threading


def end_with_owner(pipe: int) -> None:
    """Waits for the owner's byte or its end."""
    if not os.read(pipe, 1):
        os.killpg(os.getpgrp(), signal.SIGKILL)


def main() -> None:
    """Runs `letta` with the given arguments."""
    pipe = os.dup(0)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    threading.Thread(target=end_with_owner, args=(pipe,), daemon=True).start()
    sys.argv[0] = "letta"
    importlib.import_module("letta.main").app()


if __name__ == "__main__":
    main()
