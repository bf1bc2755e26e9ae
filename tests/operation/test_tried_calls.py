"""The operator tries a client's tool with an agent made for it, and answers the call by hand."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from bridge.errors import LettaUnreachable, ModelFailed
from bridge.letta.gateway import Agent
from bridge.operation import tried_calls
from bridge.turn import Text
from tests.actors import Chat
from tests.admin import PASSWORD, Operator, RecordedChat, readable_text
from tests.test_complaints import held, tool
from tests.toolsets import SharedLetta
from tests.waiting import until

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'{{7*7}}\u202e"
READ = tool("read_file")
GIVEN = '{"city": "Oslo"}'


@pytest.fixture
def environment(environment: dict[str, str]) -> dict[str, str]:
    return {**environment, "BRIDGE_ADMIN_PASSWORD": PASSWORD}


@pytest.fixture
def letta() -> SharedLetta:
    fake = SharedLetta()
    fake.has_agent("Ada")
    return fake


@pytest.fixture
def ada(letta: SharedLetta) -> Agent:
    return letta.agent(letta.agents_named("Ada")[0].id)


@pytest.fixture
def operator(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> Operator:
    monkeypatch.setattr("bridge.sync.cleanup.GRACE", 0.0)
    monkeypatch.setattr(tried_calls, "POLL", 0.01)
    return Operator(client)


@pytest.fixture
def chat(app: Flask) -> Chat:
    return RecordedChat(app)


@pytest.fixture
def digest(operator: Operator, chat: Chat, letta: SharedLetta) -> str:
    """The digest of a tool that a client has offered, and of which nothing is on the server any more."""
    chat.ask(tools=[READ])
    chat.ask()
    letta.delete_tool(letta.tool("read_file").id)
    (row,) = operator.data("tools")["listing"]["rows"]
    return str(row["digest"])


def begins(operator: Operator, digest: str, agent: Agent, words: str = "") -> str:
    """Returns the path of the try's page."""
    form = {"tool": digest, "agent": agent.id, "words": words}
    response = operator.client.post("/admin/try", data=form)
    assert response.status_code == 303, readable_text(response.text)
    return response.headers["Location"].removeprefix("/admin/")


def answers(operator: Operator, path: str, **form: str) -> TestResponse:
    return operator.client.post(f"/admin/{path}", data=form)


def shown(operator: Operator, path: str, state: str) -> str:
    """Returns the text of the page as soon as the try is in this state."""
    until(lambda: operator.data(path)["tried"]["state"] == state)
    return operator.text(path)


def ended() -> bool:
    return not any(thread.name == "tried-call" for thread in threading.enumerate())


def left(letta: SharedLetta) -> tuple[list[str], list[str]]:
    """Returns the names of all agents and tools on the server when the try is over."""
    until(ended)
    return sorted(agent.name for agent in letta.whole_agents()), sorted(tool.name for tool in letta.tools())


def test_a_call_is_shown_answered_by_hand_and_leaves_nothing(
    operator: Operator, letta: SharedLetta, ada: Agent, digest: str
) -> None:
    before = letta.agent(ada.id)
    letta.will(*held(("read_file", GIVEN)))
    letta.will_say("It is a letter.")
    path = begins(operator, digest, ada)
    page = shown(operator, path, "called")
    assert "Please call the tool read_file with arguments that fit it." in page
    assert 'Call read_file {"city": "Oslo"}' in page
    assert "by the method approval" in page
    assert "http-equiv" not in operator.page(path)
    assert answers(operator, path, result="Dear Bob").status_code == 303
    page = shown(operator, path, "answered")
    assert "Your result Dear Bob" in page
    assert "The agent's answer It is a letter." in page
    assert left(letta) == (["Ada"], [])
    assert "Tried a call of read_file with the model of Ada." in operator.text("activity")
    assert letta.agent(ada.id) == before


def test_the_form_offers_the_tools_and_agents_that_there_are(operator: Operator, ada: Agent, digest: str) -> None:
    page = operator.page(f"try?tool={digest}&agent={ada.id}")
    assert f'value="{digest}" selected' in page
    assert f'value="{ada.id}" selected' in page
    assert "Please call the tool read_file" in page
    (row,) = operator.data("tools")["listing"]["rows"]
    assert f'href="/admin/try?tool={digest}' in operator.page(f"tools/{row['key']}")


def test_without_a_tool_there_is_nothing_to_try(operator: Operator) -> None:
    assert "No client has offered a tool yet" in operator.text("try")


def test_the_agent_is_asked_in_the_operators_words(
    operator: Operator, letta: SharedLetta, ada: Agent, digest: str
) -> None:
    letta.will(*held(("read_file", GIVEN)))
    path = begins(operator, digest, ada, "How is the weather in Oslo?")
    assert "How is the weather in Oslo?" in shown(operator, path, "called")
    answers(operator, path, stop="1")
    assert "You stopped it." in shown(operator, path, "failed")
    assert left(letta) == (["Ada"], [])


def test_an_agent_that_makes_no_call_is_left_no_choice(
    operator: Operator, letta: SharedLetta, ada: Agent, digest: str
) -> None:
    letta.will_say("I'd rather not.")
    letta.will(*held(("read_file", GIVEN)))
    shown(operator, path := begins(operator, digest, ada), "called")
    assert "run_first" in [rule["type"] for rule in letta.rules_seen]
    answers(operator, path, stop="1")
    left(letta)


def test_an_agent_that_never_calls_is_said_to_do_so(
    operator: Operator, letta: SharedLetta, ada: Agent, digest: str
) -> None:
    letta.will_say("I'd rather not.")
    letta.will_say("No.")
    page = shown(operator, begins(operator, digest, ada), "failed")
    assert "The agent did not call the tool. It said: No." in page
    assert left(letta) == (["Ada"], [])


def test_the_page_after_an_answer_goes_on_by_itself(
    operator: Operator, letta: SharedLetta, ada: Agent, digest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tried_calls, "POLL", 0.5)
    letta.will(*held(("read_file", GIVEN)))
    letta.will_say("Done.")
    path = begins(operator, digest, ada)
    shown(operator, path, "called")
    answers(operator, path, result="first")
    page = operator.page(path)
    assert "Give this result" not in page
    assert 'http-equiv="refresh"' in page or operator.data(path)["tried"]["state"] == "answered"
    assert answers(operator, path, result="second").status_code == 400
    assert "Your result first" in shown(operator, path, "answered")
    left(letta)


def test_a_result_may_be_an_error_and_a_further_call_may_follow(
    operator: Operator, letta: SharedLetta, ada: Agent, digest: str
) -> None:
    letta.will(*held(("read_file", GIVEN)))
    letta.will(*held(("read_file", '{"city": "Bergen"}')))
    letta.will_say("It rains.")
    path = begins(operator, digest, ada)
    shown(operator, path, "called")
    answers(operator, path, result="No such city", is_error="1")
    until(lambda: operator.data(path)["tried"]["calls"] == 2)
    assert 'Call 2 read_file {"city": "Bergen"}' in operator.text(path)
    answers(operator, path, result="rain")
    assert "It rains." in shown(operator, path, "answered")
    left(letta)


def test_a_stub_that_was_there_before_stays(operator: Operator, chat: Chat, letta: SharedLetta, ada: Agent) -> None:
    chat.ask(tools=[READ])
    chat.ask()
    (row,) = operator.data("tools")["listing"]["rows"]
    letta.will(*held(("read_file", GIVEN)))
    path = begins(operator, row["digest"], ada)
    shown(operator, path, "called")
    answers(operator, path, stop="1")
    assert left(letta) == (["Ada"], ["read_file"])


@pytest.mark.parametrize("verb", ["make_helper", "put_tool", "send_messages"])
def test_a_failure_is_shown_and_leaves_nothing(
    operator: Operator, letta: SharedLetta, ada: Agent, digest: str, verb: str
) -> None:
    letta.fails(ModelFailed("The agent's model failed."), at=verb)
    assert "The agent's model failed." in shown(operator, begins(operator, digest, ada), "failed")
    assert left(letta) == (["Ada"], [])


def test_a_fault_of_the_bridge_is_shown_and_leaves_nothing(
    operator: Operator, letta: SharedLetta, ada: Agent, digest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    letta.before_call("send_messages", lambda: {}["canary"])
    page = shown(operator, begins(operator, digest, ada), "failed")
    assert "The bridge failed; its log says why." in page
    assert "canary" not in page
    assert left(letta) == (["Ada"], [])


def test_a_form_that_nobody_sends_is_given_up(
    operator: Operator, letta: SharedLetta, ada: Agent, digest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tried_calls, "PATIENCE", 0.1)
    letta.will(*held(("read_file", GIVEN)))
    path = begins(operator, digest, ada)
    assert "Nobody answered the call" in shown(operator, path, "failed")
    assert left(letta) == (["Ada"], [])
    assert "This try does not wait for an answer now." in readable_text(answers(operator, path, result="late").text)


def test_only_a_few_calls_are_tried_at_once(operator: Operator, letta: SharedLetta, ada: Agent, digest: str) -> None:
    paths = []
    for _ in range(tried_calls.MOST_TRIES):
        letta.will(*held(("read_file", GIVEN)))
        paths.append(begins(operator, digest, ada))
        shown(operator, paths[-1], "called")
    refused = operator.client.post("/admin/try", data={"tool": digest, "agent": ada.id})
    assert refused.status_code == 429
    operator.page("try/place 0", 404)
    assert "3 calls are being tried already." in readable_text(refused.text)
    for path in paths:
        answers(operator, path, stop="1")
    assert left(letta) == (["Ada"], [])
    letta.will(*held(("read_file", GIVEN)))
    shown(operator, path := begins(operator, digest, ada), "called")
    answers(operator, path, stop="1")
    left(letta)


def test_tries_of_a_worker_that_died_are_over_and_free_their_places(
    operator: Operator, letta: SharedLetta, ada: Agent, digest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = []
    for _ in range(tried_calls.MOST_TRIES):
        letta.will(*held(("read_file", GIVEN)))
        paths.append(begins(operator, digest, ada))
        shown(operator, paths[-1], "called")
    with monkeypatch.context() as patch:
        patch.setattr(tried_calls, "last_beat", lambda store, worker: None)
        assert "The bridge was restarted meanwhile." in operator.text(paths[0])
        assert answers(operator, paths[0], result="late").status_code == 400
        letta.will(*held(("read_file", GIVEN)))
        paths.append(begins(operator, digest, ada))
    for path in paths:
        shown(operator, path, "called")
        answers(operator, path, stop="1")
    assert left(letta) == (["Ada"], [])


def test_what_cannot_be_removed_is_left_to_the_sweep(
    operator: Operator, letta: SharedLetta, ada: Agent, digest: str, caplog: pytest.LogCaptureFixture
) -> None:
    letta.will(*held(("read_file", GIVEN)))
    letta.will_say("Done.")
    path = begins(operator, digest, ada)
    shown(operator, path, "called")
    letta.fails(LettaUnreachable("It is down."), at="delete_agent")
    answers(operator, path, result="12")
    shown(operator, path, "answered")
    until(ended)
    assert "what a tried call made could not be removed: It is down." in caplog.text


def test_a_lack_of_threads_is_an_error_and_takes_no_place(
    operator: Operator, letta: SharedLetta, ada: Agent, digest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = threading.Thread.start

    def refused(thread: threading.Thread) -> None:
        if thread.name == "tried-call":
            raise RuntimeError("can't start new thread")
        start(thread)

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refused)
        for _ in range(tried_calls.MOST_TRIES + 1):
            assert operator.client.post("/admin/try", data={"tool": digest, "agent": ada.id}).status_code == 500
    letta.will_say("No.")
    letta.will_say("No.")
    shown(operator, begins(operator, digest, ada), "failed")
    left(letta)


def test_unknown_tools_agents_and_tries_are_refused(operator: Operator, ada: Agent, digest: str) -> None:
    post: Callable[..., TestResponse] = operator.client.post
    assert post("/admin/try", data={"tool": "0" * 64, "agent": ada.id}).status_code == 400
    assert post("/admin/try", data={"tool": digest, "agent": f"agent-{uuid.uuid4()}"}).status_code == 404
    assert post("/admin/try/0123").status_code == 404
    operator.page("try/0123", 404)


def test_another_site_can_try_nothing(operator: Operator, client: FlaskClient, ada: Agent, digest: str) -> None:
    for path in ("try", "try/0123"):
        foreign = {"Origin": "https://evil.example"}
        response = client.post(f"/admin/{path}", data={"tool": digest, "agent": ada.id}, headers=foreign)
        assert response.status_code == 403
    assert Operator(client, signed_in=False)
    assert ended()


def test_texts_of_tool_agent_model_and_result_are_escaped(operator: Operator, chat: Chat, letta: SharedLetta) -> None:
    agent = letta.has_agent(HOSTILE)
    sent = tool("read_file", {"type": "object", "properties": {HOSTILE: {"type": "string", "description": HOSTILE}}})
    sent["function"]["description"] = HOSTILE
    chat.ask(model=agent.id, tools=[sent])
    (row,) = operator.data("tools")["listing"]["rows"]
    letta.will(Text(HOSTILE), *held(("read_file", json.dumps({HOSTILE: HOSTILE}))))
    letta.will_say(HOSTILE)
    path = begins(operator, row["digest"], agent, HOSTILE)
    pages = [operator.page(f"try?tool={row['digest']}&agent={agent.id}"), operator.page(f"try?tool={HOSTILE}")]
    shown(operator, path, "called")
    pages.append(operator.page(path))
    answers(operator, path, result=HOSTILE)
    shown(operator, path, "answered")
    pages.append(operator.page(path))
    for page in pages:
        assert "<script>alert" not in page
        assert "<img" not in page
        assert "\u202e" not in page
    assert all(page.count("{{7*7}}") >= 2 for page in pages[2:])
    until(ended)
