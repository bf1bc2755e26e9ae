"""The operator's actions change only what the bridge made, and say before what they will do."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from bridge.errors import LettaUnreachable
from bridge.letta.gateway import Agent, Say
from bridge.operation.actions import CHATS_STAY
from bridge.turn import Text
from tests.actors import Chat
from tests.admin import PASSWORD, Operator, RecordedChat
from tests.test_complaints import HELLO, held, result, tool
from tests.toolsets import GATE, SharedLetta

READ, WRITE = tool("read_file"), tool("write_file")


@pytest.fixture
def environment(environment: dict[str, str]) -> dict[str, str]:
    return {**environment, "BRIDGE_ADMIN_PASSWORD": PASSWORD}


@pytest.fixture
def parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    return {**parameters, "stub_idle": 0.0}


@pytest.fixture
def letta() -> SharedLetta:
    fake = SharedLetta()
    ada = fake.has_agent("Ada")
    theirs = fake.has_tool("theirs")
    fake.attaches(ada, theirs, rules=[{"type": GATE, "tool_name": "theirs"}])
    return fake


@pytest.fixture
def ada(letta: SharedLetta) -> Agent:
    return letta.agent(letta.agents_named("Ada")[0].id)


@pytest.fixture
def operator(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> Operator:
    monkeypatch.setattr("bridge.sync.cleanup.GRACE", 0.0)
    return Operator(client)


@pytest.fixture
def chat(app: Flask) -> Chat:
    return RecordedChat(app)


def names(letta: SharedLetta, agent: Agent) -> list[str]:
    return sorted(tool.name for tool in letta.agent(agent.id).tools)


# --- detach -----------------------------------------------------------------------------------------------


def test_detaching_leaves_the_agent_as_it_was_before_the_bridge(
    operator: Operator, chat: Chat, letta: SharedLetta, ada: Agent
) -> None:
    before = letta.agent(ada.id)
    chat.ask(tools=[READ, WRITE], system="Be kind.")
    asked = operator.asks("detach", ada.id)
    assert "The agent loses 2 tools of clients (read_file, write_file), with their rules." in asked
    assert "It loses the memory block with the client's system prompt." in asked
    assert "Its model makes one call at a time again" in asked
    assert names(letta, ada) == ["read_file", "theirs", "write_file"]
    assert "Detached 2 tools of clients from Ada." in operator.does("detach", ada.id)
    after = letta.agent(ada.id)
    assert (after.tools, after.rules, after.blocks) == (before.tools, before.rules, before.blocks)
    assert (after.parallel_calls, after.metadata) == (before.parallel_calls, before.metadata)
    assert letta.has("read_file")
    chat.ask(tools=[READ])
    assert names(letta, ada) == ["read_file", "theirs"]


def test_an_agent_without_anything_of_the_bridge_has_nothing_to_confirm(operator: Operator, ada: Agent) -> None:
    page = operator.page(f"do/detach?target={ada.id}")
    assert "The agent has nothing of the bridge." in page
    assert 'class="main danger"' not in page


def test_detaching_removes_rules_that_were_left_behind(
    operator: Operator, chat: Chat, letta: SharedLetta, ada: Agent
) -> None:
    chat.ask(tools=[READ])
    letta.detaches(ada, "read_file")
    assert "Rules that earlier tools left behind go, too: read_file." in operator.asks("detach", ada.id)
    operator.does("detach", ada.id)
    assert [rule["tool_name"] for rule in letta.agent(ada.id).rules] == ["theirs"]


@pytest.mark.parametrize("action", ["detach", "delete", "resync"])
def test_no_action_hides_that_a_turn_broke_off(
    operator: Operator, chat: Chat, letta: SharedLetta, ada: Agent, action: str
) -> None:
    letta.will(Text("Half"), LettaUnreachable("cut", code="stream_cut"))
    chat.ask(tools=[READ])
    (stub,) = letta.tools_named(["read_file"])
    operator.does(action, stub.id if action == "delete" else ada.id)
    letta.calls.clear()
    chat.ask("Go on.", tools=[READ])
    assert "runs_under_way" in letta.calls


# --- chats ------------------------------------------------------------------------------------------------


@pytest.fixture
def several_chats(environment: dict[str, str]) -> None:
    environment["BRIDGE_CHATS"] = "each"


@pytest.mark.usefixtures("several_chats")
def test_detaching_puts_the_main_chat_back(operator: Operator, chat: Chat, letta: SharedLetta, ada: Agent) -> None:
    letta.send_messages(ada.id, [Say("user", "I am nobody's chat.")], by_token=False)
    before = letta.agent(ada.id)
    letta.will(*held(("read_file", "{}")))
    chat.ask(tools=[READ])
    assert letta.agent(ada.id).message_ids[1:2] != before.message_ids[1:2]
    asked = operator.asks("detach", ada.id)
    assert "Its main chat comes back into its context, and the bridge's lists of 1 other chat are removed." in asked
    assert "The chat in its context waits for the client's result of read_file." in asked
    done = operator.does("detach", ada.id)
    assert "Detached 1 tool of clients from Ada. Its main chat is in its context." in done
    after = letta.agent(ada.id)
    assert (after.message_ids, after.metadata, after.parallel_calls) == (before.message_ids, before.metadata, False)
    assert "The agent has nothing of the bridge." in operator.asks("detach", ada.id)


@pytest.mark.usefixtures("several_chats")
def test_detaching_leaves_the_chats_while_the_owner_has_to_decide(
    operator: Operator, chat: Chat, letta: SharedLetta, ada: Agent
) -> None:
    chat.ask(tools=[READ])
    letta.holds(ada, "theirs")
    context = letta.agent(ada.id).message_ids
    assert "Its chats stay until that is decided in Letta." in operator.asks("detach", ada.id)
    assert CHATS_STAY in operator.does("detach", ada.id)
    assert (names(letta, ada), letta.agent(ada.id).message_ids) == (["theirs"], context)
    page = operator.page(f"do/detach?target={ada.id}")
    assert "Its chats stay until that is decided in Letta." in page
    assert 'class="main danger"' not in page


# --- resync -----------------------------------------------------------------------------------------------


def test_a_resync_repairs_what_was_changed_by_hand(
    operator: Operator, chat: Chat, letta: SharedLetta, ada: Agent
) -> None:
    chat.ask(tools=[READ, WRITE])
    was = letta.tool("read_file")
    letta.edits(was, source=f"{was.source}\nimport os\n")
    assert "It has 2 tools of clients now (read_file, write_file)." in operator.asks("resync", ada.id)
    assert letta.tool("read_file").source != was.source
    assert "Resynced Ada: it has 2 tools of clients." in operator.does("resync", ada.id)
    assert letta.tool("read_file").source == was.source
    assert names(letta, ada) == ["read_file", "theirs", "write_file"]


def test_a_resync_without_the_history_says_what_it_cannot_repair(
    operator: Operator, chat: Chat, letta: SharedLetta, ada: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat.ask(tools=[READ])
    monkeypatch.setattr("bridge.history.activity.Activity.tool_card", lambda self, digest: None)
    asked = operator.asks("resync", ada.id)
    assert "What the client sent for read_file is not known any more." in asked
    assert "Resynced Ada: it has 0 tools of clients." in operator.does("resync", ada.id)
    assert names(letta, ada) == ["theirs"]


# --- close ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("agent_type", ["letta_v1_agent", "memgpt_v2_agent"])
def test_a_pending_call_is_closed_and_the_agent_is_free(
    operator: Operator, chat: Chat, letta: SharedLetta, agent_type: str
) -> None:
    agent = letta.has_agent("Bob", agent_type)
    letta.will(*held(("read_file", "{}")))
    reply = chat.ask(model="Bob", tools=[READ])
    if agent_type == "memgpt_v2_agent":
        # Its method closes each call at once. Only a bridge that was killed leaves a pending one.
        letta.holds(agent, "read_file")
    assert "The agent waits for the client's result of read_file." in operator.asks("close", agent.id)
    assert "Closed the call of read_file that held Bob." in operator.does("close", agent.id)
    assert "The agent does not wait for the result of any call." in operator.asks("close", agent.id)
    letta.will_say("Here I am")
    assert chat.ask(model="Bob", tools=[READ]).text == "Here I am"
    if agent_type == "letta_v1_agent":
        late = result(reply.message["tool_calls"][0]["id"], "late")
        refused = chat.ask(model="Bob", messages=[HELLO, {"role": "assistant", **reply.message}, late], tools=[READ])
        assert (refused.error or {})["code"] == "no_pending_call"


def test_a_call_of_the_agents_own_tool_cannot_be_closed(operator: Operator, letta: SharedLetta, ada: Agent) -> None:
    letta.holds(ada, "theirs")
    page = operator.page(f"do/close?target={ada.id}")
    assert "Decide about that in Letta." in page
    assert 'class="main danger"' not in page
    assert operator.client.post("/admin/do/close", data={"target": ada.id}).status_code == 409
    assert "give_results" not in letta.calls


# --- delete -----------------------------------------------------------------------------------------------


def test_a_stub_is_deleted_from_its_agents_and_the_server(
    operator: Operator, chat: Chat, letta: SharedLetta, ada: Agent
) -> None:
    letta.has_agent("Bob")
    chat.ask(tools=[READ, WRITE])
    chat.ask(model="Bob", tools=[READ])
    (read,) = [row for row in operator.data("tools")["listing"]["rows"] if row["client_name"] == "read_file"]
    asked = operator.asks("delete", read["key"])
    assert "The stub 'read_file' is deleted from the Letta server." in asked
    assert "2 agents lose it, with its rules (Ada, Bob)." in asked
    assert "Deleted the stub read_file (read_file)." in operator.does("delete", read["key"])
    assert not letta.has("read_file")
    assert names(letta, ada) == ["theirs", "write_file"]
    assert sorted(rule["tool_name"] for rule in letta.agent(ada.id).rules) == ["theirs", "write_file"]
    chat.ask(tools=[READ, WRITE])
    assert names(letta, ada) == ["read_file", "theirs", "write_file"]


def test_only_stubs_of_the_bridge_can_be_deleted(operator: Operator, chat: Chat, letta: SharedLetta) -> None:
    chat.ask(tools=[READ])
    theirs = letta.tool("theirs")
    for key in (theirs.id, "theirs", "", "no-such-key"):
        assert operator.client.post("/admin/do/delete", data={"target": key}).status_code == 404
    assert "delete_tool" not in letta.calls


# --- sweep ------------------------------------------------------------------------------------------------


def test_a_sweep_says_what_it_will_do_and_does_it(operator: Operator, chat: Chat, letta: SharedLetta) -> None:
    assert "There is nothing to sweep." in operator.asks("sweep")
    chat.ask(tools=[READ, WRITE])
    chat.ask(tools=[READ])
    asked = operator.asks("sweep")
    assert "Will be marked as idle, because no agent has them; a later sweep deletes them (1): write_file." in asked
    assert "Unchanged: 1 tool of clients." in asked
    assert "Swept: 0 deleted, 1 marked as idle" in operator.does("sweep")
    assert "Will be deleted, because no agent has had them for too long (1): write_file." in operator.asks("sweep")
    assert letta.has("write_file")
    assert "Swept: 1 deleted" in operator.does("sweep")
    assert not letta.has("write_file")
    assert letta.has("theirs")


def test_a_sweep_names_everything_that_it_will_delete(
    operator: Operator, chat: Chat, letta: SharedLetta, ada: Agent
) -> None:
    names = [f"tool_{number:02}" for number in range(30)]
    chat.ask(tools=[tool(name) for name in names])
    chat.ask()
    operator.does("sweep")
    helper = letta.make_helper(ada.id, "You help.")
    assert f"for too long (30): {', '.join(names)}." in operator.asks("sweep")
    assert "Will be deleted, because their requests were interrupted: 1 helper agent." in operator.asks("sweep")
    assert "Swept: 30 deleted" in operator.does("sweep")
    assert helper.id not in [agent.id for agent in letta.whole_agents()]


# --- all actions ------------------------------------------------------------------------------------------


def test_an_action_is_logged_and_shown(
    operator: Operator, chat: Chat, ada: Agent, caplog: pytest.LogCaptureFixture
) -> None:
    chat.ask(tools=[READ])
    with caplog.at_level("INFO"):
        operator.does("detach", ada.id)
    assert f"operator: detach '{ada.id}': Detached 1 tool of clients from Ada." in caplog.text
    assert "Detached 1 tool of clients from Ada." in operator.text("activity")


def test_the_list_is_up_to_date_after_an_action(operator: Operator, chat: Chat, ada: Agent) -> None:
    chat.ask(tools=[READ])
    assert operator.data("tools")["listing"]["rows"][0]["state"] == "attached"
    operator.does("detach", ada.id)
    assert operator.data("tools")["listing"]["rows"][0]["state"] == "idle"


def test_an_action_that_fails_shows_the_reason(operator: Operator, chat: Chat, letta: SharedLetta, ada: Agent) -> None:
    chat.ask(tools=[READ])
    letta.fails(LettaUnreachable("It went away."), at="change_agent")
    response = operator.client.post("/admin/do/detach", data={"target": ada.id})
    assert response.status_code == 502
    assert "It went away." in response.text


@pytest.mark.timeout(30)
@pytest.mark.parametrize("action", ["resync", "detach", "close"])
@pytest.mark.parametrize("target", ["agent-0", "", "\0", "a\nb", "..", "../../x", "x" * 3000])
def test_an_action_on_an_unknown_agent_is_not_found(operator: Operator, app: Flask, action: str, target: str) -> None:
    locks = app.extensions["parts"].settings.data_dir / "locks"
    before = {file.name for file in locks.iterdir()}
    assert operator.client.get(f"/admin/do/{action}", query_string={"target": target}).status_code == 404
    assert operator.client.post(f"/admin/do/{action}", data={"target": target}).status_code == 404
    assert {file.name for file in locks.iterdir()} == before


def test_unknown_actions_are_not_found(operator: Operator) -> None:
    operator.page("do/format", 404)
    assert operator.client.post("/admin/do/format").status_code == 404
    assert operator.client.get("/admin/sign-out").status_code == 404


def test_an_action_waits_for_the_agents_turn(operator: Operator, chat: Chat, letta: SharedLetta, ada: Agent) -> None:
    """It runs before the turn or after it, never in the middle."""
    begun, goes_on = threading.Event(), threading.Event()
    seen: list[list[str]] = []

    def in_the_middle() -> None:
        begun.set()
        goes_on.wait(5)
        seen.append(names(letta, ada))

    letta.will(in_the_middle, *held(("read_file", "{}")))
    turn = threading.Thread(target=lambda: chat.ask(tools=[READ]))
    turn.start()
    begun.wait(5)
    acting = threading.Thread(target=lambda: operator.does("detach", ada.id))
    acting.start()
    acting.join(0.3)
    goes_on.set()
    turn.join()
    acting.join()
    assert seen == [["read_file", "theirs"]]
    assert names(letta, ada) == ["theirs"]
