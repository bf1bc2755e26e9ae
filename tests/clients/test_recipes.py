"""The recipes of docs/clients.md, followed as they stand there: their files, their variables, their programs."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from bridge.operation.recipes import Places, Recipe, load_recipes
from tests.clients import opencode, pins
from tests.clients.installed import folder_of, node, python_of
from tests.clients.process import Scratch, run_to_end
from tests.clients.task import ANSWER, call, secret_in, teach
from tests.clients.wire import Wire
from tests.real.conftest import say
from tests.real.world import Agent

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]

SECONDS = 150.0
QUESTION = "What is in notes.txt?"
# The packages of each recipe for a program; none where the tests' own environment has them.
ON_PYTHON = {
    "langchain": pins.LANGCHAIN,
    "openai-agents-python": pins.OPENAI_AGENTS,
    "openai-python": None,
    "pydantic-ai": pins.PYDANTIC_AI,
}
ON_NODE = {"ai-sdk": pins.VERCEL_AI, "openai-agents-js": pins.OPENAI_AGENTS_JS, "openai-node": pins.OPENAI_NODE}


@dataclass(frozen=True, slots=True)
class CodingClient:
    """A program with tools of its own. It asks `tool` for a file, in the argument `place`, or runs a command there."""

    client: pins.Client
    command: Sequence[str]
    tool: str
    place: str
    settings: Mapping[str, str]


CODING = {
    "codex": CodingClient(
        pins.CODEX,
        ("codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", QUESTION),
        "exec_command",
        "cmd",
        {},
    ),
    "opencode": CodingClient(pins.OPENCODE, ("opencode", "run", QUESTION), "read", "filePath", opencode.OFFLINE),
    "qwen-code": CodingClient(pins.QWEN_CODE, ("qwen", "-p", QUESTION), "read_file", "file_path", {}),
}


@pytest.mark.parametrize("name", [*ON_PYTHON, *ON_NODE])
def test_the_program_of_a_recipe_reads_a_file(agent: Agent, scratch: Scratch, wire: Wire, name: str) -> None:
    word = secret_in(scratch.work / "notes.txt")
    teach(agent, call("read_file", path="notes.txt"), ANSWER)
    (program,) = write_files(filled(name, agent, wire), scratch)
    assert word in run_to_end(start_of(name, program), scratch, {}, seconds=SECONDS)
    assert wire.failures() == []


@pytest.mark.parametrize("name", CODING)
def test_the_file_of_a_recipe_connects_a_client(agent: Agent, scratch: Scratch, wire: Wire, name: str) -> None:
    client, notes = CODING[name], scratch.work / "notes.txt"
    word = secret_in(notes)
    teach(agent, call(client.tool, **{client.place: f"cat {notes}" if client.place == "cmd" else str(notes)}), ANSWER)
    recipe = filled(name, agent, wire)
    write_files(recipe, scratch)
    folder = folder_of(client.client, say) / "node_modules" / ".bin"
    program, *arguments = client.command
    path = f"{folder}:{node(say).folder}:/usr/bin:/bin"
    variables = dict(line.split("=", 1) for line in recipe.env)
    settings = {**variables, **client.settings, "PATH": path}
    said = run_to_end([str(folder / program), *arguments], scratch, settings, seconds=SECONDS)
    assert word in said
    assert wire.failures() == []


def test_a_recipe_names_the_versions_with_which_it_is_tried() -> None:
    clients = {**ON_PYTHON, **ON_NODE, **{name: coding.client for name, coding in CODING.items()}}
    tried = {recipe.id: recipe.tried for recipe in load_recipes()}
    for name, client in clients.items():
        packages = client.packages[:2] if client else ()
        wanted = [version_of(package) for package in packages if "zod" not in package]
        assert [version for version in wanted if version not in tried[name]] == [], name


def version_of(package: str) -> str:
    return re.split("==|(?<=.)@", package)[1]


def filled(name: str, agent: Agent, wire: Wire) -> Recipe:
    """Returns the recipe as the admin page shows it to somebody who uses this agent through the wire."""
    (recipe,) = (recipe for recipe in load_recipes() if recipe.id == name)
    return recipe.filled(Places(wire.url.removesuffix("/v1"), "none", agent.name))


def write_files(recipe: Recipe, scratch: Scratch) -> list[Path]:
    """Writes the files of a recipe where it says, and returns their places."""
    places = []
    for file in recipe.files:
        place = scratch.home / file.path[2:] if file.path.startswith("~/") else scratch.work / file.path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(file.text)
        places.append(place)
    return places


def start_of(name: str, program: Path) -> Sequence[str]:
    """Returns the command that runs a recipe's program."""
    if name in ON_NODE:
        # Node looks for packages beside the program.
        return [str(node(say).program), str(shutil.copy(program, folder_of(ON_NODE[name], say)))]
    client = ON_PYTHON[name]
    return [str(python_of(client, say) if client else sys.executable), str(program)]
