"""Makes the folders in which the bridge keeps answers, keys' counts and locks, readable only for the bridge's user."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile

from bridge.errors import SettingsError

# The bridge's files in BRIDGE_DATA_DIR itself. Other files there are not the bridge's.
OWN_FILES = ("shared.*", "last-sweep")


def make_data_folder(path: Path) -> Path:
    """Makes the folder BRIDGE_DATA_DIR, and checks before the service starts that files can be written there."""
    make_private_folder(path, OWN_FILES)
    with _os_errors_as_settings_errors(path), TemporaryFile(dir=path):
        return path


def make_private_folder(path: Path, files: tuple[str, ...] = ("*",)) -> Path:
    """Makes a folder. If it exists, takes the rights of other users away, also for `files` in it. Leaves a folder of
    another user, and one that is for all users such as /tmp, as it is.
    """
    with _os_errors_as_settings_errors(path):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.stat().st_mode & stat.S_ISVTX:
            _make_private(path.resolve(), 0o700)
            for pattern in files:
                for file in path.glob(pattern):
                    _make_private(file, 0o600)
    return path


def _make_private(path: Path, mode: int) -> None:
    with suppress(FileNotFoundError):  # another worker removed it
        found = path.lstat()
        if found.st_uid == os.geteuid() and found.st_mode & 0o077 and not stat.S_ISLNK(found.st_mode):
            path.chmod(mode)


@contextmanager
def _os_errors_as_settings_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as fault:
        raise SettingsError(
            f"BRIDGE_DATA_DIR: {str(path)!r} can't be written ({fault.strerror});"
            " name a folder that the service may make or write to"
        ) from None
