from __future__ import annotations

import os
from pathlib import Path

import pytest

from app import create_app
from bridge.config import read_settings
from bridge.errors import SettingsError
from bridge.folders import make_data_folder, make_private_folder
from tests.actors import Chat
from tests.fakes import FakeGateway

KEY = "a-long-enough-key"


@pytest.fixture(autouse=True)
def usual_umask() -> object:
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): f"{path.stat().st_mode & 0o7777:o}" for path in folder.rglob("*")}


@pytest.mark.parametrize("existed", [False, True], ids=["new", "of an earlier version"])
def test_only_its_user_can_read_what_a_service_keeps(
    tmp_path: Path, environment: dict[str, str], letta: FakeGateway, existed: bool
) -> None:
    data = tmp_path / "data"
    if existed:
        for name in ("locks", "keys"):
            (data / name).mkdir(parents=True)
            (data / name / "old").touch()
    settings = read_settings({**environment, "BRIDGE_DATA_DIR": str(data), "BRIDGE_API_KEYS": KEY})
    make_data_folder(settings.data_dir)
    chat = Chat(create_app(settings, letta).test_client())
    assert chat.ask(headers={"Authorization": f"Bearer {KEY}"}).status == 200
    found = modes(tmp_path)
    folders = {name: found.pop(name) for name in ("data", "data/locks", "data/keys")}
    assert set(folders.values()) == {"700"}
    assert "data/shared.db" in found
    assert set(found.values()) == {"600"}


def test_the_bridges_own_files_become_private_and_others_stay_as_they_are(tmp_path: Path) -> None:
    for name in ("shared.db", "shared.db-wal", "last-sweep", "notes.txt"):
        (tmp_path / name).touch()
    (tmp_path / "shared.link").symlink_to(tmp_path / "notes.txt")
    make_data_folder(tmp_path)
    found = modes(tmp_path)
    del found["shared.link"]
    assert found == {"shared.db": "600", "shared.db-wal": "600", "last-sweep": "600", "notes.txt": "644"}


def test_a_folder_for_all_users_stays_as_it_is(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    (tmp_path / "shared.db").touch()
    make_data_folder(tmp_path)
    assert tmp_path.stat().st_mode & 0o7777 == 0o1777
    assert modes(tmp_path) == {"shared.db": "644"}


def test_a_folder_of_another_user_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o775)
    monkeypatch.setattr(os, "geteuid", lambda: -1)
    make_private_folder(tmp_path)
    assert tmp_path.stat().st_mode & 0o7777 == 0o775


def test_a_folder_that_cannot_be_made_is_a_wrong_setting(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SettingsError, match=r"BRIDGE_DATA_DIR: .*can't be written"):
        make_private_folder(tmp_path / "file" / "locks")
