"""Makes and removes agents on a server of any version, over plain HTTP."""

from collections.abc import Mapping, Sequence
from typing import Any

import requests

from testbed.errors import AgentFailed
from testbed.network import send
from testbed.versions import V1_AGENT

MODEL = "gpt-4o-mini"
CONTEXT_WINDOW = 64_000


def create_agent(
    base_url: str,
    *,
    name: str,
    agent_type: str,
    model_url: str,
    password: str | None = None,
    tools: Sequence[str] = (),
    memory_blocks: Sequence[Mapping[str, Any]] = (),
    system: str | None = None,
    model: str = MODEL,
    context_window: int = CONTEXT_WINDOW,
    **more: Any,
) -> dict[str, Any]:
    """Makes an agent and returns the server's description of it.

    It starts with an empty conversation and with the named tools only, and with `send_message` if it could not answer
    without that. `more` are further fields of the request, which override these.
    """
    body: dict[str, Any] = {
        "name": name,
        "agent_type": agent_type,
        "llm_config": llm_config(agent_type, model_url, model, context_window),
        "embedding_config": embedding_config(model_url),
        "tools": list(dict.fromkeys([*needed_tools(agent_type), *tools])),
        "memory_blocks": [dict(block) for block in memory_blocks],
        "include_base_tools": False,
        # Without this, the older loops put an invented exchange before the first message.
        "initial_message_sequence": [],
    }
    if system is not None:
        body["system"] = system
    answer = _send("POST", f"{base_url}/v1/agents/", password, body | more)
    agent: dict[str, Any] = answer.json()
    return agent


def delete_agent(base_url: str, agent_id: str, password: str | None = None) -> None:
    """Removes an agent."""
    _send("DELETE", f"{base_url}/v1/agents/{agent_id}", password)


def needed_tools(agent_type: str) -> tuple[str, ...]:
    """Returns the tools that an agent of this type needs to answer at all."""
    return () if agent_type == V1_AGENT else ("send_message",)


def llm_config(agent_type: str, model_url: str, model: str, context_window: int) -> dict[str, Any]:
    """Returns the agent's whole model configuration. A handle would be shorter, but handles differ between versions."""
    return {
        "model": model,
        "model_endpoint_type": "openai",
        "model_endpoint": model_url,
        "context_window": context_window,
        "put_inner_thoughts_in_kwargs": agent_type != V1_AGENT,
    }


def embedding_config(model_url: str) -> dict[str, Any]:
    """Returns the agent's whole embedding configuration: versions from 0.7 to 0.15 list no embedding models."""
    return {
        "embedding_model": "text-embedding-3-small",
        "embedding_endpoint_type": "openai",
        "embedding_endpoint": model_url,
        "embedding_dim": 1536,
        "embedding_chunk_size": 300,
    }


def _send(method: str, url: str, password: str | None, body: Mapping[str, Any] | None = None) -> requests.Response:
    answer = send(method, url, body=body, password=password)
    if not answer.ok:
        raise AgentFailed(f"{method} {url} was refused with {answer.status_code}: {answer.text[:2000]}")
    return answer
