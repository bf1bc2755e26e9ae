"""Tests of the requests that make and remove an agent."""

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


def sent_body(letta: Any, agent_type: str, **more: Any) -> dict[str, Any]:
    letta.post(f"{SERVER}/v1/agents/", json={"id": "agent-1"})
    create_agent(SERVER, name="Ada", agent_type=agent_type, model_url=MODEL, **more)
    body: dict[str, Any] = json.loads(letta.calls[0].request.body)
    return body


@pytest.mark.parametrize("agent_type", ["memgpt_agent", "memgpt_v2_agent"])
def test_an_agent_that_answers_by_send_message_gets_that_tool(letta: Any, agent_type: str) -> None:
    body = sent_body(letta, agent_type, tools=["core_memory_append", "send_message"])
    assert body["tools"] == ["send_message", "core_memory_append"]
    assert body["llm_config"]["put_inner_thoughts_in_kwargs"] is True


def test_an_agent_that_answers_in_plain_text_gets_no_tool(letta: Any) -> None:
    body = sent_body(letta, "letta_v1_agent")
    assert body["tools"] == []
    assert body["llm_config"]["put_inner_thoughts_in_kwargs"] is False


def test_both_models_are_configured_completely(letta: Any) -> None:
    body = sent_body(letta, "memgpt_agent", context_window=8_000)
    assert body["llm_config"]["model_endpoint"] == body["embedding_config"]["embedding_endpoint"] == MODEL
    assert body["llm_config"]["context_window"] == 8_000


def test_no_system_prompt_is_sent_unless_given(letta: Any) -> None:
    assert "system" not in sent_body(letta, "memgpt_agent")


def test_further_fields_override_the_defaults(letta: Any) -> None:
    body = sent_body(letta, "memgpt_agent", system="Be brief.", include_base_tools=True, tags=["a"])
    assert (body["system"], body["include_base_tools"], body["tags"]) == ("Be brief.", True, ["a"])


def test_the_password_is_sent(letta: Any) -> None:
    letta.delete(f"{SERVER}/v1/agents/agent-1", json={})
    delete_agent(SERVER, "agent-1", password="secret")
    assert letta.calls[0].request.headers["Authorization"] == "Bearer secret"


def test_the_error_quotes_the_servers_refusal(letta: Any) -> None:
    letta.post(f"{SERVER}/v1/agents/", json={"detail": "no such type"}, status=422)
    with pytest.raises(AgentFailed, match=r"refused with 422.*no such type"):
        create_agent(SERVER, name="Ada", agent_type="x", model_url=MODEL)
