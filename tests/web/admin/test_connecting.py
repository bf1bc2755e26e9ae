"""The page that says how each client is connected. tests/browser tries its copy buttons."""

from __future__ import annotations

import hashlib
import re

import pytest
from flask.testing import FlaskClient

from bridge.errors import LettaUnreachable
from bridge.letta.gateway import HELPER_PREFIX, Agent
from bridge.operation.recipes import Recipe
from bridge.web.admin import connecting
from tests.admin import PASSWORD, Operator
from tests.toolsets import SharedLetta

LETTA_CODE = Recipe("code", "Code of Letta", "Any.", "No.", env=("LETTA_BASE_URL=<<origin>>/letta",), needs="letta")
HOSTILE = "<script>alert(1)</script>\"'$(touch x)`{{7*7}}\u202e"


@pytest.fixture
def environment(environment: dict[str, str]) -> dict[str, str]:
    return {**environment, "BRIDGE_ADMIN_PASSWORD": PASSWORD}


@pytest.fixture
def letta() -> SharedLetta:
    fake = SharedLetta()
    for name in ("zoe", "Ada", f"{HELPER_PREFIX}1"):
        fake.has_agent(name)
    return fake


@pytest.fixture
def ada(letta: SharedLetta) -> Agent:
    return letta.agent(letta.agents_named("Ada")[0].id)


@pytest.fixture
def operator(client: FlaskClient) -> Operator:
    return Operator(client)


@pytest.fixture
def with_keys(environment: dict[str, str]) -> None:
    digest = hashlib.sha256(b"canary-key-of-roo").hexdigest()
    environment["BRIDGE_API_KEYS"] = f"roo:{digest},phone:{'a' * 64}:zoe"
    environment["BRIDGE_ALLOW_ANONYMOUS"] = "0"


def test_the_recipes_have_address_key_and_first_agent(operator: Operator) -> None:
    page = operator.text("connect")
    assert "Base URL http://localhost/v1 API Key anything Model Ada" in page
    assert '"model": "Ada"' in page
    assert "the bridge asks for no key" in page
    assert "my-agent" not in page


def test_an_agent_is_chosen_by_the_address(operator: Operator, letta: SharedLetta) -> None:
    zoe = letta.agents_named("zoe")[0].id
    assert [agent["name"] for agent in operator.data("connect")["agents"]] == ["Ada", "zoe"]
    assert "Model zoe" in operator.text(f"connect?agent={zoe}")
    assert f'value="{zoe}" selected' in operator.page(f"connect?agent={zoe}")
    assert "Model Ada" in operator.text("connect?agent=agent-of-nobody")


@pytest.mark.usefixtures("with_keys")
def test_keys_stand_by_name_and_only_those_for_the_agent(operator: Operator, letta: SharedLetta, ada: Agent) -> None:
    text = operator.text(f"connect?agent={ada.id}")
    assert "Keys for this agent: roo ." in text
    assert "API Key YOUR_KEY" in text
    assert operator.data(f"connect?agent={letta.agents_named('zoe')[0].id}")["key_names"] == ["phone", "roo"]
    assert "canary" not in operator.page("connect")
    assert "aaaa" not in operator.page("connect")


def test_an_agent_that_no_key_may_use_is_said_to_be_so(
    environment: dict[str, str], request: pytest.FixtureRequest
) -> None:
    environment |= {"BRIDGE_API_KEYS": f"phone:{'a' * 64}:zoe", "BRIDGE_ALLOW_ANONYMOUS": "0"}
    operator = request.getfixturevalue("operator")
    assert "No key in BRIDGE_API_KEYS may use this agent." in operator.text("connect")


def test_an_agent_whose_name_is_not_unique_stands_by_its_id(operator: Operator, letta: SharedLetta, ada: Agent) -> None:
    letta.has_agent("Ada")
    assert operator.data(f"connect?agent={ada.id}")["values"]["agent"] == ada.id


def test_a_hostile_name_reaches_no_line_to_copy(operator: Operator, letta: SharedLetta) -> None:
    agent = letta.has_agent(HOSTILE)
    page = operator.page(f"connect?agent={agent.id}")
    assert "<script>" not in page
    assert "\u202e" not in page
    copied = re.findall(r"data-copy>(.*?)</", page, re.S)
    assert any(agent.id in text for text in copied)
    assert not any("touch" in text for text in copied)


@pytest.mark.parametrize(
    ("headers", "prefix", "address"),
    [
        ({"Host": "bridge.example.com"}, "", "http://bridge.example.com/v1"),
        ({"Host": "192.168.0.7:8080"}, "/bridge", "http://192.168.0.7:8080/bridge/v1"),
        ({"Host": "bridge.example.com", "X-Forwarded-Proto": "https"}, "/b", "https://bridge.example.com/b/v1"),
    ],
)
def test_the_address_is_the_one_by_which_the_browser_came(
    environment: dict[str, str], request: pytest.FixtureRequest, headers: dict[str, str], prefix: str, address: str
) -> None:
    environment["BRIDGE_URL_PREFIX"] = prefix
    client: FlaskClient = request.getfixturevalue("client")
    response = client.get(f"{prefix}/admin/connect", headers=headers, auth=("operator", PASSWORD))
    assert response.status_code == 200
    assert f"data-copy>{address}<" in response.text
    assert f"{address}/chat/completions" in response.text


def test_a_client_of_lettas_own_api_is_listed_only_if_that_is_on(
    environment: dict[str, str], request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "load_recipes", lambda: (LETTA_CODE,))
    environment["BRIDGE_LETTA_API"] = "agents"
    assert "export LETTA_BASE_URL=http://localhost/letta" in request.getfixturevalue("operator").text("connect")


def test_without_that_api_its_clients_are_not_listed(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connecting, "load_recipes", lambda: (LETTA_CODE,))
    assert operator.data("connect")["recipes"] == []


def test_without_letta_the_recipes_are_there(operator: Operator, letta: SharedLetta) -> None:
    letta.fails(LettaUnreachable("It is down."), at="features")
    text = operator.text("connect")
    assert "It is down. So the agents are missing here." in text
    assert "Model my-agent" in text


def test_a_bridge_that_only_this_machine_reaches_says_so(
    environment: dict[str, str], request: pytest.FixtureRequest
) -> None:
    environment["BRIDGE_HOST"] = "127.0.0.1"
    assert "Only this machine reaches the bridge." in request.getfixturevalue("operator").text("connect")
