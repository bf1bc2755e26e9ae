"""Runs another program and reports its failure in one sentence."""

import os
import subprocess
from collections.abc import Mapping, Sequence

from testbed.errors import TestbedError, tail

# Letta servers and PostgreSQL get only these variables of the caller: others, such as LETTA_PG_URI, OPENAI_API_KEY or
# HTTP_PROXY, would change what is tested.
KEPT = ("PATH", "LANG", "LC_ALL", "TZ", "USER", "LOGNAME", "SSL_CERT_FILE", "SSL_CERT_DIR")


def environment(**settings: str) -> dict[str, str]:
    """Returns a small environment and these settings."""
    return {name: os.environ[name] for name in KEPT if name in os.environ} | settings


def run(
    command: Sequence[str],
    *,
    doing: str,
    error: type[TestbedError],
    env: Mapping[str, str] | None = None,
    hint: str = "",
    keep_open: Sequence[int] = (),
) -> str:
    """Runs a program to its end and returns its output, or raises `error` with the end of its output."""
    try:
        done = subprocess.run(
            list(command),
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            pass_fds=tuple(keep_open),
            check=False,
        )
    except OSError as problem:
        raise error(f"{doing} failed: {command[0]} cannot be run ({problem.strerror}). {hint}".rstrip()) from problem
    if done.returncode != 0:
        sentence = f"{doing} failed (exit code {done.returncode}). {hint}".rstrip()
        raise error(f"{sentence}\n{tail(done.stdout + done.stderr)}")
    return done.stdout
