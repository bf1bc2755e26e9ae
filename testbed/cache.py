"""The folder with everything that the testbed downloads and makes, and the locks in it."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import CacheUnusable

Progress = Callable[[str], None]

REPOSITORY = Path(__file__).resolve().parent.parent


def silent(_line: str) -> None:
    """Ignores progress."""


@dataclass(frozen=True, slots=True)
class Cache:
    """The paths in the cache. Removing the folder removes everything that the testbed made."""

    root: Path

    @classmethod
    def default(cls) -> "Cache":
        """The folder that TESTBED_CACHE names, or else `.cache` in the repository."""
        return cls(Path(os.environ.get("TESTBED_CACHE") or REPOSITORY / ".cache").resolve())

    @property
    def uv(self) -> Path:
        return self.root / "uv"

    @property
    def tools(self) -> Path:
        return self.root / "tools"

    @property
    def pythons(self) -> Path:
        return self.root / "python"

    @property
    def encodings(self) -> Path:
        return self.root / "encodings"

    @property
    def postgres(self) -> Path:
        return self.root / "postgres"

    @property
    def redis(self) -> Path:
        return self.root / "redis"

    @property
    def browser(self) -> Path:
        return self.root / "browser"

    @property
    def state(self) -> Path:
        return self.root / "state"

    def letta(self, version: str) -> Path:
        return self.root / "letta" / version


def lock_beside(folder: Path) -> Path:
    """Returns the file whose lock guards a folder that may be removed and made again."""
    return folder.with_name(f"{folder.name}.lock")


def open_lock(path: Path) -> int:
    """Opens a file to lock it. The lock is held until this process and all that inherit the descriptor close it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except PermissionError as problem:
        raise CacheUnusable(
            f"{path} cannot be written: its folder belongs to another user. Remove that folder, or name another one "
            "in TESTBED_CACHE."
        ) from problem


def try_lock(descriptor: int) -> bool:
    """Takes the lock if it is free."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock of this file."""
    if not path.exists():
        return False
    descriptor = open_lock(path)
    try:
        return not try_lock(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked(path: Path, progress: Progress = silent, waiting_for: str = "") -> Iterator[int]:
    """Holds the lock of a file, and waits for it if needed. Yields the descriptor, for child processes.

    A child that outlives this process keeps the lock, so that no other process begins what the child still writes.
    """
    descriptor = open_lock(path)
    try:
        if not try_lock(descriptor):
            progress(f"waiting for another process ({waiting_for or path.name})…")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)
