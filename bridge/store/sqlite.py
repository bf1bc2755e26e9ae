"""The store for workers on one machine: an SQLite file that all workers open.

The file has times of the monotonic clock, which nobody can set. That clock starts again when the machine boots, so the
file is removed then.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from weakref import WeakSet

from bridge.errors import StoreUnavailable
from bridge.store.changes_in_sql import make_changes_if, put_if
from bridge.store.port import Append, Change, Put

# The data is not needed after a crash of the machine. So no write waits for the disk.
_PRAGMAS = ("journal_mode = WAL", "synchronous = OFF", "journal_size_limit = 4000000")
_TABLES = """
create table if not exists texts (key text primary key, value text not null, expires real not null) without rowid;
create index if not exists texts_by_expiry on texts (expires);
create table if not exists lists (key text primary key, expires real not null) without rowid;
create table if not exists items (number integer primary key, key text not null, item text not null);
create index if not exists items_by_key on items (key, number);
"""
_PUT_IF_FREE = (
    "insert into texts values (?, ?, ?) on conflict (key)"
    " do update set value = excluded.value, expires = excluded.expires where expires <= ?"
)
_KEY_EXISTS = "select 1 from texts where key = ? union all select 1 from lists where key = ? limit 1"
# So long a call waits for other workers that write, in seconds.
WAIT_FOR_OTHERS = 2.0
# Expired keys are removed once in so many seconds.
PURGE_INTERVAL = 30.0
# When the data grows beyond this, the lists that would expire first are removed.
MOST_BYTES = 256_000_000
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_STORES: WeakSet[LocalStore] = WeakSet()


class LocalStore:
    """Implements `bridge.store.port.Store` in an SQLite file.
    Each process opens the file with its first call, because an open SQLite file can't be used after a fork.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._lock = threading.Lock()
        self._open: tuple[tuple[int, tuple[int, int] | None], sqlite3.Connection] | None = None
        self._next_purge = 0.0
        _STORES.add(self)

    def renew_lock(self) -> None:
        """Makes the store usable in a forked process, if a thread that is not there held the lock."""
        self._lock = threading.Lock()

    def change(
        self, changes: Sequence[Change], needs: str = "", unchanged: Mapping[str, str | None] | None = None
    ) -> bool:
        if len(changes) == 1 and isinstance(changes[0], Put):
            with self._connection() as db:
                return put_if(db, changes[0], needs, unchanged or {}, self._clock())
        with self._transaction() as db:
            return make_changes_if(db, changes, needs, unchanged or {}, self._clock())

    def get(self, key: str) -> str | None:
        with self._connection() as db:
            return self._read_value(db, key)

    def get_all(self, *keys: str) -> list[str | None]:
        with self._connection() as db:
            return [self._read_value(db, key) for key in keys]

    def put(self, key: str, value: str, keep: float) -> None:
        self.change([Put(key, value, keep)])

    def put_if_free(self, key: str, value: str, keep: float) -> str | None:
        with self._connection() as db:
            while True:
                now = self._clock()
                if db.execute(_PUT_IF_FREE, (key, value, now + keep, now)).rowcount:
                    return None
                there = self._read_value(db, key)
                if there is not None:  # if there is no value, it expired just now: try again
                    return None if there == value else there

    def replace_if_unchanged(self, key: str, old: str, new: str, keep: float) -> bool:
        with self._transaction() as db:
            same = self._read_value(db, key) == old
            if same:
                self._write_value(db, key, new, keep)
            return same

    def remove(self, *keys: str) -> None:
        with self._connection() as db:
            there = [key for key in keys if db.execute(_KEY_EXISTS, (key, key)).fetchone()]
        if not there:  # the usual case: no lock on the file is needed
            return
        with self._transaction() as db:
            for key in there:
                db.execute("delete from texts where key = ?", (key,))
                if db.execute("delete from lists where key = ?", (key,)).rowcount:
                    db.execute("delete from items where key = ?", (key,))

    def append(self, key: str, item: str, most: int, keep: float) -> None:
        self.change([Append(key, item, most, keep)])

    def items(self, key: str) -> list[str]:
        with self._connection() as db:
            if not self._is_list(db, key):
                return []
            return [row[0] for row in db.execute("select item from items where key = ? order by number", (key,))]

    def add_to_counter(self, key: str, by: int, keep: float) -> int:
        with self._transaction() as db:
            total = int(self._read_value(db, key) or 0) + by
            self._write_value(db, key, str(total), keep)
            return total

    def check_writable(self) -> None:
        with self._transaction() as db:
            self._write_value(db, "check", "", 0.0)

    def _read_value(self, db: sqlite3.Connection, key: str) -> str | None:
        found = db.execute("select value from texts where key = ? and expires > ?", (key, self._clock())).fetchone()
        return None if found is None else str(found[0])

    def _is_list(self, db: sqlite3.Connection, key: str) -> bool:
        return bool(db.execute("select 1 from lists where key = ? and expires > ?", (key, self._clock())).fetchone())

    def _write_value(self, db: sqlite3.Connection, key: str, value: str, keep: float) -> None:
        db.execute("replace into texts values (?, ?, ?)", (key, value, self._clock() + keep))

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Yields a connection in a transaction that locks the file for writing. Rolls back if the block raises."""
        with self._connection() as db:
            db.execute("begin immediate")
            try:
                yield db
                db.execute("commit")
            except BaseException:
                with suppress(sqlite3.Error):
                    db.execute("rollback")
                raise

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """Yields the connection to one thread at a time. After a fault, the next call opens the file again."""
        with self._lock:
            try:
                db = self._current_connection()
                self._purge_if_due(db)
                yield db
            except (sqlite3.Error, OSError) as fault:
                self._open = None
                raise StoreUnavailable(
                    f"The bridge can't write what its workers share (BRIDGE_DATA_DIR, {self._path.name}): {fault}."
                ) from fault

    def _current_connection(self) -> sqlite3.Connection:
        """Returns the connection, opened again after a fork, or if the file at the path was removed or replaced."""
        if self._open is None or self._open[0] != (os.getpid(), _file_identity(self._path)):
            with _lock_while_opening(self._path):
                # Only this user may read the file, because it contains what agents say.
                os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
                self._open = (os.getpid(), _file_identity(self._path)), self._connect()
        return self._open[1]

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(self._path, timeout=WAIT_FOR_OTHERS, isolation_level=None, check_same_thread=False)
        for pragma in _PRAGMAS:
            db.execute(f"pragma {pragma}")
        db.executescript(_TABLES)
        return db

    def _purge_if_due(self, db: sqlite3.Connection) -> None:
        """Removes expired keys once in PURGE_INTERVAL; above MOST_BYTES, also the 1000 lists that expire first."""
        now = self._clock()
        if now < self._next_purge:
            return
        self._next_purge = now + PURGE_INTERVAL
        db.execute("begin immediate")
        for table in ("texts", "lists"):
            db.execute(f"delete from {table} where expires <= ?", (now,))  # nosec B608 # our own names
        if _bytes_in_use(db) > MOST_BYTES:
            db.execute("delete from lists where key in (select key from lists order by expires limit 1000)")
        db.execute("delete from items where key not in (select key from lists)")
        db.execute("commit")


@contextmanager
def _lock_while_opening(path: Path) -> Iterator[None]:
    """Lets one worker at a time open the file. Before that, removes the file of an earlier boot.
    SQLite fails if two workers set the journal mode of a new file at the same time.
    """
    boot = _BOOT_ID.read_bytes().strip() if _BOOT_ID.exists() else b""
    note = os.open(path.with_suffix(".boot"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(note, fcntl.LOCK_EX)
        noted = os.pread(note, 100, 0)
        if noted != boot:
            _remove_file_of_earlier_boot(path, noted)
            os.ftruncate(note, 0)
            os.pwrite(note, boot, 0)
        yield
    finally:
        os.close(note)


def _remove_file_of_earlier_boot(path: Path, noted: bytes) -> None:
    """Removes the SQLite file without opening it, because a crash of the machine may have corrupted it."""
    if noted:  # without a noted boot, the file may not be ours
        for kind in ("", "-wal", "-shm"):
            path.with_name(path.name + kind).unlink(missing_ok=True)


def _file_identity(path: Path) -> tuple[int, int] | None:
    """Returns the file's device and inode. A file that was removed and made again has another inode."""
    try:
        there = os.stat(path)
    except FileNotFoundError:
        return None
    return there.st_dev, there.st_ino


def _bytes_in_use(db: sqlite3.Connection) -> int:
    free, pages, size = (
        int(db.execute(f"pragma {name}").fetchone()[0]) for name in ("freelist_count", "page_count", "page_size")
    )
    return (pages - free) * size


def _renew_locks() -> None:
    for store in _STORES:
        store.renew_lock()


os.register_at_fork(after_in_child=_renew_locks)
