"""A call is answered with the key that it was given to, in every API."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from flask.testing import FlaskClient

from app import create_app
from bridge.config import read_settings
from bridge.dialects.openai.call_ids import CALL_IDS
from bridge.turn import AgentCall, Stopped, Used
from tests.fake_agent import new_id
from tests.fakes import FakeGateway
from tests.letta_actor import READ, answer
from tests.sse_checker import Json

SECRET = "secret-key"
USER = {"role": "user", "content": "Read"}
ARGUMENTS = json.dumps({"path": "a.txt"})


def chat_body(call_id: str) -> Json:
    called = {"id": call_id, "type": "function", "function": {"name": "read", "arguments": ARGUMENTS}}
    result = {"role": "tool", "tool_call_id": call_id, "content": "one"}
    messages = [USER, *([{"role": "assistant", "tool_calls": [called]}, result] if call_id else [])]
    return {"model": "Ada", "messages": messages, "tools": [{"type": "function", "function": READ}]}


def responses_body(call_id: str) -> Json:
    called = {"type": "function_call", "call_id": call_id, "name": "read", "arguments": ARGUMENTS}
    result = {"type": "function_call_output", "call_id": call_id, "output": "one"}
    return {
        "model": "Ada",
        "input": [USER, *([called, result] if call_id else [])],
        "tools": [{**READ, "type": "function"}],
    }


def letta_body(call_id: str) -> Json:
    return {"messages": [answer(call_id)] if call_id else [USER], "client_tools": [READ]}


APIS: dict[str, tuple[str, Callable[[str], Json], Callable[[Any], str]]] = {
    "chat": (
        "/v1/chat/completions",
        chat_body,
        lambda reply: reply["choices"][0]["message"]["tool_calls"][0]["id"],
    ),
    "responses": (
        "/v1/responses",
        responses_body,
        lambda reply: next(item["call_id"] for item in reply["output"] if item["type"] == "function_call"),
    ),
    "letta": (
        "/letta/v1/agents/{agent}/messages",
        letta_body,
        lambda reply: reply["messages"][-1]["tool_calls"][0]["tool_call_id"],
    ),
}


def digest_of(name: str) -> str:
    return hashlib.sha256(f"{SECRET}-{name}".encode()).hexdigest()


class Clients:
    """Clients of one service. `wait` is BRIDGE_TOOL_WAIT."""

    def __init__(self, environment: dict[str, str], letta: FakeGateway, names: Sequence[str], wait: str) -> None:
        """Each of the `names` is a client's, or a whole entry for a key. Without names there are no keys."""
        keys = [name if ":" in name else f"{name}:{digest_of(name)}" for name in names]
        keyed = {"BRIDGE_ALLOW_ANONYMOUS": "", "BRIDGE_API_KEYS": ",".join(keys)} if keys else {}
        settings = {**environment, **keyed, "BRIDGE_LETTA_API": "all", "BRIDGE_TOOL_WAIT": wait}
        app = create_app(read_settings(settings), letta)
        self._client: FlaskClient = app.test_client()
        self._agent = letta.agents_named("Ada")[0].id

    def send(self, name: str, api: str, call_id: str = "", later: Sequence[Json] = ()) -> Any:
        """Asks the agent, or gives the call its result. `later` messages end a transcript of Chat Completions."""
        path, body, _ = APIS[api]
        sent = body(call_id)
        if later:
            sent["messages"] += later
        return self._client.post(path.format(agent=self._agent), json=sent, headers=self._key_of(name))

    def get(self, name: str, path: str) -> Any:
        return self._client.get(path, headers=self._key_of(name)).json

    def _key_of(self, name: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {SECRET}-{name}"}


def opened(clients: Clients, letta: FakeGateway, api: str) -> str:
    """Makes the agent call the tool of client "a". Returns the call's id."""
    letta.will(
        AgentCall(new_id("message"), "call_0", "read", ARGUMENTS, held=True), Used(1, 1), Stopped("requires_approval")
    )
    return APIS[api][2](clients.send("a", api).json)


@pytest.mark.strict
@pytest.mark.parametrize("wait", ["30", "0"])
@pytest.mark.parametrize("api", APIS)
def test_another_key_does_not_answer_a_call(
    environment: dict[str, str], letta: FakeGateway, api: str, wait: str
) -> None:
    clients = Clients(environment, letta, "ab", wait)
    call_id = opened(clients, letta, api)
    prompts = len(letta.prompts)
    for other in APIS:
        refused = clients.send("b", other, call_id)
        assert refused.status_code == 400, refused.text
        assert "No call is waiting" in refused.text
        assert "a.txt" not in refused.text
    assert len(letta.prompts) == prompts
    assert clients.send("a", api, call_id).status_code == 200
    assert letta.prompts[-1].messages[0].results[0].text == "one"  # type: ignore[union-attr]


def test_a_call_of_another_key_looks_like_one_that_was_never_made(
    environment: dict[str, str], letta: FakeGateway
) -> None:
    clients = Clients(environment, letta, "ab", "0")
    call_id = opened(clients, letta, "letta")
    unknown = CALL_IDS.id_in_message(new_id("message"), 0)
    refused, missing = (clients.send("b", "letta", one) for one in (call_id, unknown))
    assert refused.status_code == missing.status_code
    assert refused.text.replace(call_id, unknown) == missing.text


def test_an_older_result_in_a_transcript_does_not_answer_a_call_of_another_key(
    environment: dict[str, str], letta: FakeGateway
) -> None:
    clients = Clients(environment, letta, "ab", "0")
    call_id = opened(clients, letta, "chat")
    later = [{"role": "assistant", "content": "It says one."}, {"role": "user", "content": "Thanks"}]
    assert clients.send("b", "chat", call_id, later).status_code == 200
    given = [one for message in letta.prompts[-1].messages for one in getattr(message, "results", ())]
    assert [one.text for one in given if one.text == "one"] == []


def test_keys_of_one_name_are_one_client(environment: dict[str, str], letta: FakeGateway) -> None:
    """So a key can be replaced while a client runs a tool."""
    clients = Clients(environment, letta, [f"me:{digest_of(name)}" for name in "ab"], "30")
    call_id = opened(clients, letta, "letta")
    assert clients.send("b", "letta", call_id).status_code == 200


def test_without_keys_anybody_answers(environment: dict[str, str], letta: FakeGateway) -> None:
    clients = Clients(environment, letta, [], "30")
    call_id = opened(clients, letta, "responses")
    assert clients.send("b", "chat", call_id).status_code == 200


def test_a_call_that_is_not_waited_for_is_shown_to_its_own_key_only(
    environment: dict[str, str], letta: FakeGateway
) -> None:
    clients = Clients(environment, letta, "ab", "0")
    opened(clients, letta, "letta")
    (agent,) = letta.agents_named("Ada")
    ids = list(letta.agent(agent.id).message_ids)
    for name, shown in (("a", ids), ("b", ids[:-1])):
        letta.will_answer(200, {"id": agent.id, "message_ids": ids})
        assert clients.get(name, f"/letta/v1/agents/{agent.id}")["message_ids"] == shown
