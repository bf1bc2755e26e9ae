"""Tools that the operator puts into a folder."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from bridge.config import read_settings
from bridge.errors import SettingsError
from bridge.toolsets import read_toolsets
from tests.actors import Chat
from tests.fakes import FakeGateway
from tests.test_complaints import held, tool

KEY = "a-key-of-a-client"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "own" / "tools"
    write(folder / "all.json", [tool("for_all")])
    write(folder / "agents" / "Ada.json", {"tools": [tool("for_ada"), tool("shared")]})
    write(folder / "keys" / "phone.json", [tool("for_phone")])
    return folder


@pytest.fixture
def environment(environment: dict[str, str], folder: Path) -> dict[str, str]:
    entry = f"phone:{hashlib.sha256(KEY.encode()).hexdigest()}"
    return {**environment, "BRIDGE_FILES": str(folder.parent), "BRIDGE_API_KEYS": f"{entry},another-key"}


def write(file: Path, value: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(value if isinstance(value, str) else json.dumps(value))


def described(parameters: str) -> str:
    """A file with a tool of these parameters."""
    return f'[{{"type": "function", "function": {{"name": "a", "parameters": {parameters}}}}}]'


def ask(client: FlaskClient, key: str = "another-key", model: str = "Ada", **fields: Any) -> Any:
    return Chat(client).ask(model=model, headers={"Authorization": f"Bearer {key}"}, **fields)


def offered(letta: FakeGateway) -> list[str]:
    return sorted(letta.prompts[-1].tools)


def test_a_request_gets_the_tools_of_its_agent_and_key(client: FlaskClient, letta: FakeGateway) -> None:
    letta.has_agent("Bob")
    ask(client)
    assert offered(letta) == ["for_ada", "for_all", "shared"]
    ask(client, KEY, model="Bob")
    assert offered(letta) == ["for_all", "for_phone"]
    ask(client, KEY, model=letta.agents_named("Ada")[0].id)
    assert offered(letta) == ["for_ada", "for_all", "for_phone", "shared"]


def test_of_two_tools_with_one_name_the_clients_is_used(client: FlaskClient, letta: FakeGateway) -> None:
    mine = tool("shared")
    mine["function"]["description"] = "The client's own."
    ask(client, tools=[mine])
    assert offered(letta) == ["for_ada", "for_all", "shared"]
    (shared,) = [one for one in letta.tools() if one.name == "shared"]
    assert shared.json_schema["description"] == "The client's own."


def test_the_client_gets_the_calls(client: FlaskClient, letta: FakeGateway) -> None:
    letta.will(*held(("for_all", '{"city": "Oslo"}')))
    reply = ask(client)
    assert [call["function"]["name"] for call in reply.message["tool_calls"]] == ["for_all"]


def test_a_request_that_wants_no_call_gets_no_tool(client: FlaskClient, letta: FakeGateway) -> None:
    ask(client, tool_choice="none")
    assert offered(letta) == []


def test_a_side_request_gets_no_tool(client: FlaskClient, letta: FakeGateway) -> None:
    ask(client, model="Ada:aside")
    assert offered(letta) == []


def test_the_limit_counts_the_tools_of_client_and_operator_together(
    parameters: dict[str, Any], letta: FakeGateway, request: pytest.FixtureRequest
) -> None:
    parameters["max_tools"] = 4
    client = request.getfixturevalue("client")
    assert ask(client, tools=[tool("one")]).status == 200
    refused = ask(client, tools=[tool("one"), tool("two")])
    assert (refused.status, refused.error["code"]) == (400, "too_many_tools")
    assert "With the tools of BRIDGE_FILES the request has 5 tools" in refused.error["message"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "all.json can't be read as JSON"),
        ('{"tools": 5}', "`tools` must be an array."),
        ('[{"type": "function"}]', "`tools[0].function` must be an object with `name`"),
        ('[{"type": "function", "function": {"name": "a b"}}]', "A tool's name is made of"),
        (described('{"type": "object", "properties": {"x": {"type": "any"}}}'), "properties.x.type` must be one of"),
        (described('{"type": "array"}'), "the parameters of a tool must be of type object"),
        (described('{"type": "object", "minProperties": NaN}'), "a number that JSON does not have"),
    ],
)
def test_a_wrong_file_is_named_before_the_service_starts(folder: Path, text: str, said: str) -> None:
    write(folder / "all.json", text)
    with pytest.raises(SettingsError, match="BRIDGE_FILES: ") as fault:
        read_toolsets(folder, 512)
    assert said in str(fault.value)


def test_without_the_setting_no_tool_is_added() -> None:
    settings = read_settings({"LETTA_BASE_URL": "http://letta.test", "BRIDGE_ALLOW_ANONYMOUS": "1"})
    assert settings.own_files.tools is None
