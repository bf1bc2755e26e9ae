"""Runs in a Letta version's own Python: the server, which ends when the process that owns it is gone.

Standard input is a pipe whose other end the owner holds. However the owner ends, the pipe closes, and the
server's whole process group goes. An owner that sends a byte first lets the server stay.
"""

import importlib
import os
import signal
import sys
import threading


def end_with_owner(pipe: int) -> None:
    """Wait for the owner's word or end."""
    if not os.read(pipe, 1):
        os.killpg(os.getpgrp(), signal.SIGKILL)


def main() -> None:
    """Run `letta` with the given arguments."""
    pipe = os.dup(0)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    threading.Thread(target=end_with_owner, args=(pipe,), daemon=True).start()
    sys.argv[0] = "letta"
    importlib.import_module("letta.main").app()


if __name__ == "__main__":
    main()
