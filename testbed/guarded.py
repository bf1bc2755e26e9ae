"""Starts programs that end when the process that started them ends in any way.

The program leads a process group of its own. Beside it, in the same group, a shell reads from a pipe whose other end
the starting process holds. When that process ends, the system closes the pipe, and the shell ends the whole group:
by SIGINT, so that the program can remove its files, and a second later by SIGKILL.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

# The watching shell is started by a shell that ends at once: it must not be a child of the program.
LAUNCH = """
exec 3<&0 </dev/null
((read -r _ <&3; kill -INT $$; sleep 1; kill -KILL -$$) >/dev/null 2>&1 &)
exec 3<&- "$@"
"""


def start(command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    """Starts a program, with Popen's options. Its process id is also that of its group."""
    launched = ["sh", "-c", LAUNCH, "sh", *command]
    return subprocess.Popen(launched, stdin=subprocess.PIPE, start_new_session=True, **options)


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Ends the program and everything that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdin is not None:
        process.stdin.close()
