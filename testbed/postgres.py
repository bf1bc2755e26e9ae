"""One PostgreSQL cluster for all versions that need one. It runs as long as a process uses it.

Its users hold a shared lock on one file, which a Letta server inherits. The keeper, a separate process, tries to take
that lock exclusively. When it succeeds, there are no users left, and it stops PostgreSQL. So no users are counted.
"""

import fcntl
import hashlib
import json
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from testbed import tool
from testbed.cache import REPOSITORY, Cache, Progress, is_locked, locked, open_lock, silent
from testbed.errors import DatabaseFailed, tail
from testbed.install import Installation, postgres_binaries

USER = "letta"
NOBODY = 65534
SCHEMA = Path(__file__).parent / "inside" / "schema.py"


@dataclass(frozen=True, slots=True)
class Cluster:
    """The running cluster, for one of its users."""

    cache: Cache
    binaries: Path
    port: int
    password: str
    lease: int

    def uri(self, database: str, driver: str = "postgresql", options: str = "") -> str:
        """Returns the address of a database, with the password."""
        return f"{driver}://{USER}:{self.password}@127.0.0.1:{self.port}/{database}{options}"

    def sql(self, statement: str, database: str = "postgres") -> list[str]:
        """Runs a statement and returns the rows as lines."""
        settings = {"PGPASSWORD": self.password, "PGCONNECT_TIMEOUT": "10", "PGSSLMODE": "disable"}
        where = ["--host=127.0.0.1", f"--port={self.port}", f"--username={USER}", f"--dbname={database}"]
        output = tool.run(
            [
                *(str(self.binaries / "psql"), "--no-psqlrc", "--tuples-only", "--no-align", "--quiet"),
                *(*where, "--set=ON_ERROR_STOP=1", f"--command={statement}"),
            ],
            doing=f"asking PostgreSQL ({statement.split()[0]})",
            error=DatabaseFailed,
            env=tool.environment(**settings),
        )
        return output.split("\n")[:-1]

    def has(self, database: str) -> bool:
        """Whether a database of this name exists."""
        return bool(self.sql(f"select 1 from pg_database where datname = '{database}'"))


@contextmanager
def cluster(cache: Cache, progress: Progress = silent) -> Iterator[Cluster]:
    """Yields the cluster, and starts it first if needed. It runs until the block has ended and every process that
    inherited the lease has closed it."""
    binaries = postgres_binaries(cache, progress)
    with locked(start_lock(cache), progress, "starting PostgreSQL"):
        make_data(cache, binaries, progress)
        lease = open_lock(users_lock(cache))
        # Waits while a keeper holds this lock exclusively and stops the last cluster.
        fcntl.flock(lease, fcntl.LOCK_SH)
        try:
            # A keeper that ends removes its state file first.
            if not state_file(cache).exists() or not is_locked(keeper_lock(cache)):
                _start_keeper(cache, progress)
            state = json.loads(state_file(cache).read_text())
        except BaseException:
            os.close(lease)
            raise
    try:
        yield Cluster(cache, binaries, state["port"], password_file(cache).read_text(), lease)
    finally:
        os.close(lease)


def make_database(
    using: Cluster, installation: Installation, name: str, progress: Progress = silent, *, fresh: bool = False
) -> str:
    """Makes the database of this name with the tables of a version, copied from a template that is made once.

    Returns its full name, which changes with the installation and the script that made the tables.
    """
    version = installation.recipe.version
    suffix = f"{version.replace('.', '_')}_{_schema_digest(installation)}"
    template, database = f"template_{suffix}", f"{name}_{suffix}"
    with locked(using.cache.postgres / f"{template}.lock", progress, f"making the tables of Letta {version}"):
        if fresh:
            using.sql(f'drop database if exists "{database}" with (force)')
        if using.has(database):
            return database
        if not using.has(template):
            progress(f"making the tables of Letta {version}…")
            _make_template(using, installation, template)
        using.sql(f'create database "{database}" template "{template}"')
    return database


def _schema_digest(installation: Installation) -> str:
    return hashlib.sha256(installation.digest.encode() + SCHEMA.read_bytes()).hexdigest()[:8]


def _make_template(using: Cluster, installation: Installation, template: str) -> None:
    unfinished = f"{template}_part"
    using.sql(f'drop database if exists "{unfinished}" with (force)')
    using.sql(f'create database "{unfinished}"')
    scratch = using.cache.state / "schema"
    scratch.mkdir(parents=True, exist_ok=True)
    tool.run(
        [str(installation.python), "-P", str(SCHEMA)],
        doing=f"making the tables of Letta {installation.recipe.version}",
        error=DatabaseFailed,
        env=tool.environment(
            HOME=str(scratch),
            LETTA_DIR=str(scratch),
            TIKTOKEN_CACHE_DIR=str(installation.encodings),
            LETTA_PG_URI=using.uri(unfinished),
            SCHEMA_URI=using.uri(unfinished, "postgresql+psycopg2"),
        ),
        keep_open=[using.lease],
    )
    using.sql(f'alter database "{unfinished}" rename to "{template}"')


def start_lock(cache: Cache) -> Path:
    return cache.postgres / "start.lock"


def users_lock(cache: Cache) -> Path:
    return cache.postgres / "users.lock"


def keeper_lock(cache: Cache) -> Path:
    return cache.postgres / "keeper.lock"


def state_file(cache: Cache) -> Path:
    return cache.postgres / "state.json"


def log_file(cache: Cache) -> Path:
    return cache.postgres / "log"


def data_folder(cache: Cache) -> Path:
    return cache.postgres / "data"


def password_file(cache: Cache) -> Path:
    return cache.postgres / "password"


def as_ordinary_user(command: list[str]) -> list[str]:
    """Returns a command that runs as another user than root, as PostgreSQL requires, and that ends with its parent.

    The repository may be in a folder that only root can enter, so that user keeps one of root's capabilities: to ignore
    file permissions. `no_setuid_fixup` makes the kernel respect it in access(2) too, by which PostgreSQL finds its own
    programs.
    """
    setpriv = shutil.which("setpriv")
    if os.geteuid() != 0:
        return [setpriv, "--pdeathsig", "QUIT", "--", *command] if setpriv else command
    if setpriv is None:
        raise DatabaseFailed(
            "PostgreSQL refuses to run as root and `setpriv`, which starts it as another user, is not installed: "
            "install util-linux or run this as an ordinary user."
        )
    identity = [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--securebits=+no_setuid_fixup"]
    power = ["--inh-caps=+dac_override", "--ambient-caps=+dac_override"]
    return [setpriv, *identity, *power, "--pdeathsig", "QUIT", "--", *command]


def make_data(cache: Cache, binaries: Path, progress: Progress) -> None:
    """Makes the cluster's files unless they exist."""
    data = data_folder(cache)
    if (data / "PG_VERSION").exists():
        return
    progress("making the PostgreSQL cluster…")
    unfinished = data.with_suffix(".part")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True, mode=0o700)
    password = password_file(cache)
    password.unlink(missing_ok=True)
    with os.fdopen(os.open(password, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
        file.write(secrets.token_urlsafe(24))
    if os.geteuid() == 0:
        os.chown(unfinished, NOBODY, NOBODY)
    # With a password, because any user of this server can run programs through it.
    tool.run(
        as_ordinary_user(
            [
                *(str(binaries / "initdb"), "-D", str(unfinished), "-U", USER, "-E", "UTF8", "--locale=C"),
                *("--auth=scram-sha-256", f"--pwfile={password}", "--no-sync"),
            ]
        ),
        doing="making the PostgreSQL cluster",
        error=DatabaseFailed,
        env=tool.environment(),
        hint="If you are root in a container, allow CAP_DAC_OVERRIDE and CAP_SETPCAP, or be an ordinary user.",
    )
    unfinished.rename(data)


def _start_keeper(cache: Cache, progress: Progress) -> None:
    progress("starting PostgreSQL…")
    log_file(cache).unlink(missing_ok=True)
    state_file(cache).unlink(missing_ok=True)
    with log_file(cache).open("w") as log:
        # It goes into the background by itself when PostgreSQL accepts connections.
        started = subprocess.run(
            [sys.executable, "-m", "testbed.keeper", str(cache.root)],
            env=tool.environment(PYTHONPATH=str(REPOSITORY)),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            check=False,
        )
    if started.returncode != 0:
        raise DatabaseFailed(
            f"PostgreSQL did not start. Its files are in {data_folder(cache)} and can be removed.\n"
            + tail(log_file(cache).read_text(errors="replace"))
        )
