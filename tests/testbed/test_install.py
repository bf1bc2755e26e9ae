"""Tests of installing, with a stand-in for uv."""

import os
from pathlib import Path

import pytest

from testbed import install as installer
from testbed.cache import Cache
from testbed.errors import CacheUnusable, InstallFailed
from testbed.install import install, install_all, uv_program

UV = """#!/bin/sh
echo "$@" >> "{log}"
{more}
for last; do :; done
case "$*" in
  *" venv "*) mkdir -p "$last/bin"; touch "$last/bin/python";;
  *--target*) mkdir -p "$(echo "$*" | sed 's/.*--target \\([^ ]*\\).*/\\1/')";;
esac
"""


class FakeUv:
    """Makes the folders that uv would make, and logs its arguments."""

    def __init__(self, folder: Path) -> None:
        self.program = folder / "uv-stand-in"
        self.log = folder / "uv.log"
        self.does()

    def does(self, more: str = "") -> None:
        self.program.write_text(UV.format(log=self.log, more=more))
        self.program.chmod(0o755)

    @property
    def calls(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture
def uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeUv:
    fake = FakeUv(tmp_path)
    monkeypatch.setattr(installer, "uv_program", lambda *_: fake.program)
    return fake


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def test_a_version_is_installed_with_its_pins_and_its_latest_date(uv: FakeUv, cache: Cache) -> None:
    installation = install("0.12.1", cache)
    assert installation.python == cache.letta("0.12.1") / "venv" / "bin" / "python"
    command = next(call for call in uv.calls if "letta[sqlite]==0.12.1" in call)
    assert "--exclude-newer 2025-10-11T00:00:00Z" in command
    assert "sqlmodel==0.0.24" in command


def test_an_installed_version_is_not_installed_again(uv: FakeUv, cache: Cache) -> None:
    install("0.16.1", cache)
    before = uv.calls
    lines: list[str] = []
    install("0.16.1", cache, lines.append)
    assert uv.calls == before
    assert lines == []


def test_an_incomplete_installation_is_made_again(uv: FakeUv, cache: Cache) -> None:
    remains = cache.letta("0.16.1") / "venv" / "remains"
    remains.mkdir(parents=True)
    install("0.16.1", cache)
    assert not remains.exists()
    assert any("letta[sqlite]==0.16.1" in call for call in uv.calls)


def test_an_installation_of_an_older_recipe_is_made_again(uv: FakeUv, cache: Cache) -> None:
    install("0.16.1", cache)
    (cache.letta("0.16.1") / "complete").write_text("of an older recipe")
    before = len(uv.calls)
    install("0.16.1", cache)
    assert any("letta[sqlite]==0.16.1" in call for call in uv.calls[before:])


def test_an_environment_without_its_python_is_made_again(uv: FakeUv, cache: Cache) -> None:
    python = install("0.16.1", cache).python
    python.unlink()
    install("0.16.1", cache)
    assert python.exists()


def test_a_failure_is_one_sentence_with_the_end_of_uvs_output(uv: FakeUv, cache: Cache) -> None:
    uv.does('case "$*" in *letta*==*) seq 1 99; echo "no route to host" >&2; exit 2;; esac')
    with pytest.raises(InstallFailed) as failure:
        install("0.16.1", cache)
    sentence, *rest = str(failure.value).splitlines()
    assert sentence == "installing Letta 0.16.1 failed (exit code 2). Is PyPI reachable?"
    assert rest[-1].strip() == "no route to host"
    assert len(rest) == 30


def test_after_a_failure_the_next_attempt_succeeds(uv: FakeUv, cache: Cache) -> None:
    uv.does('case "$*" in *letta*==*) exit 2;; esac')
    with pytest.raises(InstallFailed):
        install("0.16.1", cache)
    uv.does()
    assert install("0.16.1", cache).python.exists()


UNDATED = """case "$*" in
  *exclude-newer-package=httpx-sse=false*) ;;
  *letta*==*) echo 'warning: `httpx_sse-0.4.3.tar.gz` is missing an upload date' >&2; exit 1;;
esac"""


def test_a_package_without_upload_dates_may_be_of_any_day(uv: FakeUv, cache: Cache) -> None:
    uv.does(UNDATED)
    assert install("0.15.1", cache).python.exists()
    refused, taken = (call for call in uv.calls if "letta[sqlite]==0.15.1" in call)
    assert "exclude-newer-package" not in refused
    assert "--exclude-newer 2025-11-28T00:00:00Z --exclude-newer-package=httpx-sse=false" in taken


def test_an_index_without_upload_dates_is_a_failure(uv: FakeUv, cache: Cache) -> None:
    undated = "; ".join(f"echo '`package{number}-1.0.tar.gz` is missing an upload date' >&2" for number in range(6))
    uv.does(f'case "$*" in *letta*==*) {undated}; exit 1;; esac')
    with pytest.raises(InstallFailed, match="missing an upload date"):
        install("0.15.1", cache)
    assert len([call for call in uv.calls if "letta[sqlite]" in call]) == 1


def test_a_failure_among_several_is_raised(uv: FakeUv, cache: Cache) -> None:
    uv.does('case "$*" in *letta*==0.13.0*) exit 2;; esac')
    with pytest.raises(InstallFailed, match=r"0\.13\.0"):
        install_all(["0.12.1", "0.13.0", "0.14.0"], cache)


def test_versions_of_one_line_do_not_wait_for_each_other(uv: FakeUv, cache: Cache) -> None:
    lines: list[str] = []
    install_all(["0.16.1", "0.16.2"], cache, lines.append)
    assert not [line for line in lines if "waiting" in line and "encodings" not in line]


def test_without_uv_and_pip_the_error_says_what_to_install(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installer.sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(installer.importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(InstallFailed, match=r"has neither uv nor pip.*pip install uv=="):
        uv_program(cache)


def test_with_a_newer_python_a_supported_one_of_the_system_is_used(
    uv: FakeUv, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installer.sys, "version_info", (3, 15))
    uv.does('case "$*" in *find*3.11) exit 2;; *find*3.12) echo /usr/bin/python3.12;; esac')
    install("0.16.1", cache)
    assert any("venv --python /usr/bin/python3.12" in call for call in uv.calls)


def test_with_a_newer_python_uv_downloads_a_supported_one_if_needed(
    uv: FakeUv, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installer.sys, "version_info", (3, 15))
    uv.does('case "$*" in *find*) exit 2;; esac')
    install("0.16.1", cache)
    assert any("python install" in call and call.endswith("3.11") for call in uv.calls)
    assert any("venv --python 3.11" in call for call in uv.calls)


def test_a_folder_of_another_user_is_named_in_the_error(
    cache: Cache, uv: FakeUv, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(CacheUnusable, match=r"belongs to another user.*TESTBED_CACHE"):
        install("0.16.1", cache)
