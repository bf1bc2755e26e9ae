"""Tests of the user that PostgreSQL runs as."""

import os
import shutil

import pytest

from testbed.errors import DatabaseFailed
from testbed.postgres import as_ordinary_user


def run_as(monkeypatch: pytest.MonkeyPatch, *, user: int, setpriv: str | None) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(shutil, "which", lambda _name: setpriv)


def test_root_starts_postgresql_as_another_user(monkeypatch: pytest.MonkeyPatch) -> None:
    run_as(monkeypatch, user=0, setpriv="/bin/setpriv")
    command = as_ordinary_user(["postgres", "-D", "data"])
    assert {"--reuid=65534", "--regid=65534", "--clear-groups"} <= set(command)
    assert command[-4:] == ["--", "postgres", "-D", "data"]


def test_an_ordinary_user_starts_postgresql_as_that_user(monkeypatch: pytest.MonkeyPatch) -> None:
    run_as(monkeypatch, user=1000, setpriv="/bin/setpriv")
    command = as_ordinary_user(["postgres"])
    assert not [word for word in command if "uid" in word]


def test_an_ordinary_user_needs_no_other_program(monkeypatch: pytest.MonkeyPatch) -> None:
    run_as(monkeypatch, user=1000, setpriv=None)
    assert as_ordinary_user(["postgres"]) == ["postgres"]


def test_without_setpriv_the_error_tells_root_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    run_as(monkeypatch, user=0, setpriv=None)
    with pytest.raises(DatabaseFailed, match="install util-linux or run this as an ordinary user"):
        as_ordinary_user(["postgres"])
