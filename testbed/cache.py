"""The one folder in which everything that the testbed fetches and makes lives, and the locks in it."""

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
    """A progress that says nothing."""


@dataclass(frozen=True, slots=True)
class Cache:
    """Where things are. Removing the folder removes all that the testbed ever made."""

    root: Path

    @classmethod
    def default(cls) -> "Cache":
        """The folder of TESTBED_CACHE, else `.cache` of the repository."""
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
    """The file whose lock guards a folder that may be removed and made anew."""
    return folder.with_name(f"{folder.name}.lock")


def open_lock(path: Path) -> int:
    """A descriptor to lock. Locks belong to it, and to every process that inherits it, until all are gone."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except PermissionError as problem:
        raise CacheUnusable(
            f"{path} may not be written: its folder belongs to another user. Remove that folder, or name another "
            "in TESTBED_CACHE."
        ) from problem


def try_lock(descriptor: int) -> bool:
    """Take the lock if nobody else holds it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_locked(path: Path) -> bool:
    """Whether some process holds the lock of this file."""
    if not path.exists():
        return False
    descriptor = open_lock(path)
    try:
        return not try_lock(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked(path: Path, progress: Progress = silent, waiting_for: str = "") -> Iterator[int]:
    """Hold the lock of a file, waiting for it if need be; yields the descriptor, to hand to child processes.

    A child that outlives us keeps the lock by it, so nobody starts over what that child is still writing.
    """
    descriptor = open_lock(path)
    try:
        if not try_lock(descriptor):
            progress(f"waiting for another process ({waiting_for or path.name})…")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)
