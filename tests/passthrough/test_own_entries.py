from __future__ import annotations

import json
from typing import Any

import pytest

from bridge.chats.lists import METADATA_KEY
from bridge.letta.gateway import Agent, ForeignCall
from bridge.passthrough.own_entries import with_own_entries

AGENT_ID = "agent-00000000-0000-0000-0000-000000000001"
PATH = f"/v1/agents/{AGENT_ID}"


def changed(body: Any, *, present: dict[str, Any], verb: str = "PATCH", path: str = PATH) -> Any:
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    agent = Agent(AGENT_ID, "Ada", "letta_v1_agent", metadata=present)
    call = with_own_entries(ForeignCall(verb, path, body=sent), lambda agent_id: agent)
    return json.loads(call.body or b"") if call.body != sent else sent


def test_a_clients_metadata_takes_the_place_of_all_but_the_bridges_entries() -> None:
    present = {"colour": "red", METADATA_KEY: {"current": "new"}, "letta-tool-bridge": {"x": 1}}
    body = {"metadata": {"shape": "round", METADATA_KEY: {"current": "old"}}, "name": "Bob"}
    assert changed(body, present=present) == {
        "name": "Bob",
        "metadata": {"shape": "round", METADATA_KEY: {"current": "new"}, "letta-tool-bridge": {"x": 1}},
    }


def test_an_entry_that_the_agent_has_no_more_does_not_come_back() -> None:
    assert changed({"metadata": {METADATA_KEY: {}, "a": 1}}, present={}) == {"metadata": {"a": 1}}


@pytest.mark.parametrize(
    ("body", "verb", "path"),
    [
        ({"name": "Bob"}, "PATCH", PATH),
        ({"metadata": None}, "PATCH", PATH),
        ({"metadata": {"a": 1}}, "POST", PATH),
        ({"metadata": {"a": 1}}, "PATCH", f"{PATH}/reset-messages"),
        ({"metadata": {"a": 1}}, "PATCH", "/v1/blocks/block-1"),
        (b'{"metadata": ', "PATCH", PATH),
        (b'["metadata"]', "PATCH", PATH),
    ],
)
def test_any_other_change_is_passed_on_as_it_is(body: Any, verb: str, path: str) -> None:
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    assert changed(body, present={METADATA_KEY: {}}, verb=verb, path=path) == sent
