"""A key limits its client: to agents, methods, a rate and turns at once. Every request has limits of size."""

from __future__ import annotations

import hashlib
import threading
from typing import Any

import pytest
from flask.testing import FlaskClient

from bridge import directory
from bridge.stubs import cache
from bridge.turn import Stopped, Text
from tests.actors import Chat
from tests.fakes import FakeGateway
from tests.sse_checker import check_error
from tests.waiting import SOON

KEYS = {
    "all": "",
    "by-name": ":Ada",
    "by-id": ":{ada}",
    "by-digits": ":Ada@{digits}",
    "wrong": ":ada2|bobby",
    "slow": "::rate=2",
    "single": "::turns=1",
    "prompt": "::methods=prompt",
    "native": "::methods=native",
}


def bearer(name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer the-key-{name}"}


@pytest.fixture
def ada(letta: FakeGateway) -> str:
    letta.has_agent("Bob")
    return letta.agents_named("Ada")[0].id


@pytest.fixture
def environment(environment: dict[str, str], ada: str) -> dict[str, str]:
    hashes = {name: hashlib.sha256(f"the-key-{name}".encode()).hexdigest() for name in KEYS}
    listed = ",".join(f"{name}:{hashes[name]}{more.format(ada=ada, digits=ada[6:14])}" for name, more in KEYS.items())
    return {**environment, "BRIDGE_ALLOW_ANONYMOUS": "0", "BRIDGE_API_KEYS": listed}


# --- agents -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["by-name", "by-id", "by-digits"])
def test_a_key_lists_its_agents_only(chat: Chat, key: str) -> None:
    assert chat.models(headers=bearer("all")) == ["Ada", "Bob"]
    assert chat.models(headers=bearer(key)) == ["Ada"]


@pytest.mark.parametrize("key", ["by-name", "by-id", "by-digits"])
def test_a_key_talks_to_its_agents_by_name_and_by_id(
    chat: Chat, client: FlaskClient, letta: FakeGateway, ada: str, key: str
) -> None:
    for model in ("Ada", ada):
        letta.will_say("Hello")
        assert chat.ask(model=model, headers=bearer(key)).text == "Hello"
        assert client.get(f"/v1/models/{model}", headers=bearer(key)).status_code == 200


@pytest.mark.parametrize("key", ["by-name", "by-id"])
@pytest.mark.parametrize("suffix", ["", ":aside"])
def test_an_agent_of_another_key_is_refused_exactly_like_a_missing_one(
    chat: Chat, client: FlaskClient, letta: FakeGateway, key: str, suffix: str
) -> None:
    bob = letta.agents_named("Bob")[0].id
    unknown = "agent-00000000-0000-4000-8000-000000000000"
    for foreign, missing in (("Bob", "Nobody"), (bob, unknown)):
        replies = [chat.ask(model=model + suffix, headers=bearer(key)) for model in (foreign, missing)]
        assert [reply.status for reply in replies] == [404, 404]
        words = [str(reply.error).replace(model, "X") for reply, model in zip(replies, (foreign, missing), strict=True)]
        assert words[0] == words[1]
        shown = [client.get(f"/v1/models/{model}", headers=bearer(key)) for model in (foreign, missing)]
        assert [reply.status_code for reply in shown] == [404, 404]
    assert letta.prompts == []


@pytest.mark.parametrize("key", ["by-name", "by-id"])
@pytest.mark.parametrize("path", ["/v1/models/{}", "/v1/chat/completions"])
def test_the_bridge_does_the_same_work_for_an_agent_of_another_key_as_for_a_missing_one(
    client: FlaskClient, letta: FakeGateway, monkeypatch: pytest.MonkeyPatch, key: str, path: str
) -> None:
    monkeypatch.setattr(directory, "LIST_KEPT_SECONDS", 0.0)
    models = "Bob", "Nobody", letta.agents_named("Bob")[0].id, "agent-00000000-0000-4000-8000-000000000000"
    work = []
    for model in models:
        letta.calls.clear()
        body = {"model": model, "messages": [{"role": "user", "content": "Hi"}]}
        if "chat" in path:
            reply = client.post(path, json=body, headers=bearer(key))
        else:
            reply = client.get(path.format(model), headers=bearer(key))
        work.append((reply.status_code, reply.headers["X-Bridge-Letta-Calls"], *letta.calls))
    assert len(set(work)) == 1
    assert not {"agent", "agents_named"} & set(work[0])


@pytest.mark.parametrize("suffix", ["", ":aside"])
@pytest.mark.parametrize("model", ["ada2", "bobby"])
def test_the_error_about_a_wrong_name_has_no_name_of_an_agent_of_another_key(
    chat: Chat, client: FlaskClient, model: str, suffix: str
) -> None:
    """Of the names in a key, an agent may not exist: then the turn itself finds that out."""
    for key in ("by-name", "by-id", "wrong"):
        replies = [
            str(chat.ask(model=model + suffix, headers=bearer(key)).error),
            client.get(f"/v1/models/{model}", headers=bearer(key)).text,
        ]
        for reply in replies:
            assert "There is no agent with the name or id" in reply
            assert ("'Ada'" in reply, "'Bob'" in reply) == (key != "wrong", False)
        assert ("did you mean 'Ada'?" in replies[0]) == (model == "ada2" and key != "wrong")
    assert "did you mean 'Bob'?" in str(chat.ask(model="Bobby" + suffix, headers=bearer("all")).error)


def test_the_ids_of_agents_of_another_key_are_not_shown(chat: Chat, letta: FakeGateway) -> None:
    twins = [letta.has_agent("Twin").id, letta.has_agent("Twin").id]
    reply = chat.ask(model="Twin", headers=bearer("by-name"))
    assert reply.status == 404
    assert not [twin for twin in twins if twin in str(reply.error)]


@pytest.mark.parametrize("known", [False, True], ids=["new", "known"])
def test_a_name_that_an_agent_shares_with_one_of_another_key_leads_to_neither(
    chat: Chat, client: FlaskClient, letta: FakeGateway, ada: str, known: bool
) -> None:
    """Other clients may have reached the foreign agent by the name, while there was only one of that name."""
    letta.renames_agent(ada, "Grace")
    foreign = letta.has_agent("Ada").id
    if known:
        assert chat.ask(headers=bearer("all")).status == 200
    letta.renames_agent(ada, "Ada")
    letta.prompts.clear()
    reply = chat.ask(model="Ada", headers=bearer("by-id"))
    assert (reply.status, foreign in str(reply.error), letta.prompts) == (404, False, [])
    assert foreign not in client.get("/v1/models/Ada", headers=bearer("by-id")).text
    longer = directory.name_with_digits(letta.agent(ada))
    assert chat.models(headers=bearer("by-id")) == [longer]
    hidden = directory.name_with_digits(letta.agent(foreign))
    for key in ("by-id", "by-digits"):
        for model in (ada, longer, f"{longer}:aside"):
            assert chat.ask(model=model, headers=bearer(key)).status == 200
        for model in (foreign, hidden, "Ada"):
            assert chat.ask(model=model, headers=bearer(key)).status == 404


def test_a_key_for_a_name_does_not_reach_an_agent_that_lost_that_name(chat: Chat, letta: FakeGateway, ada: str) -> None:
    letta.renames_agent(ada, "Grace")
    assert chat.ask(model=ada, headers=bearer("by-name")).status == 404
    letta.will_say("Hello")
    assert chat.ask(model="Grace", headers=bearer("by-id")).text == "Hello"


# --- rates and turns --------------------------------------------------------------------------------------


def test_a_key_with_too_many_requests_is_told_when_to_come_again(chat: Chat, letta: FakeGateway) -> None:
    for _ in range(2):
        letta.will_say("Hello")
        assert chat.ask(headers=bearer("slow")).status == 200
    reply = chat.ask(headers=bearer("slow"))
    assert reply.status == 429
    assert 1 <= int(reply.headers["Retry-After"]) <= 60
    assert reply.error is not None
    assert (reply.error["type"], reply.error["code"]) == ("rate_limit_error", "rate_limit_exceeded")
    letta.will_say("Hello")
    assert chat.ask(headers=bearer("all")).status == 200


@pytest.mark.parametrize("path", ["/v1/models", "/v1/models/Ada"])
def test_requests_for_models_count_for_the_rate_of_a_key(client: FlaskClient, letta: FakeGateway, path: str) -> None:
    answers = [client.get(path, headers=bearer("slow")) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]
    letta.calls.clear()
    refused = client.get(path, headers=bearer("slow"))
    assert (refused.status_code, check_error(refused.json or {})["code"]) == (429, "rate_limit_exceeded")
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert letta.calls == []


def test_a_key_has_only_its_turns_at_once(chat: Chat, letta: FakeGateway) -> None:
    begun, go_on = threading.Event(), threading.Event()
    letta.will(begun.set, lambda: go_on.wait(SOON), Text("Hello"), Stopped("end_turn"))
    first: list[Any] = []
    asking = threading.Thread(target=lambda: first.append(chat.ask(headers=bearer("single"))))
    asking.start()
    assert begun.wait(SOON)
    refused = chat.ask(model="Bob", headers=bearer("single"))
    go_on.set()
    asking.join(SOON)
    assert (refused.status, refused.error and refused.error["code"]) == (429, "too_many_turns")
    assert first[0].text == "Hello"
    letta.will_say("Again")
    assert chat.ask(headers=bearer("single")).text == "Again"


@pytest.mark.parametrize("body", [b"{", b'{"model": "Nobody", "messages": [{"role": "user", "content": "x"}]}'])
def test_a_request_that_fails_takes_no_slot(chat: Chat, letta: FakeGateway, body: bytes) -> None:
    for _ in range(3):
        assert chat.post(body, headers=bearer("single")).status in (400, 404)
    letta.will_say("Hello")
    assert chat.ask(headers=bearer("single")).text == "Hello"


# --- methods ----------------------------------------------------------------------------------------------


def test_a_key_is_served_by_its_methods(chat: Chat, letta: FakeGateway) -> None:
    letta.will_say("Hello")
    assert chat.ask(headers=bearer("all")).headers["X-Bridge-Method"] == "approval"
    letta.will_say("Hello")
    assert chat.ask(headers=bearer("prompt")).headers["X-Bridge-Method"] == "prompt"


def test_a_key_whose_methods_do_not_work_with_the_agent_is_refused(chat: Chat, letta: FakeGateway) -> None:
    reply = chat.ask(headers=bearer("native"))
    assert reply.status == 403
    assert reply.error is not None
    assert (reply.error["type"], reply.error["code"]) == ("permission_error", "not_allowed")
    assert "native" in reply.error["message"]
    assert letta.prompts == []


# --- sizes ------------------------------------------------------------------------------------------------


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "array", "items": schema}
    return {"type": "object", "properties": {"x": schema}}


def offering(parameters: object) -> dict[str, Any]:
    return {"tools": [{"type": "function", "function": {"name": "read", "parameters": parameters}}]}


class TestLimits:
    @pytest.fixture
    def parameters(self, parameters: dict[str, Any]) -> dict[str, Any]:
        limits = {"max_schema": 1000, "max_depth": 20, "max_result": 100, "max_tools": 3, "max_body": 100_000}
        return {**parameters, **limits}

    @pytest.mark.fault("bodies too large, too deep, or no JSON")
    @pytest.mark.parametrize(
        ("fields", "status", "code", "limit"),
        [
            (offering({"type": "object", "description": "x" * 1000}), 400, "tool_too_large", "1000 are allowed"),
            (offering(nested(20)), 400, "nesting_too_deep", "more than 20 levels"),
            (offering(nested(40)), 400, "nesting_too_deep", "more than 28 levels"),
            ({"tools": offering({})["tools"] * 4}, 400, "too_many_tools", "the limit is 3"),
            ({"metadata": "x" * 100_000}, 413, "request_too_large", "larger than 100000 bytes"),
            (
                {"messages": [{"role": "tool", "tool_call_id": "call_1", "content": "x" * 101}]},
                400,
                "tool_result_too_large",
                "may have 100.",
            ),
        ],
    )
    def test_a_request_beyond_a_limit_is_refused_with_the_limit(
        self, chat: Chat, letta: FakeGateway, fields: dict[str, Any], status: int, code: str | None, limit: str
    ) -> None:
        reply = chat.post(
            {"model": "Ada", "messages": [{"role": "user", "content": "x"}], **fields}, headers=bearer("all")
        )
        assert reply.status == status
        assert reply.error is not None
        assert reply.error["code"] == code
        assert limit in reply.error["message"]
        assert letta.prompts == []

    @pytest.mark.fault("bodies too large, too deep, or no JSON")
    def test_a_request_just_within_the_limits_is_served(self, chat: Chat, letta: FakeGateway) -> None:
        letta.will_say("Hello")
        assert chat.ask(headers=bearer("all"), **offering(nested(8))).status == 200


def test_a_tool_that_does_not_change_is_checked_once(
    chat: Chat, letta: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    places: list[str] = []
    monkeypatch.setattr(cache, "check_schema", lambda schema, where, limits: places.append(where))
    for _ in range(2):
        letta.will_say("Hello")
        assert chat.ask(headers=bearer("all"), **offering({"type": "object"})).status == 200
    assert places == ["tools[0].function.parameters"]


def test_tools_that_ask_for_too_much_work_are_refused_while_the_agent_works(
    chat: Chat, client: FlaskClient, letta: FakeGateway
) -> None:
    large = {"allOf": [{"properties": {f"p{number}": {}}} for number in range(2000)]}
    forms = [{"$ref": "#/$defs/Large", "title": str(number)} for number in range(100)]
    begun, go_on = threading.Event(), threading.Event()
    letta.will(begun.set, lambda: go_on.wait(SOON), Stopped("end_turn"))
    asking = threading.Thread(target=lambda: chat.ask(headers=bearer("all")))
    asking.start()
    assert begun.wait(SOON)
    refused = client.post(
        "/v1/chat/completions",
        json={
            "model": "Ada",
            "messages": [{"role": "user", "content": "x"}],
            **offering({"type": "object", "anyOf": forms, "$defs": {"Large": large}}),
        },
        headers=bearer("all"),
    )
    assert not go_on.is_set()
    go_on.set()
    asking.join(SOON)
    error = check_error(refused.json or {})
    assert (refused.status_code, error["code"], error["param"]) == (
        400,
        "tools_too_complex",
        "tools[0].function.parameters",
    )
    assert "'read'" in error["message"]
    assert len(letta.prompts) == 1


def test_an_agent_of_another_key_is_refused_without_waiting_for_its_turns(
    chat: Chat, client: FlaskClient, letta: FakeGateway
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    letta.will(begun.set, lambda: go_on.wait(SOON), Stopped("end_turn"))
    asking = threading.Thread(target=lambda: chat.ask(model="Bob", headers=bearer("all")))
    asking.start()
    assert begun.wait(SOON)
    refused = client.post(
        "/v1/chat/completions",
        json={"model": "Bob", "messages": [{"role": "user", "content": "x"}]},
        headers=bearer("by-name"),
    )
    go_on.set()
    asking.join(SOON)
    assert check_error(refused.json or {})["code"] == "model_not_found"
