"""Tests of where the browser comes from. tests/browser shows that it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.browser import RECIPE, browser
from testbed.cache import Cache
from testbed.errors import BrowserMissing


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder in PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def program(folder: Path, name: str, text: str = "") -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return file


def test_without_any_chromium_the_error_says_what_to_do(cache: Cache, programs: Path) -> None:
    with pytest.raises(BrowserMissing, match="Install a Chromium with your system's packages"):
        browser(cache)


def test_without_debians_packages_the_systems_chromium_is_used(cache: Cache, programs: Path) -> None:
    program(programs, "google-chrome")
    chromium = program(programs, "chromium")
    assert browser(cache).program == chromium


def test_a_failed_download_is_reported_with_the_reason(cache: Cache, programs: Path) -> None:
    program(programs, "apt-get", "echo 'E: no such host'; exit 100")
    program(programs, "dpkg-deb")
    with pytest.raises(BrowserMissing, match="Are Debian's packages reachable") as failure:
        browser(cache)
    assert "no such host" in str(failure.value)
    assert not (cache.browser / "complete").exists()


def test_a_downloaded_browser_is_used_again(cache: Cache, programs: Path) -> None:
    kept = program(cache.browser / "root" / "usr" / "lib" / "chromium", "chromium-headless-shell")
    (cache.browser / "root" / "usr" / "lib" / "x86_64-linux-gnu").mkdir(parents=True)
    (cache.browser / "complete").write_text(RECIPE)
    found = browser(cache)
    assert found.program == kept
    assert found.environment["LD_LIBRARY_PATH"] == str(cache.browser / "root" / "usr" / "lib" / "x86_64-linux-gnu")
    assert found.environment["FONTCONFIG_FILE"] == str(cache.browser / "fonts.conf")
