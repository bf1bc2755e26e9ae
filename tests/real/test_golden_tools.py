"""Every golden tool on real servers: the model sees it and calls it, and the agent goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from bridge.turn import Stub
from tests.letta_schemas import FORMS, seen_by_model
from tests.real.choice import IS_WHOLE, choice_for, wanted_versions
from tests.real.toolsets import LETTA_PARAMETERS, expected_stubs, stubs_of, whole_state
from tests.real.world import Agent, World
from tests.stub_cases import calls_of, read, spec_of, tool_folders

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

# How many tools are offered at once while each of them is called.
GROUP = 10


@pytest.fixture
def agents(request: pytest.FixtureRequest, world: World) -> Iterator[list[Agent]]:
    """One agent for each of the server's loops."""
    choice = choice_for({mark.name for mark in request.node.iter_markers()})
    made = [world.agent(kind) for kind in choice.agent_types(world.version)]
    yield made
    for agent in made:
        agent.delete()


@pytest.fixture
def goldens(agents: list[Agent]) -> list[tuple[Agent, dict[Path, Stub], str]]:
    """Each agent with the stubs that it should get, and the name of their form."""
    folders = tool_folders()
    found = []
    for agent in agents:
        stubs, form = expected_stubs(agent, [spec_of(read(folder / "tool.json")) for folder in folders])
        name = next(name for name, one in FORMS.items() if one == form)
        found.append((agent, dict(zip(folders, stubs, strict=True)), name))
    return found


@pytest.mark.one_server
def test_the_model_is_shown_the_schema_that_the_stub_declares(
    world: World, goldens: list[tuple[Agent, dict[Path, Stub], str]]
) -> None:
    for agent, stubs, form in goldens:
        before = whole_state(agent)
        for batch in batches(stubs):
            assert agent.ask("!say ok", tools=[read(folder / "tool.json") for folder in batch]).text == "ok"
            functions = {one["function"]["name"]: one["function"] for one in world.model.last_request().body["tools"]}
            names = server_names(agent, batch)
            for folder, stub in batch.items():
                shown = functions[names[folder]]
                assert shown["description"] == stub.description, folder.name
                possible = [stub.json_schema["parameters"], seen_by_model(stub.json_schema, form)["parameters"]]
                parameters = without_lettas(shown["parameters"], stub)
                assert essence(parameters) in [essence(one) for one in possible], folder.name
                required = parameters.get("required", [])
                assert sorted(required) in [sorted(one.get("required", [])) for one in possible], folder.name
            assert agent.ask("!say still here").text == "still here"
        assert whole_state(agent) == before
    assert not world.model.refusals


@pytest.mark.one_server
def test_the_client_gets_the_arguments_that_the_model_gave(
    world: World, goldens: list[tuple[Agent, dict[Path, Stub], str]]
) -> None:
    """One call of each tool with an object as arguments. Letta itself repairs or refuses anything else."""
    for agent, stubs, form in goldens:
        for batch in batches(share(world.version, stubs), GROUP):
            tools = [read(folder / "tool.json") for folder in batch]
            agent.ask("!say ok", tools=tools)
            names = server_names(agent, batch)
            for folder in batch:
                for call in [call for call in calls_of(folder, form) if isinstance(parsed(call.model), dict)][:1]:
                    reply = agent.ask(f"!call {names[folder]} {call.model}", tools=tools)
                    (made,) = reply.message["tool_calls"]
                    assert made["function"]["name"] == spec_of(read(folder / "tool.json")).name
                    assert parsed(made["function"]["arguments"]) == parsed(call.client), (folder.name, call.model)
            assert agent.ask("!say still here").text == "still here"
    assert not world.model.refusals


def share(version: str, stubs: Mapping[Path, Stub]) -> dict[Path, Stub]:
    """Returns the stubs to call on this server. By default, each tool is called on one server."""
    servers = () if IS_WHOLE else wanted_versions()
    return {
        folder: stub
        for place, (folder, stub) in enumerate(stubs.items())
        if not servers or servers[place % len(servers)] == version
    }


def batches(stubs: Mapping[Path, Stub], most: int = 1000) -> list[dict[Path, Stub]]:
    """Distributes the stubs over as few requests as possible, without a name twice in one request."""
    found: list[dict[Path, Stub]] = []
    for folder, stub in stubs.items():
        name = stub.spec.name
        fitting = [one for one in found if len(one) < most and name not in {other.spec.name for other in one.values()}]
        if fitting:
            fitting[0][folder] = stub
        else:
            found.append({folder: stub})
    return found


def server_names(agent: Agent, batch: Mapping[Path, Stub]) -> dict[Path, str]:
    """Returns the name that the model sees for each stub: a tool of another test may have the plain name."""
    placed = stubs_of(agent)
    return {
        folder: placed[stub.spec.name]["name"] if stub.spec.name in placed else stub.name
        for folder, stub in batch.items()
    }


def without_lettas(parameters: Mapping[str, Any], stub: Stub) -> dict[str, Any]:
    """Returns the parameters without those that Letta adds to every tool."""
    added = set(LETTA_PARAMETERS) - stub.json_schema["parameters"]["properties"].keys()
    properties = {name: schema for name, schema in parameters["properties"].items() if name not in added}
    required = [name for name in parameters.get("required", []) if name not in added]
    return {**parameters, "properties": properties, "required": required}


def essence(schema: Any) -> Any:
    """Returns a schema without what Letta may add: empty descriptions, closed objects, lists of required properties."""
    if isinstance(schema, list):
        return [essence(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: essence(value) for key, value in schema.items() if key != "required"}
    if found.get("additionalProperties") is False:
        del found["additionalProperties"]
    if found.get("description") == "":
        del found["description"]
    return found


def parsed(text: str) -> Any:
    """Returns the value, or the text if it is not JSON."""

    def refuse(constant: str) -> Any:
        raise ValueError(constant)

    try:
        return json.loads(text, parse_constant=refuse)
    except ValueError:
        return text
