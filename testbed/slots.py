"""The slots for servers: `up` for a server that is brought up by hand, numbers for servers of one block.

A slot is taken as long as its lock is held, by the process that starts a server in it and by the server itself. So it
is known whether a server runs, without relying on a process id.
"""

import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from testbed.cache import Cache, is_locked, open_lock, try_lock
from testbed.errors import StartFailed
from testbed.versions import VERSIONS

UP = "up"
NUMBERED = 9


@dataclass(frozen=True, slots=True)
class ServerState:
    """The stored facts about the server of a slot. `pid` is 0 until its process exists."""

    version: str
    port: int | None = None
    pid: int = 0
    model_url: str = ""
    password: str | None = None
    ready: bool = False

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for one server of one version, with its data."""

    cache: Cache
    version: str
    name: str

    def __post_init__(self) -> None:
        # The name becomes part of the names of a folder and a database.
        if re.fullmatch(r"[a-z0-9_]{1,20}", self.name) is None:
            raise ValueError(f"a slot's name has up to 20 of a-z, 0-9 and _, not {self.name!r}")

    @property
    def folder(self) -> Path:
        return self.cache.state / self.version / self.name

    @property
    def lock(self) -> Path:
        return self.folder / "lock"

    @property
    def log(self) -> Path:
        return self.folder / "server.log"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def is_taken(self) -> bool:
        return is_locked(self.lock)

    def read(self) -> ServerState:
        """Reads the state of the last or the current server of this slot."""
        try:
            return ServerState(**json.loads((self.folder / "server.json").read_text()))
        except (FileNotFoundError, ValueError, TypeError):
            return ServerState(self.version)

    def write(self, state: ServerState) -> None:
        """Replaces the whole state. It may contain a password, so other users may not read it."""
        unfinished = self.folder / "server.json.part"
        unfinished.unlink(missing_ok=True)
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            json.dump(asdict(state), file)
        unfinished.replace(self.folder / "server.json")

    def claim(self) -> int | None:
        """Takes the slot. Returns the lock's descriptor, or None if the slot is taken."""
        lock = open_lock(self.lock)
        # A process that only checks whether the slot is taken holds the lock for a moment.
        for _ in range(5):
            if try_lock(lock):
                self.write(replace(self.read(), pid=0, ready=False))
                return lock
            time.sleep(0.01)
        os.close(lock)
        return None

    def empty(self) -> None:
        """Removes the server's files."""
        shutil.rmtree(self.home, ignore_errors=True)


def claim_numbered(cache: Cache, version: str) -> tuple[Slot, int]:
    """Takes the first free numbered slot of a version."""
    for number in range(1, NUMBERED + 1):
        slot = Slot(cache, version, str(number))
        lock = slot.claim()
        if lock is not None:
            return slot, lock
    raise StartFailed(
        f"{NUMBERED} servers of Letta {version} already run: `python -m testbed down {version}` stops them."
    )


def taken(cache: Cache, version: str | None = None) -> Iterator[Slot]:
    """Yields the slots in which a server runs or is being started."""
    for candidate in VERSIONS if version is None else (version,):
        for folder in sorted((cache.state / candidate).glob("*/")):
            slot = Slot(cache, candidate, folder.name)
            if slot.is_taken():
                yield slot
