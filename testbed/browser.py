"""Provides a headless Chromium for tests: from Debian's packages, without root, or else the system's Chromium.

The packages are unpacked into the cache, not installed. The system's package manager only says where to download them.
Fonts are included, so that pages look the same everywhere.
"""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from testbed import tool
from testbed.cache import Cache, Progress, lock_beside, locked, silent
from testbed.errors import BrowserMissing

PACKAGES = ("chromium-headless-shell", "fonts-inter", "fonts-jetbrains-mono")
# The system's programs, in order of preference.
PROGRAMS = ("chromium-headless-shell", "chromium", "google-chrome", "google-chrome-stable", "chromium-browser")
RECIPE = " ".join(("1", *PACKAGES))
# Tests open only their own pages. The browser's own background requests would go to hosts that may be unreachable.
ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)
HINT = "Install a Chromium with your system's packages, so that `chromium` can be run."
FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>{fonts}</dir>
  <cachedir>{cache}</cachedir>
  <alias binding="same"><family>system-ui</family><prefer><family>Inter</family></prefer></alias>
  <alias binding="same"><family>sans-serif</family><prefer><family>Inter</family></prefer></alias>
  <alias binding="same"><family>ui-monospace</family><prefer><family>JetBrains Mono</family></prefer></alias>
  <alias binding="same"><family>monospace</family><prefer><family>JetBrains Mono</family></prefer></alias>
</fontconfig>
"""


@dataclass(frozen=True, slots=True)
class Browser:
    """A program that accepts Chromium's arguments, and its environment."""

    program: Path
    environment: dict[str, str]


def browser(cache: Cache | None = None, progress: Progress = silent) -> Browser:
    """Returns the browser from Debian's packages, or else the system's. BrowserMissing says what to do without both."""
    folder = (cache or Cache.default()).browser
    if not _is_complete(folder):
        if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
            return _of_system()
        with locked(lock_beside(folder), progress, "fetching Chromium"):
            if not _is_complete(folder):
                _make(folder, progress)
    return _of_folder(folder)


def _of_system() -> Browser:
    found = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if found is None:
        raise BrowserMissing(f"There is no Chromium, and without apt-get it cannot be fetched. {HINT}")
    return Browser(Path(found), tool.environment())


def _of_folder(folder: Path) -> Browser:
    root = folder / "root"
    libraries = [*root.glob("usr/lib/*-linux-gnu"), *root.glob("usr/lib/*-linux-gnu/pulseaudio")]
    settings = {
        "LD_LIBRARY_PATH": os.pathsep.join(map(str, libraries)),
        "FONTCONFIG_FILE": str(folder / "fonts.conf"),
        "HOME": str(folder),
    }
    return Browser(_program(folder), tool.environment(**settings))


def _program(folder: Path) -> Path:
    return folder / "root" / "usr" / "lib" / "chromium" / "chromium-headless-shell"


def _is_complete(folder: Path) -> bool:
    marker = folder / "complete"
    return marker.exists() and marker.read_text() == RECIPE and _program(folder).exists()


def _make(folder: Path, progress: Progress) -> None:
    progress("fetching Chromium from Debian (70 MB)…")
    shutil.rmtree(folder, ignore_errors=True)
    for part in ("apt/lists/partial", "apt/cache/archives/partial", "root"):
        (folder / part).mkdir(parents=True)
    _apt(folder, "update", "--quiet=2")
    _apt(folder, "install", "--yes", "--quiet=2", "--no-install-recommends", "--download-only", *PACKAGES)
    for package in sorted((folder / "apt" / "cache" / "archives").glob("*.deb")):
        tool.run(
            ["dpkg-deb", "--extract", str(package), str(folder / "root")],
            doing=f"unpacking {package.name}",
            error=BrowserMissing,
            env=tool.environment(),
        )
    shutil.rmtree(folder / "apt")
    fonts = FONTS.format(fonts=folder / "root" / "usr" / "share" / "fonts", cache=folder / "fontconfig")
    (folder / "fonts.conf").write_text(fonts)
    if not _program(folder).exists():
        raise BrowserMissing(f"Debian's packages hold no {_program(folder).name} any more. {HINT}")
    (folder / "complete").write_text(RECIPE)


def _apt(folder: Path, *arguments: str) -> None:
    """Runs apt-get with its own lists and packages and without the system's lock, so that it needs no root."""
    settings = {
        "Dir::State::lists": str(folder / "apt" / "lists"),
        "Dir::Cache": str(folder / "apt" / "cache"),
        "Debug::NoLocking": "1",
        "APT::Sandbox::User": "",
    }
    options = [word for name, value in settings.items() for word in ("--option", f"{name}={value}")]
    tool.run(
        ["apt-get", *options, *arguments],
        doing=f"fetching Chromium (apt-get {arguments[0]})",
        error=BrowserMissing,
        env=os.environ | {"LC_ALL": "C"},
        hint=f"Are Debian's packages reachable? {HINT}",
    )
