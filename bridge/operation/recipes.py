"""Recipes: what to fill in so that a client uses the bridge. The admin page and docs/clients.md show the same ones.

`python -m bridge.operation.recipes` writes docs/clients.md again, below its line that says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

FILE = Path(__file__).parent.parent / "recipes.json"
PAGE = Path(__file__).parent.parent.parent / "docs" / "clients.md"
# Everything below this line of the page is written by this module.
BELOW = "<!-- Everything below is made from bridge/recipes.json by `python -m bridge.operation.recipes`. -->"
PLACEHOLDER = re.compile(r"<<(\w+)>>")
# Names that mean the same in every shell, file and language, without quotes.
_PLAIN_NAME = re.compile(r"[\w.-]+")

Part = TypeVar("Part")


@dataclass(frozen=True, slots=True)
class Places:
    """What stands in a recipe for each `<<placeholder>>`. `origin` is the bridge's address without `/v1`; the addresses
    with `docker` are those for a client in a container on the bridge's machine.
    """

    origin: str = "http://localhost:8080"
    key: str = "YOUR_KEY"
    agent: str = "my-agent"

    def values(self) -> dict[str, str]:
        inside = re.sub(r"//(localhost|127\.0\.0\.1|\[::1\])(?=[:/]|$)", "//host.docker.internal", self.origin)
        return {
            "origin": self.origin,
            "base_url": f"{self.origin}/v1",
            "docker_origin": inside,
            "docker_base_url": f"{inside}/v1",
            "key": self.key,
            "agent": self.agent,
        }


@dataclass(frozen=True, slots=True)
class RecipeField:
    """A field of a client's form, and what to write there."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class RecipeFile:
    """Lines to copy. `path` is the file that they belong in, or says what they are; `language` is that of the text."""

    path: str
    language: str
    text: str


@dataclass(frozen=True, slots=True)
class Recipe:
    """How one client is connected. All texts are Markdown, of which only `code` and links are used. `env` are lines
    NAME=value. `needs` is "letta" if the client speaks Letta's own API, which a setting turns on. `tried` says with
    which version the recipe was followed, or that it was not.
    """

    id: str
    name: str
    about: str
    tried: str
    steps: tuple[str, ...] = ()
    fields: tuple[RecipeField, ...] = ()
    env: tuple[str, ...] = ()
    files: tuple[RecipeFile, ...] = ()
    limits: tuple[str, ...] = ()
    needs: str = ""

    def filled(self, places: Places) -> Recipe:
        """Returns the recipe with everything filled in."""
        values = places.values()
        return replace(
            self,
            about=_fill(self.about, values),
            steps=tuple(_fill(step, values) for step in self.steps),
            fields=tuple(replace(field, value=_fill(field.value, values)) for field in self.fields),
            env=tuple(_fill(line, values) for line in self.env),
            files=tuple(replace(file, text=_fill(file.text, values)) for file in self.files),
            limits=tuple(_fill(limit, values) for limit in self.limits),
        )


def name_in_recipes(model: str, agent_id: str) -> str:
    """Returns an agent's name as a model, or its id if the name would need quotes in some shell, file or language."""
    return model if _PLAIN_NAME.fullmatch(model) else agent_id


@cache
def load_recipes() -> tuple[Recipe, ...]:
    return tuple(map(parse_recipe, json.loads(FILE.read_text(encoding="utf-8"))))


def parse_recipe(written: Mapping[str, Any]) -> Recipe:
    """Returns one recipe of the file. Raises TypeError for unknown or missing parts."""
    parts = dict(written)
    for name in ("steps", "env", "limits"):
        parts[name] = tuple(parts.get(name, ()))
    parts["fields"] = tuple(RecipeField(**field) for field in parts.get("fields", ()))
    parts["files"] = tuple(RecipeFile(**{**file, "text": "\n".join(file["text"])}) for file in parts.get("files", ()))
    return Recipe(**parts)


def unknown_placeholders(recipe: Recipe) -> set[str]:
    """Returns the names in `<<...>>` for which there is no value."""
    texts = [text for field in fields(recipe) for text in _texts_in(getattr(recipe, field.name))]
    return {name for text in texts for name in PLACEHOLDER.findall(text)} - Places().values().keys()


def _texts_in(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, tuple):
        return [text for one in value for text in _texts_in(one)]
    return [getattr(value, field.name) for field in fields(value)]


def _fill(text: str, values: Mapping[str, str]) -> str:
    return PLACEHOLDER.sub(lambda found: values[found[1]], text)


# --- the page in docs/ ------------------------------------------------------------------------------------


def page_with_recipes(page: str, recipes: Sequence[Recipe]) -> str:
    """Returns the text of docs/clients.md with these recipes below its head, which is written by hand."""
    head, mark, _ = page.partition(BELOW)
    if not mark:
        raise ValueError(f"the page needs the line {BELOW}")
    return "\n\n".join([f"{head}{BELOW}", *(_section(recipe.filled(Places())) for recipe in recipes)]) + "\n"


def _section(recipe: Recipe) -> str:
    blocks = [f"## {recipe.name}", recipe.about]
    if recipe.steps:
        blocks.append("\n".join(f"{number}. {step}" for number, step in enumerate(recipe.steps, 1)))
    if recipe.fields:
        rows = [f"| {field.name} | `{field.value}` |" for field in recipe.fields]
        blocks.append("\n".join(["| field | value |", "| --- | --- |", *rows]))
    if recipe.env:
        blocks.append(_code("sh", "\n".join(f"export {line}" for line in recipe.env)))
    for file in recipe.files:
        blocks += [f"{file.path}:", _code(file.language, file.text)]
    blocks += ["\n".join(f"- {limit}" for limit in recipe.limits)] if recipe.limits else []
    return "\n\n".join([*blocks, f"*{recipe.tried}*"])


def _code(language: str, text: str) -> str:
    return f"```{language}\n{text}\n```"


if __name__ == "__main__":
    PAGE.write_text(page_with_recipes(PAGE.read_text(encoding="utf-8"), load_recipes()), encoding="utf-8")
