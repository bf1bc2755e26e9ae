"""Tests that the pages name files, folders, functions and other pages that exist, and the rooms in their order."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from tests.test_import_law import FLOORS

ROOT = Path(__file__).parent.parent
CONTRIBUTING = "CONTRIBUTING.md"
EXTENDING = "docs/extending.md"
NAMING_CODE = [
    "README.md",
    CONTRIBUTING,
    EXTENDING,
    "bench/README.md",
    "docs/behaviour.md",
    "docs/conversations.md",
    "docs/settings.md",
    "docs/operating.md",
]
PAGES = sorted(str(path.relative_to(ROOT)) for folder in ("", "docs/", "bench/") for path in ROOT.glob(f"{folder}*.md"))
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([\w-]+))?\)")
PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)*(?:/|\.(?:py|md|html|j2|json|yaml))")
FUNCTION = re.compile(r"(\w+)\(\)|(test_\w+)")
NAME = re.compile(r"(?:\w+\.)?([A-Za-z_]\w+)")
# Functions, classes, constants, fields and attributes, where a file defines them.
DEFINED = re.compile(r"^ *(?:(?:def|class) |(?:\w+\.)?(?=\w+(?::| =)))(\w+)", re.M)


def in_code(page: str) -> set[str]:
    return set(re.findall(r"`([^`\n]+)`", (ROOT / page).read_text()))


def paths(page: str) -> set[str]:
    return {word for word in in_code(page) if PATH.fullmatch(word)}


@cache
def code_of(page: str) -> str:
    """Returns the code that the page names: its files, and the files in its folders."""
    named = [ROOT / path for path in sorted(paths(page)) if (ROOT / path).exists()]
    files = {file for path in named for file in ([path] if path.is_file() else path.glob("*.py"))}
    return "\n".join(file.read_text() for file in sorted(files) if file.suffix == ".py")


@pytest.mark.parametrize("page", NAMING_CODE)
def test_every_path_on_the_page_exists(page: str) -> None:
    named = {path for path in paths(page) if "/" in path and "NAME" not in path}
    assert named
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


def anchors(page: Path) -> set[str]:
    """Returns the names by which links can reach the headings of the page, as GitHub makes them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)
    return {re.sub(r"[^\w -]", "", line.lower()).replace(" ", "-") for line in re.findall(r"^#+ (.+)$", text, re.M)}


@pytest.mark.parametrize("page", PAGES)
def test_every_link_on_the_page_leads_somewhere(page: str) -> None:
    here = ROOT / page
    links = [(here.parent / path if path else here, anchor) for path, anchor in LINK.findall(here.read_text())]
    assert [str(path) for path, _ in links if not path.exists()] == []
    assert [f"{path}#{anchor}" for path, anchor in links if anchor and anchor not in anchors(path)] == []


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, left = set[Path](), {ROOT / "README.md"}
    while left:
        page = left.pop()
        reached.add(page)
        linked = {(page.parent / path).resolve() for path, _ in LINK.findall(page.read_text()) if path.endswith(".md")}
        left |= linked - reached
    assert {ROOT / page for page in PAGES} <= reached


def test_every_test_that_the_security_table_names_exists() -> None:
    named = paths("docs/security-table.md")
    assert named
    assert [path for path in sorted(named) if not (ROOT / "tests" / path).exists()] == []


def test_make_test_runs_every_test_that_the_security_table_names() -> None:
    (recipe,) = re.findall(r"^test: check\n\t.* -m pytest(.*)$", (ROOT / "Makefile").read_text(), re.M)
    assert not re.search(r" -[mk] |--ignore|--deselect", recipe)
    named = [path for path in paths("docs/security-table.md") if path.endswith(".py")]
    assert [path for path in sorted(named) if "mark.full" in (ROOT / "tests" / path).read_text()] == []


def test_make_test_fast_leaves_out_what_the_pages_say() -> None:
    (recipe,) = re.findall(r"^test-fast: check\n\t(.*)$", (ROOT / "Makefile").read_text(), re.M)
    assert re.findall(r"--ignore=(\S+)", recipe) == ["tests/real", "tests/faults"]
    assert re.findall(r'-m "(.*?)"', recipe) == ["not real and not browser and not servers"]
    rows = [
        line.split(" | ") for line in (ROOT / CONTRIBUTING).read_text().splitlines() if line.startswith("| `tests/")
    ]
    left_out = {row[0].strip("| "): row[1] for row in rows}
    assert left_out["`tests/faults/`"] == "no"
    assert "everything in `faults/`" in (ROOT / "docs/security-table.md").read_text()


def test_every_function_on_the_page_about_extensions_is_in_a_file_that_the_page_names() -> None:
    functions = {match[1] or match[2] for word in in_code(EXTENDING) if (match := FUNCTION.fullmatch(word))}
    assert sorted(functions - set(re.findall(r"def (\w+)", code_of(EXTENDING)))) == []


def test_every_other_name_on_the_page_about_extensions_is_defined_in_a_file_that_the_page_names() -> None:
    names = {match[1] for word in in_code(EXTENDING) - paths(EXTENDING) if (match := NAME.fullmatch(word))}
    assert sorted(names - set(DEFINED.findall(code_of(EXTENDING)))) == ["BRIDGE_METHOD", "assert_never", "auto"]


def test_the_order_of_imports_is_that_of_the_rooms() -> None:
    text = (ROOT / CONTRIBUTING).read_text()
    (line,) = re.findall(r"^Imports go downward only: (.*?)\. ", text, re.M | re.S)
    floors = [set(re.findall(r"`([\w.]+)`", floor)) for floor in line.split("→")]
    assert floors == [{room.removeprefix("bridge.") for room in floor} for floor in FLOORS]


def test_the_map_of_rooms_has_every_room() -> None:
    listed = {path.removesuffix("/").removesuffix(".py") for path in paths(CONTRIBUTING)}
    rooms = {room.replace(".", "/") for floor in FLOORS for room in floor} - {"gunicorn/conf", "bridge/__main__"}
    assert rooms <= listed
