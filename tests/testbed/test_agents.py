"""What a server is asked for when an agent is made."""

import json
from typing import Any

import pytest
import responses

from testbed.agents import create_agent, delete_agent
from testbed.errors import AgentFailed

SERVER = "http://letta.test"
MODEL = "http://model.test/v1"


@pytest.fixture
def letta() -> Any:
    with responses.RequestsMock() as mock:
        yield mock


def body_for(letta: Any, agent_type: str, **more: Any) -> dict[str, Any]:
    letta.post(f"{SERVER}/v1/agents/", json={"id": "agent-1"})
    create_agent(SERVER, name="Ada", agent_type=agent_type, model_url=MODEL, **more)
    body: dict[str, Any] = json.loads(letta.calls[0].request.body)
    return body


@pytest.mark.parametrize("agent_type", ["memgpt_agent", "memgpt_v2_agent"])
def test_an_agent_that_speaks_by_a_tool_gets_it(letta: Any, agent_type: str) -> None:
    body = body_for(letta, agent_type, tools=["core_memory_append", "send_message"])
    assert body["tools"] == ["send_message", "core_memory_append"]
    assert body["llm_config"]["put_inner_thoughts_in_kwargs"] is True


def test_an_agent_that_speaks_plainly_gets_no_tool(letta: Any) -> None:
    body = body_for(letta, "letta_v1_agent")
    assert body["tools"] == []
    assert body["llm_config"]["put_inner_thoughts_in_kwargs"] is False


def test_both_models_are_given_in_full(letta: Any) -> None:
    body = body_for(letta, "memgpt_agent", context_window=8_000)
    assert body["llm_config"]["model_endpoint"] == body["embedding_config"]["embedding_endpoint"] == MODEL
    assert body["llm_config"]["context_window"] == 8_000


def test_the_system_prompt_is_the_servers_own_unless_given(letta: Any) -> None:
    assert "system" not in body_for(letta, "memgpt_agent")


def test_further_fields_win(letta: Any) -> None:
    body = body_for(letta, "memgpt_agent", system="Be brief.", include_base_tools=True, tags=["a"])
    assert (body["system"], body["include_base_tools"], body["tags"]) == ("Be brief.", True, ["a"])


def test_the_password_is_sent(letta: Any) -> None:
    letta.delete(f"{SERVER}/v1/agents/agent-1", json={})
    delete_agent(SERVER, "agent-1", password="secret")
    assert letta.calls[0].request.headers["Authorization"] == "Bearer secret"


def test_a_refusal_quotes_the_server(letta: Any) -> None:
    letta.post(f"{SERVER}/v1/agents/", json={"detail": "no such type"}, status=422)
    with pytest.raises(AgentFailed, match=r"refused with 422.*no such type"):
        create_agent(SERVER, name="Ada", agent_type="x", model_url=MODEL)
