"""What `make run` writes down about the bridge that it runs, so that the commands beside it find that bridge.

Each running bridge has a file in FOLDER, and keeps the file's lock for as long as it runs. A file whose lock is free
was left by a process that was killed, and is ignored.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / ".cache" / "running"


@dataclass(frozen=True, slots=True)
class RunningBridge:
    """A bridge that runs on this machine. `environment` has the settings that it was started with."""

    url: str
    environment: Mapping[str, str]


@contextmanager
def announced(bridge: RunningBridge, folder: Path = FOLDER) -> Iterator[None]:
    """Lets `find_running` find the bridge for the length of the block. Only this user can read the file: it may hold
    passwords.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _remove_left_files(folder)
    path = folder / f"{os.getpid()}.json"
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        json.dump({"url": bridge.url, "environment": dict(bridge.environment)}, file)
        file.flush()
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _remove_left_files(folder: Path) -> None:
    """Removes the files of processes that were killed."""
    for path in folder.glob("*.json"):
        with suppress(OSError), path.open() as file:
            if _is_free(file.fileno()):
                path.unlink()


def find_running(folder: Path = FOLDER) -> RunningBridge | None:
    """Returns the running bridge that was started last, None if none runs."""
    found = [one for path in folder.glob("*.json") if (one := _read(path)) is not None]
    return max(found, key=lambda one: one[0])[1] if found else None


def _read(path: Path) -> tuple[float, RunningBridge] | None:
    """Returns when a bridge was started, and the bridge; None if the file's lock is free or the file can't be read."""
    with suppress(OSError, ValueError, TypeError), path.open() as file:
        if not _is_free(file.fileno()):
            return os.fstat(file.fileno()).st_mtime, RunningBridge(**json.load(file))
    return None


def _is_free(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def complete_from_running(environment: Mapping[str, str], bridge: RunningBridge | None) -> dict[str, str]:
    """Adds the settings of the running bridge, unless the environment names another Letta, or is that of a platform."""
    letta = environment.get("LETTA_BASE_URL", "").strip()
    if bridge is None or "DYNO" in environment or letta not in ("", bridge.environment.get("LETTA_BASE_URL")):
        return dict(environment)
    return {**bridge.environment, **{name: value for name, value in environment.items() if value.strip()}}
