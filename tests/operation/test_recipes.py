from __future__ import annotations

import json
import re
import tomllib

import pytest

from bridge.operation.recipes import (
    PAGE,
    Places,
    Recipe,
    load_recipes,
    name_in_recipes,
    page_with_recipes,
    parse_recipe,
    unknown_placeholders,
)

LOCAL = Places("http://localhost:8080", "the-key", "my-agent")


def test_the_page_has_the_recipes_of_the_file() -> None:
    page = PAGE.read_text()
    assert page == page_with_recipes(page, load_recipes()), "run: python -m bridge.operation.recipes"


def test_a_page_without_the_line_is_not_written() -> None:
    with pytest.raises(ValueError, match="needs the line"):
        page_with_recipes("# Clients\n", [])


@pytest.mark.parametrize("recipe", load_recipes(), ids=lambda recipe: recipe.id)
def test_each_recipe_is_complete(recipe: Recipe) -> None:
    assert re.fullmatch(r"[a-z0-9-]+", recipe.id)
    assert recipe.steps or recipe.fields or recipe.env or recipe.files
    assert recipe.tried.endswith(".")
    assert recipe.needs in ("", "letta")
    assert unknown_placeholders(recipe) == set()
    assert all(re.match(r"\w+=", line) for line in recipe.env)
    for file in recipe.filled(LOCAL).files:
        if file.language == "json":
            json.loads(file.text)
        if file.language == "toml":
            tomllib.loads(file.text)


def test_ids_are_unique() -> None:
    ids = [recipe.id for recipe in load_recipes()]
    assert len(set(ids)) == len(ids)


def test_every_text_of_a_recipe_is_filled_in() -> None:
    written = {
        "id": "one", "name": "One", "about": "At <<origin>>.", "tried": "No.", "steps": ["Choose <<agent>>."],
        "fields": [{"name": "URL", "value": "<<base_url>>"}], "env": ["KEY=<<key>>"], "limits": ["<<agent>> only."],
        "files": [{"path": "a.json", "language": "json", "text": ["{", '"url": "<<docker_base_url>>"}']}],
    }  # fmt: skip
    filled = parse_recipe(written).filled(LOCAL)
    assert (filled.about, filled.steps, filled.limits) == (
        "At http://localhost:8080.",
        ("Choose my-agent.",),
        ("my-agent only.",),
    )
    assert filled.fields[0].value == "http://localhost:8080/v1"
    assert filled.env == ("KEY=the-key",)
    assert json.loads(filled.files[0].text) == {"url": "http://host.docker.internal:8080/v1"}


def test_what_is_filled_in_is_not_filled_in_again() -> None:
    recipe = parse_recipe({"id": "one", "name": "One", "about": "<<agent>>", "tried": "No."})
    assert recipe.filled(Places(agent="<<key>>")).about == "<<key>>"


@pytest.mark.parametrize(
    ("origin", "inside"),
    [
        ("http://localhost:8080", "http://host.docker.internal:8080"),
        ("http://127.0.0.1", "http://host.docker.internal"),
        ("http://[::1]:8080/bridge", "http://host.docker.internal:8080/bridge"),
        ("https://localhost.example.com/bridge", "https://localhost.example.com/bridge"),
    ],
)
def test_a_container_reaches_the_machine_by_dockers_name(origin: str, inside: str) -> None:
    values = Places(origin).values()
    assert (values["docker_origin"], values["docker_base_url"]) == (inside, f"{inside}/v1")


def test_an_unknown_placeholder_or_part_is_found() -> None:
    written = {"id": "one", "name": "One", "about": "<<model>> and <<key>>", "tried": "No."}
    assert unknown_placeholders(parse_recipe(written)) == {"model"}
    with pytest.raises(TypeError):
        parse_recipe({**written, "stepps": []})


@pytest.mark.parametrize("name", ["two words", 'a"b', "$(rm -rf ~)", "a'b", "", "a\nb", "a<b", "a#b"])
def test_an_agent_whose_name_needs_quotes_stands_by_its_id(name: str) -> None:
    assert name_in_recipes(name, "agent-1") == "agent-1"


def test_other_agents_stand_by_their_names() -> None:
    assert name_in_recipes("Zoë_v1.2-b", "agent-1") == "Zoë_v1.2-b"
