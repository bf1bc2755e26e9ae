"""What programs of Letta's own API do that could break an agent, or a client beside them."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest
import requests

from testbed.agents import CONTEXT_WINDOW, MODEL, llm_config
from tests.real.talk import ANSWER, WEATHER, Talk, ask_weather, calling, tool
from tests.real.world import Agent, World
from tests.sse_checker import Json

pytestmark = [pytest.mark.real, pytest.mark.strict, pytest.mark.one_type]

LETTA_CODE = {"X-Letta-Source": "letta-code"}
OLD_READ = tool("read", "Reads a file.", file_path={"type": "string"})
NEW_READ = tool("read", "Reads a page.", path={"type": "string"}, page={"type": "integer"})


@pytest.fixture
def letta_agent(agent: Agent) -> Agent:
    return replace(agent, api="letta")


@pytest.mark.one_server
def test_two_versions_of_a_program_have_tools_of_one_name(world: World, letta_agent: Agent) -> None:
    """They take turns, each with a call that is open while the other one speaks."""
    old, new = Talk(letta_agent, OLD_READ), Talk(letta_agent, NEW_READ)
    given: dict[str, tuple[Talk, Json]] = {
        "old": (old, {"file_path": "a.txt"}),
        "new": (new, {"path": "b.txt", "page": 2}),
    }
    for turn in range(4):
        for name, (talk, arguments) in given.items():
            asked = talk.say(f"Read {name} {turn}.\n{calling('read*', **arguments)}\n{ANSWER}")
            (shown,) = [one for one in world.model.last_request().tools.values() if one.name.startswith("read")]
            own = set(shown.properties) - {"request_heartbeat", "thinking", "inner_thoughts"}
            assert own == {*arguments}, (name, turn)
            assert asked.calls == [("read", arguments)]
            assert talk.give(f"{name} {turn}").text == f"{name} {turn}"
    assert letta_agent.ask("bye").text == "You said: bye"
    assert letta_agent.fingerprint() == old.before


def patch(agent: Agent, body: Json, headers: dict[str, str] = LETTA_CODE) -> Json:
    url = f"{agent.world.bridge.url}/letta/v1/agents/{agent.id}"
    answer = requests.patch(url, json=body, headers=headers, timeout=60)
    assert answer.status_code == 200, answer.text
    changed: Json = answer.json()
    return changed


@pytest.mark.two_servers
def test_a_program_that_removes_the_rules_and_tags_of_an_agent_does_not_free_its_stubs(letta_agent: Agent) -> None:
    talk = Talk(letta_agent, WEATHER)
    rules = letta_agent.state()["tool_rules"]
    for city in ("Oslo", "Rome"):
        reply = talk.say(ask_weather(city))
        assert reply.calls == [("weather", {"city": city})]
        patch(letta_agent, {"tags": ["origin:letta-code"]})
        patch(letta_agent, {"tool_rules": rules})
        assert talk.give("12 degrees").text == "12 degrees"
    assert letta_agent.ask("bye").text == "You said: bye"
    assert letta_agent.fingerprint() == talk.before
    assert letta_agent.world.letta("GET", f"/v1/agents/{letta_agent.id}")["tags"] == ["origin:letta-code"]


def test_a_program_that_changes_the_model_during_a_call_is_answered(letta_agent: Agent) -> None:
    talk = Talk(letta_agent, WEATHER)
    talk.say(ask_weather())
    config = llm_config(letta_agent.type, letta_agent.world.model.url, "gpt-4.1", CONTEXT_WINDOW)
    patch(letta_agent, {"llm_config": config})
    assert talk.give("12 degrees").text == "12 degrees"
    assert letta_agent.world.model.last_request().body["model"] == "gpt-4.1"
    assert talk.say(ask_weather("Rome")).calls == [("weather", {"city": "Rome"})]
    assert talk.give("20 degrees").text == "20 degrees"


def test_letta_code_sees_no_reason_to_change_the_agent(letta_agent: Agent) -> None:
    """It sets the model of an agent without a handle, or without parallel calls, and removes the rules of its own."""
    before = letta_agent.state()
    Talk(letta_agent, WEATHER).say(ask_weather())
    url = f"{letta_agent.world.bridge.url}/letta/v1/agents/{letta_agent.id}"
    shown = requests.get(url, headers=LETTA_CODE, timeout=60).json()
    assert shown["model"].endswith(f"/{MODEL}")
    assert shown["model_settings"]["parallel_tool_calls"] is True
    assert shown["tool_rules"] == []
    assert [row["name"] for row in shown["tools"]] == [row["name"] for row in before["tools"]]
    assert not [row for row in requests.get(url, timeout=60).json()["tool_rules"] if "weather" in row["tool_name"]]


@pytest.mark.one_server
def test_a_slow_turn_has_its_headers_and_pings_at_once(world: World, letta_agent: Agent, tmp_path: Path) -> None:
    """Programs with letta-client wait a minute for the headers, and then send the message again."""
    body = {
        "messages": [{"role": "user", "content": "Think.\n!delay 4\n!say Done."}],
        "client_tools": [WEATHER["function"]],
        "streaming": True,
    }
    quick = {"header_wait": 0.5, "ping_interval": 0.5}
    with world.start_bridge(quick, BRIDGE_DATA_DIR=str(tmp_path)) as bridge:
        url = f"{bridge.url}/letta/v1/agents/{letta_agent.id}/messages"
        asked = time.monotonic()
        with requests.post(url, json=body, stream=True, timeout=60) as answer:
            assert time.monotonic() - asked < 3
            lines = [line for line in answer.iter_lines(chunk_size=1) if line.startswith(b"data: {")]
    kinds = [json.loads(line.removeprefix(b"data: "))["message_type"] for line in lines]
    assert kinds.count("ping") >= 3
    assert kinds[0] == "ping"
    assert kinds[-3:] == ["assistant_message", "stop_reason", "usage_statistics"]
