"""The agents are found that a request changes or runs without their ids at the beginning of its path."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bridge import errors
from bridge.letta.gateway import ForeignCall
from bridge.passthrough.concerned import MOST_AGENTS, agents_concerned, runs_agents
from tests.fakes import FakeGateway

ONE, TWO, THREE = (f"agent-12345678-1234-1234-1234-12345678900{number}" for number in range(3))
PAIR = {"agent_ids": [TWO, ONE]}
GROUP = {"id": "group-1", "agent_ids": [TWO, ONE], "manager_agent_id": THREE}


@pytest.mark.parametrize(
    ("verb", "path", "body", "listed", "asked", "concerned"),
    [
        ("POST", "groups/group-1/messages", {"messages": [THREE]}, PAIR, "groups/group-1", [ONE, TWO]),
        ("POST", "groups/group-1/messages/stream", {}, GROUP, "groups/group-1", [ONE, TWO, THREE]),
        ("PATCH", "groups/group-1/reset-messages", None, GROUP, "groups/group-1", [ONE, TWO, THREE]),
        ("PATCH", "groups/group-1", {"agent_ids": [THREE]}, {"agent_ids": [ONE]}, "groups/group-1", [ONE, THREE]),
        ("POST", "groups/", {"agent_ids": [TWO]}, None, "", [TWO]),
        ("PATCH", "blocks/block-1", {"value": "x"}, [{"id": ONE}, {"id": TWO}], "blocks/block-1/agents", [ONE, TWO]),
        ("DELETE", "blocks/block-1", None, [{"id": ONE}], "blocks/block-1/agents", [ONE]),
        ("DELETE", "_internal_blocks/block-1", None, [{"id": ONE}], "blocks/block-1/agents", [ONE]),
        ("POST", "blocks/", {"label": "x", "value": "y"}, None, "", []),
        ("PATCH", "identities/identity-1", {"agent_ids": [THREE]}, PAIR, "identities/identity-1", [ONE, TWO, THREE]),
        ("POST", "conversations/conv-1/compact", {}, {"agent_id": ONE}, "conversations/conv-1", [ONE]),
        ("POST", "conversations/conv-1/recompile", {}, {"agent_id": ONE}, "conversations/conv-1", [ONE]),
        ("POST", "conversations/conv-1/fork", {}, {"agent_id": ONE}, "conversations/conv-1", [ONE]),
        ("DELETE", "conversations/conv-1", None, {"agent_id": ONE}, "conversations/conv-1", [ONE]),
        ("POST", "conversations/default/compact", {"agent_id": ONE}, None, "", [ONE]),
        ("POST", f"conversations/{ONE}/compact", {}, None, "", [ONE]),
        ("PATCH", f"_internal_agents/{ONE}/core-memory/blocks/human", {"value": "x"}, None, "", [ONE]),
        ("POST", f"voice-beta/{ONE}/chat/completions", {"messages": [TWO]}, None, "", [ONE]),
        ("POST", "chat/completions", {"model": ONE, "messages": [TWO]}, None, "", [ONE]),
        ("POST", "chat/completions", {"model": "gpt-4o"}, None, "", []),
        ("POST", "conversations/conv-1/cancel", {}, None, "", []),
        ("POST", "conversations/conv-1/stream", {}, None, "", []),
        ("GET", "groups/group-1", None, None, "", []),
        ("PATCH", f"agents/{ONE}", {}, None, "", []),
        ("POST", "tools/", {"description": ONE}, None, "", []),
    ],
)  # fmt: skip
def test_these_agents_are_concerned(
    verb: str, path: str, body: Any, listed: Any, asked: str, concerned: list[str]
) -> None:
    letta = FakeGateway()
    if listed is not None:
        letta.will_answer(200, listed)
    call = ForeignCall(verb, f"/v1/{path}", body=None if body is None else json.dumps(body).encode())
    assert agents_concerned(call, letta) == concerned
    assert [one.path for one in letta.forwarded] == ([f"/v1/{asked}"] if asked else [])


def test_the_agent_of_a_default_conversation_may_be_in_the_query() -> None:
    call = ForeignCall("POST", "/v1/conversations/default/recompile", f"agent_id={ONE}")
    assert agents_concerned(call, FakeGateway()) == [ONE]


def test_an_object_that_does_not_exist_concerns_nobody() -> None:
    assert agents_concerned(ForeignCall("DELETE", "/v1/blocks/block-1"), FakeGateway()) == []


def test_nothing_is_changed_if_letta_does_not_say_whom_it_concerns() -> None:
    letta = FakeGateway()
    letta.will_answer(500, {"detail": "No."})
    with pytest.raises(errors.LettaError):
        agents_concerned(ForeignCall("DELETE", "/v1/blocks/block-1"), letta)


def test_batches_are_refused() -> None:
    body = json.dumps({"requests": [{"agent_id": ONE}]}).encode()
    with pytest.raises(errors.InvalidRequest) as refused:
        agents_concerned(ForeignCall("POST", "/v1/messages/batches/", body=body), FakeGateway())
    assert refused.value.code == "not_passed_on"
    assert agents_concerned(ForeignCall("PATCH", "/v1/messages/batches/batch-1/cancel"), FakeGateway()) == []


def test_too_many_agents_are_refused() -> None:
    letta = FakeGateway()
    letta.will_answer(200, [{"id": f"agent-12345678-1234-1234-1234-{number:012}"} for number in range(MOST_AGENTS + 1)])
    with pytest.raises(errors.InvalidRequest) as refused:
        agents_concerned(ForeignCall("DELETE", "/v1/blocks/block-1"), letta)
    assert refused.value.code == "too_many_agents"


def test_only_messages_run_agents() -> None:
    assert runs_agents(ForeignCall("POST", "/v1/groups/group-1/messages/"))
    assert not runs_agents(ForeignCall("GET", "/v1/groups/group-1/messages"))
    assert not runs_agents(ForeignCall("POST", "/v1/groups/group-1/messages/batches"))
