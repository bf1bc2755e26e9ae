"""What the admin pages show, with a Letta in memory. tests/browser tests how they look."""

from __future__ import annotations

import csv
import io
import json
import re
from hashlib import sha256
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from bridge.chats.lists import METADATA_KEY
from bridge.errors import LettaTimeout, LettaUnreachable, StoreUnavailable
from bridge.letta.gateway import Agent, AgentChange
from bridge.letta.trouble import make_error
from bridge.operation import probe
from bridge.operation.snapshots import Snapshots
from bridge.store.sqlite import LocalStore
from bridge.turn import AgentCall, Text, Used
from tests.actors import Chat
from tests.admin import PASSWORD, Operator, RecordedChat
from tests.responses_actor import ResponsesClient
from tests.test_complaints import HELLO, Json, held, result, tool
from tests.toolsets import SharedLetta

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'{{7*7}}&lt;\u202e\x1b[31m"
JSON_PAGES = ("admin/health.json", "admin/tools.json")
READ, WRITE = tool("read_file"), tool("fs.write/file")


@pytest.fixture
def environment(environment: dict[str, str]) -> dict[str, str]:
    own = {"BRIDGE_ADMIN_PASSWORD": PASSWORD, "LETTA_API_KEY": "canary-letta-key", "BRIDGE_TOOL_SEARCH": "0"}
    return {**environment, **own}


@pytest.fixture
def letta() -> SharedLetta:
    fake = SharedLetta()
    fake.has_agent("Ada")
    return fake


@pytest.fixture
def ada(letta: SharedLetta) -> Agent:
    return letta.agent(letta.agents_named("Ada")[0].id)


@pytest.fixture
def operator(client: FlaskClient) -> Operator:
    return Operator(client)


@pytest.fixture
def chat(app: Flask) -> Chat:
    return RecordedChat(app)


def called(chat: Chat, letta: SharedLetta, name: str = "read_file", arguments: str = '{"city": "Oslo"}') -> Json:
    """Runs a turn that ends with a call, and returns the message with the call."""
    letta.will(*held((name, arguments)))
    reply = chat.ask(tools=[READ, WRITE])
    return {"role": "assistant", **reply.message}


def answered(chat: Chat, letta: SharedLetta, call: Json, text: str = "12 degrees", **more: Any) -> None:
    letta.will_say("Thanks")
    given = result(call["tool_calls"][0]["id"], text, **more)
    assert chat.ask(messages=[HELLO, call, given], tools=[READ, WRITE]).status == 200


# --- tools ------------------------------------------------------------------------------------------------


def test_without_a_tool_the_list_says_how_to_get_one(operator: Operator) -> None:
    assert "No client has offered a tool yet" in operator.text("tools")
    assert operator.data("tools")["listing"]["total"] == 0


def test_the_list_shows_how_each_tool_was_used(operator: Operator, chat: Chat, letta: SharedLetta, ada: Agent) -> None:
    answered(chat, letta, called(chat, letta), "No such city", is_error=True)
    rows = {row["client_name"]: row for row in operator.data("tools")["listing"]["rows"]}
    read, write = rows["read_file"], rows["fs.write/file"]
    assert (read["state"], read["offers"], read["calls"], read["results"], read["errors"]) == ("attached", 2, 1, 1, 1)
    assert (write["calls"], write["server_name"]) == (0, letta.tool(write["server_name"]).name)
    assert read["agents"] == [{"id": ada.id, "name": "Ada"}]
    assert read["created"] > 1_700_000_000
    assert read["last_used"] > 1_700_000_000
    text = operator.text("tools")
    assert "read_file same attached Ada" in text
    assert write["server_name"] in text


def test_a_column_of_errors_is_shown_only_if_there_are_errors(
    operator: Operator, chat: Chat, letta: SharedLetta
) -> None:
    answered(chat, letta, called(chat, letta))
    assert "Errors" not in operator.text("tools")
    answered(chat, letta, called(chat, letta), "Error: no such city")
    text = operator.text("tools")
    assert "Look wrong" in text
    assert "Errors" not in text
    (row,) = operator.data("tools?state=look_wrong")["listing"]["rows"]
    assert (row["client_name"], row["errors"], row["look_wrong"]) == ("read_file", 0, 1)
    page = operator.text(f"tools/{row['key']}")
    assert "Look like errors 1" in page
    assert "Result looks like an error Error: no such city" in page
    answered(chat, letta, called(chat, letta), "No such city", is_error=True)
    text = operator.text("tools")
    assert "Errors" in text
    assert "Look wrong" not in text
    assert "3 3 1 +1?" in text
    (row,) = operator.data("tools?state=errors")["listing"]["rows"]
    assert (row["errors"], row["look_wrong"]) == (1, 1)


def test_the_list_shows_the_state_of_each_tool(operator: Operator, chat: Chat, letta: SharedLetta, ada: Agent) -> None:
    letta.has_tool("taken")
    chat.ask(tools=[tool("taken"), tool("stays"), tool("unused"), tool("detached"), tool("overdue"), tool("deleted")])
    chat.ask(tools=[tool("taken"), tool("stays"), tool("detached")])
    letta.detaches(ada, "detached")
    letta.delete_tool(letta.tool("deleted").id)
    old = letta.tool("overdue")
    letta.edits(old, tags=(*old.tags, "letta-tool-bridge:idle-since=1500000000"))
    listing = operator.data("tools")["listing"]
    assert {row["client_name"]: row["state"] for row in listing["rows"]} == {
        "deleted": "gone",
        "detached": "orphaned",
        "overdue": "stale",
        "stays": "attached",
        "taken": "attached",
        "unused": "idle",
    }
    assert [row["client_name"] for row in listing["rows"] if row["taken_by"] == "foreign"] == ["taken"]
    assert "taken_" in operator.text("tools?state=taken")
    for state in ("gone", "orphaned", "stale", "idle"):
        assert operator.data(f"tools?state={state}")["listing"]["found"] == 1


@pytest.mark.parametrize("mark", ["made", "idle-since"])
def test_a_tool_with_an_invalid_time_does_not_break_the_list(
    operator: Operator, chat: Chat, letta: SharedLetta, mark: str
) -> None:
    chat.ask(tools=[READ])
    letta.has_tool("odd", tags=["letta-tool-bridge", f"letta-tool-bridge:{mark}=1763500000000000"])
    key = next(row["key"] for row in operator.data("tools")["listing"]["rows"] if row["client_name"] == "odd")
    assert "read_file" in operator.text("tools")
    assert "Stub on Letta odd" in operator.text(f"tools/{key}")


def test_tools_that_are_sent_with_messages_are_listed(
    environment: dict[str, str], request: pytest.FixtureRequest
) -> None:
    environment["BRIDGE_METHOD"] = "prompt"
    operator, chat = request.getfixturevalue("operator"), request.getfixturevalue("chat")
    chat.ask(tools=[READ])
    (row,) = operator.data("tools")["listing"]["rows"]
    assert (row["state"], row["server_name"], row["method"]) == ("sent along", "", "prompt")
    page = operator.text(f"tools/{row['key']}")
    assert "It is sent with each message; nothing of it is on the server." in page
    assert "Delete stub" not in page


@pytest.fixture
def many(chat: Chat, letta: SharedLetta) -> None:
    letta.has_agent("Charles")
    chat.ask(tools=[tool(f"tool_{number:03}") for number in range(250)])
    chat.ask(model="Charles", tools=[tool("tool_007"), tool("search_web")])
    letta.will(*held(("tool_007", "{}")))
    chat.ask(model="Charles", tools=[tool("tool_007"), tool("search_web")])


@pytest.mark.usefixtures("many")
def test_the_list_is_searched_filtered_sorted_and_cut_into_pages(operator: Operator) -> None:
    def names(query: str) -> list[str]:
        return [row["client_name"] for row in operator.data(f"tools?{query}")["listing"]["rows"]]

    assert names("") == ["search_web", *(f"tool_{number:03}" for number in range(99))]
    assert names("page=3") == [f"tool_{number:03}" for number in range(199, 250)]
    assert names("q=tool_24 ada") == [f"tool_{number}" for number in range(240, 250)]
    assert names("q=charles&agent=") == ["search_web", "tool_007"]
    assert names("agent=Charles&sort=-name") == ["tool_007", "search_web"]
    assert names("sort=-calls")[:2] == ["tool_007", "search_web"]
    assert names("state=idle") == []
    assert names("page=99") == names("page=3")
    assert "Nothing found" in operator.text("tools?q=no+such+thing")
    assert "251 tools, page 2 of 3" in operator.text("tools?page=2")


@pytest.mark.usefixtures("many")
def test_the_lists_make_a_fixed_number_of_calls_to_letta(
    operator: Operator, letta: SharedLetta, app: Flask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last call is the check of the server that /readyz makes, too."""
    monkeypatch.setattr(probe, "KEPT_SECONDS", 60.0)
    letta.calls.clear()
    app.extensions["parts"].snapshots.outdate()
    for page in ("tools", "tools?q=tool", "tools?page=2", "agents", "tools.json", "tools?sort=-calls"):
        operator.page(page)
    assert letta.calls == ["features", "tools", "whole_agents", "check_server"]


@pytest.mark.parametrize(
    "query", ["sort=nothing", "page=-1", "page=x", "page=999999999", "state=none", "q=" + "x" * 5000]
)
def test_invalid_arguments_of_an_address_are_ignored(operator: Operator, query: str) -> None:
    operator.page(f"tools?{query}")


@pytest.mark.parametrize("name", ["_external", "_scheme", "_anchor", "_method", "key"])
def test_an_address_cannot_change_where_the_links_of_its_page_lead(operator: Operator, name: str) -> None:
    page = operator.page(f"tools?{name}=javascript")
    assert f'href="/admin/tools.json?{name}=javascript"' in page
    assert "javascript:" not in page


def test_a_tools_page_shows_it_as_sent_and_as_letta_has_it(operator: Operator, chat: Chat, letta: SharedLetta) -> None:
    parameters = {"type": "object", "properties": {"a-b": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}}
    sent = tool("read_file", parameters)
    letta.will(*held(("read_file", '{"a-b": 1}')))
    reply = chat.ask(tools=[sent])
    letta.will_say("Thanks")
    given = result(reply.message["tool_calls"][0]["id"], "the text of the file")
    chat.ask(messages=[HELLO, {"role": "assistant", **reply.message}, given], tools=[sent])
    (row,) = operator.data("tools")["listing"]["rows"]
    data = operator.data(f"tools/{row['key']}")
    assert data["card"]["parameters"] == parameters
    assert data["tool"]["json_schema"] == letta.tool("read_file").json_schema
    assert data["card"]["changes"]
    (call,) = data["calls"]
    assert (call["arguments"], call["result"], call["ok"]) == ('{"a-b": 1}', "the text of the file", True)
    page = operator.page(f"tools/{row['key']}")
    assert '<span class="w">def</span> read_file(' in page
    assert "the text of the file" in page
    assert data["card"]["changes"][0] in operator.text(f"tools/{row['key']}")
    assert operator.data(f"tools/{row['tool_id']}")["row"] == data["row"]


def test_a_tools_page_marks_the_lines_that_differ(operator: Operator, chat: Chat, letta: SharedLetta) -> None:
    chat.ask(tools=[tool("fs.read", {"type": "object", "properties": {"a-b": {"type": "string"}}})])
    (row,) = operator.data("tools")["listing"]["rows"]
    pairs = operator.data(f"tools/{row['key']}")["comparison"]
    differing = [(pair["sent"], pair["given"]) for pair in pairs if pair["kind"] == "differs"]
    assert ('  "name": "fs.read",', f'  "name": "{row["server_name"]}",') in differing
    assert "because another tool has its name" not in operator.text(f"tools/{row['key']}")
    page = operator.page(f"tools/{row['key']}")
    assert page.count('<tr class="differs">') == len(differing)
    assert f"{len(differing)} lines differ:" in operator.text(f"tools/{row['key']}")


def test_a_tools_page_says_that_the_name_was_taken(operator: Operator, chat: Chat, letta: SharedLetta) -> None:
    letta.has_tool("read_file")
    chat.ask(tools=[READ])
    (row,) = operator.data("tools")["listing"]["rows"]
    text = operator.text(f"tools/{row['key']}")
    assert f"The tool is called '{row['server_name']}' on the server, because another tool has its name." in text
    assert "Nothing: the model sees the tool" not in text


def test_a_very_long_schema_is_shown_without_a_comparison(operator: Operator, chat: Chat) -> None:
    names = [f"property_{number}" for number in range(1100)]
    chat.ask(tools=[tool("long", {"type": "object", "properties": {name: {"type": "string"} for name in names}})])
    (row,) = operator.data("tools")["listing"]["rows"]
    page = operator.page(f"tools/{row['key']}")
    assert operator.data(f"tools/{row['key']}")["comparison"] is None
    assert page.count("property_1099") >= 2


def test_a_tool_that_the_bridge_did_not_make_has_no_page(operator: Operator, letta: SharedLetta) -> None:
    theirs = letta.has_tool("theirs")
    assert "Not found" in operator.text(f"tools/{theirs.id}", 404)


# --- agents -----------------------------------------------------------------------------------------------


def test_the_list_of_agents_shows_type_method_tools_and_waiting_calls(
    operator: Operator, chat: Chat, letta: SharedLetta, ada: Agent
) -> None:
    letta.has_agent("Charles", "memgpt_v2_agent")
    letta.attaches(ada, letta.has_tool("theirs"))
    letta.will(*held(("read_file", "{}")))
    chat.ask(tools=[READ, WRITE], system="Be kind.")
    first, second = operator.data("agents")["agents"]
    assert (first["name"], first["type"], first["loop"], first["method"]) == ("Ada", "letta_v1_agent", "v3", "approval")
    assert (first["own_tools"], first["our_tools"], first["block"]) == (1, 2, len("Be kind."))
    assert first["waits_for"] == ["read_file"]
    assert (second["method"], second["waits_for"], second["our_tools"]) == ("rewrite", [], 0)
    assert "Ada waits" in operator.text("agents")
    assert [row["name"] for row in operator.data("agents?q=charles v2")["agents"]] == ["Charles"]


def test_an_agents_page_shows_its_state_and_its_turns(
    operator: Operator, chat: Chat, letta: SharedLetta, ada: Agent
) -> None:
    call = called(chat, letta)
    page = operator.text(f"agents/{ada.id}")
    assert "Pending call read_file for" in page
    assert "Close pending call" in page
    answered(chat, letta, call)
    letta.will(LettaTimeout("It took too long."))
    chat.ask(tools=[READ, WRITE])
    data = operator.data(f"agents/{ada.id}")
    assert [turn["outcome"] for turn in data["turns"]] == ["letta_timeout", "stop", "tool_calls"]
    kinds = [[step["kind"] for step in turn["steps"]] for turn in data["turns"]]
    assert kinds == [["sync", "failed"], ["sync", "result", "answer"], ["sync", "call"]]
    assert [one["name"] for one in data["our_tools"]] == ["read_file", "fs.write/file"]
    assert data["held"] == []
    text = operator.text(f"agents/{ada.id}")
    assert 'Call read_file {"city": "Oslo"}' in text
    assert "Result read_file 12 degrees" in text
    assert "letta_timeout" in text
    assert "Its loop holds a call for an approval" in text


@pytest.fixture
def several_chats(environment: dict[str, str]) -> None:
    environment["BRIDGE_CHATS"] = "each"


@pytest.mark.usefixtures("several_chats")
def test_an_agents_page_lists_its_chats(operator: Operator, chat: Chat, letta: SharedLetta, ada: Agent) -> None:
    assert operator.data(f"agents/{ada.id}")["chats"] == []
    assert "Chats" not in operator.text(f"agents/{ada.id}")
    called(chat, letta)
    chat.ask("Good morning")
    letta.calls.clear()
    first, second, third = operator.data(f"agents/{ada.id}")["chats"]
    assert letta.calls.count("newest_messages") == 1
    assert (first["in_context"], first["messages"], first["waits_for"]) == (True, 2, [])
    waiting, main = (second, third) if third["is_main"] else (third, second)
    assert (main["id"], main["messages"], main["waits_for"]) == ("main", 0, [])
    assert (waiting["in_context"], waiting["client"], waiting["waits_for"]) == (False, "", ["read_file"])
    text = operator.text(f"agents/{ada.id}")
    assert "3 chats, each with a context of its own" in text
    assert f"{first['id']} in the context now none 2" in text
    assert re.search(rf"{waiting['id']} none 2 .{{1,9}} ago read_file|{waiting['id']} none 2 just now read_file", text)
    assert "main chat none 0" in text
    assert "Close pending call" not in text


@pytest.mark.usefixtures("several_chats")
def test_text_in_the_notes_of_chats_is_escaped(operator: Operator, chat: Chat, letta: SharedLetta, ada: Agent) -> None:
    chat.ask()
    agent = letta.agent(ada.id)
    notes = agent.metadata[METADATA_KEY]
    foreign = {"used": 1e300, "client": HOSTILE, "ids": HOSTILE}
    changed = {**notes, "chats": {**notes["chats"], HOSTILE: foreign}}
    letta.change_agent(ada.id, AgentChange(metadata={METADATA_KEY: changed}))
    page = operator.page(f"agents/{ada.id}")
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "\u202e" not in page
    assert "not known" in page


def test_a_turn_shows_what_the_agent_said_before_it_was_asked_again(
    operator: Operator, chat: Chat, letta: SharedLetta, ada: Agent
) -> None:
    letta.will_say("I don't know.")
    letta.will_say('Here: {"a": 1}')
    assert chat.ask(response_format={"type": "json_object"}).text == '{"a": 1}'
    (turn,) = operator.data(f"agents/{ada.id}")["turns"]
    assert [step["kind"] for step in turn["steps"]] == ["sync", "said", "asked again", "said", "answer"]
    assert turn["reply_format"] == "valid"
    text = operator.text(f"agents/{ada.id}")
    assert "Said I don't know." in text
    assert "Asked again it contains no JSON value" in text
    assert "form of the reply valid" in text


def test_an_agents_page_says_what_a_turn_waited_for(
    operator: Operator, chat: Chat, letta: SharedLetta, ada: Agent
) -> None:
    called(chat, letta)
    letta.will_say("Hello")
    chat.ask("Who is there?")
    page = operator.text(f"agents/{ada.id}")
    assert "Note waiting for another client's tool result" in page
    assert re.search(r"waiting for another client's tool result \d", page)


def test_a_turn_shows_the_api_by_which_it_came(
    app: Flask, operator: Operator, chat: Chat, letta: SharedLetta, ada: Agent
) -> None:
    ResponsesClient(app.test_client()).ask("Hi")
    chat.ask("Hello")
    assert [turn["dialect"] for turn in operator.data(f"agents/{ada.id}")["turns"]] == ["chat_completions", "responses"]
    for page in (operator.text(f"agents/{ada.id}"), operator.text("activity")):
        assert "chat completions" in page
        assert "responses" in page


def test_an_unknown_agent_is_not_found(operator: Operator) -> None:
    assert "Not found" in operator.text("agents/agent-0", 404)


# --- activity and health ----------------------------------------------------------------------------------


def test_the_activity_counts_turns_and_errors(operator: Operator, chat: Chat, letta: SharedLetta) -> None:
    assert "No turn yet" in operator.text("activity")
    answered(chat, letta, called(chat, letta))
    letta.will(LettaTimeout("It took too long."))
    chat.ask()
    data = operator.data("activity")
    assert sum(period["turns"] for period in data["periods"]) == 3
    assert data["errors"] == [["letta_timeout", 1]]
    assert "3 turns in 60 minutes, 1 of them failed" in operator.text("activity")
    assert operator.page("activity").count('class="turn"') == 3


KEYS = {"roo": "a-key-of-roo-1", "phone": "a-key-of-the-phone-2"}


@pytest.fixture
def with_keys(environment: dict[str, str]) -> None:
    environment["BRIDGE_API_KEYS"] = ",".join(
        f"{name}:{sha256(key.encode()).hexdigest()}" for name, key in {**KEYS, "idle": "never used"}.items()
    )


@pytest.fixture
def by_key(with_keys: None, app: Flask, letta: SharedLetta) -> None:
    """Runs two turns of one key, the second of which fails, and one turn of another."""
    letta.has_agent("Charles")
    roo, phone = RecordedChat(app, KEYS["roo"]), RecordedChat(app, KEYS["phone"])
    letta.will(Text("Hello"), Used(1_000, 20))
    assert roo.ask("What is the weather in Oslo?").status == 200
    letta.will(LettaTimeout("It took too long."))
    roo.ask("And in Bergen?", model="Charles")
    letta.will(Text("Hi"), Used(50, 5))
    assert phone.ask("Good morning").status == 200


@pytest.mark.usefixtures("by_key")
def test_turns_show_their_key_dialect_request_id_and_the_users_words(operator: Operator) -> None:
    turns = operator.data("turns")["listing"]["turns"]
    assert [(turn["key_name"], turn["user_words"]) for turn in turns] == [
        ("phone", "Good morning"),
        ("roo", "And in Bergen?"),
        ("roo", "What is the weather in Oslo?"),
    ]
    for page in ("turns", "activity"):
        text = operator.text(page)
        assert "User What is the weather in Oslo?" in text
        assert "key roo" in text
        assert "chat completions" in text
        assert f"request {turns[0]['request_id']}" in text


@pytest.mark.usefixtures("by_key")
def test_turns_are_filtered_alike_on_the_page_and_for_programs(operator: Operator, letta: SharedLetta) -> None:
    def words(query: str) -> list[str]:
        (*found,) = csv.DictReader(io.StringIO(operator.page(f"turns.csv?{query}"), newline=""))
        listed = [turn["user_words"] for turn in operator.data(f"turns?{query}")["listing"]["turns"]]
        assert [row["user_words"] for row in found] == listed
        assert operator.page(f"turns?{query}").count('class="turn"') == len(listed)
        return [text.split()[-1] for text in listed]

    ada = letta.agents_named("Ada")[0].id
    assert words("") == ["morning", "Bergen?", "Oslo?"]
    assert words("key=roo") == ["Bergen?", "Oslo?"]
    assert words("key=roo&outcome=failed") == ["Bergen?"]
    assert words("outcome=letta_timeout") == ["Bergen?"]
    assert words(f"agent={ada}") == ["morning", "Oslo?"]
    assert words("agent=Charles") == ["Bergen?"]
    assert words("since=2999-01-01T00:00") == []
    assert words("until=2999-01-01T00:00&key=phone") == ["morning"]
    text = operator.text("turns?since=2999-01-01T00:00")
    assert "Nothing found" in text
    page = operator.page("turns?key=roo&outcome=failed")
    assert '<option value="roo" selected>roo</option>' in page
    assert '<option value="idle">idle</option>' in page
    assert 'href="/admin/turns.csv?key=roo&amp;outcome=failed"' in page


@pytest.mark.usefixtures("by_key")
def test_a_turn_refused_before_its_agent_is_read_chooses_no_agent_in_the_form(
    operator: Operator, app: Flask, letta: SharedLetta
) -> None:
    roo, phone = RecordedChat(app, KEYS["roo"]), RecordedChat(app, KEYS["phone"])
    letta.will(*held(("read_file", "{}")))
    given = roo.ask("Read it", tools=[tool("read_file")]).message
    messages = [HELLO, given, result(given["tool_calls"][0]["id"], "mine")]
    assert phone.post({"model": "Ada", "messages": messages}).status == 400
    assert "" in {turn["agent_name"] for turn in operator.data("turns")["listing"]["turns"]}
    assert [name for name, _ in operator.data("turns")["agents"]] == ["Ada", "Charles"]
    chosen = operator.page("turns?key=roo").partition("</select>")[0]
    assert "selected" not in chosen


def test_without_the_setting_no_page_shows_what_users_say(
    environment: dict[str, str], request: pytest.FixtureRequest
) -> None:
    environment["BRIDGE_KEEP_TEXT"] = "0"
    operator, chat = request.getfixturevalue("operator"), request.getfixturevalue("chat")
    chat.ask("canary of the user")
    for page in ("turns", "activity", "turns.json", "turns.csv", "activity.json"):
        assert "canary" not in operator.page(page)


@pytest.mark.usefixtures("by_key")
def test_usage_is_shown_by_key_and_range(operator: Operator) -> None:
    for name in ("hour", "day", "week", "month"):
        data = operator.data(f"usage?range={name}")
        assert [(row["key"], row["turns"], row["errors"], row["tokens"]) for row in data["rows"]] == [
            ("roo", 2, 1, 1_020),
            ("phone", 1, 0, 55),
            ("idle", 0, 0, 0),
        ]
        assert (data["total"]["turns"], data["total"]["tokens"]) == (3, 1_075)
    assert "roo 2 1 1,000 20 1,020" in operator.text("usage")
    assert operator.page("usage.csv?range=week") == (
        "key,turns,errors,prompt_tokens,completion_tokens,tokens\r\n"
        "roo,2,1,1000,20,1020\r\nphone,1,0,50,5,55\r\nidle,0,0,0,0,0\r\n"
    )


def test_usage_without_keys_counts_all_turns_as_one(operator: Operator, chat: Chat, letta: SharedLetta) -> None:
    assert "No turn in the last hour" in operator.text("usage")
    chat.ask()
    assert "Without a key 1 0" in operator.text("usage")
    assert operator.data("turns?key=-")["listing"]["found"] == 1


@pytest.mark.parametrize("name", ["hour", "day", "week", "month", "", "x"])
def test_the_activity_has_ranges_of_time_and_percentiles(operator: Operator, chat: Chat, name: str) -> None:
    assert operator.data("activity")["percentiles"]["seconds"] == {"p50": None, "p95": None, "p99": None}
    chat.ask()
    data = operator.data(f"activity?range={name}")
    assert sum(period["turns"] for period in data["periods"]) == 1
    assert data["percentiles"]["seconds"]["p50"] == data["percentiles"]["seconds"]["p99"] > 0
    text = operator.text(f"activity?range={name}")
    assert "p50 p95 p99 Whole turn" in text
    assert f"Errors by kind, {data['range']['label']}" in text
    table = operator.page(f"activity.csv?range={name}").splitlines()
    assert len(table) == data["range"]["count"] + 1
    assert sum(int(line.split(",")[2]) for line in table[1:]) == 1


def test_lists_are_there_as_csv(operator: Operator, chat: Chat, letta: SharedLetta) -> None:
    chat.ask(tools=[tool(f"tool_{number:03}") for number in range(150)])
    response = operator.client.get("/admin/tools.csv?q=tool&sort=-name")
    assert response.mimetype == "text/csv"
    assert response.headers["Content-Disposition"] == 'attachment; filename="bridge-tools.csv"'
    rows = list(csv.DictReader(io.StringIO(response.text, newline="")))
    assert [row["name"] for row in rows] == [f"tool_{number:03}" for number in reversed(range(150))]
    assert (rows[0]["state"], rows[0]["agents"], rows[0]["offers"]) == ("attached", "Ada", "1")
    (row,) = csv.DictReader(io.StringIO(operator.page("agents.csv"), newline=""))
    assert (row["name"], row["client_tools"], row["turns"]) == ("Ada", "150", "1")


def test_a_list_that_cannot_be_read_whole_is_no_csv(
    operator: Operator, chat: Chat, letta: SharedLetta, app: Flask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that somebody saves has no place for a warning."""
    chat.ask()
    operator.page("agents")
    letta.fails(LettaUnreachable("It is down."), at="features")
    app.extensions["parts"].snapshots.outdate()
    assert "It is down." in operator.page("agents.csv", 502)

    def broken(*_: object) -> None:
        raise StoreUnavailable("The disk is gone.")

    monkeypatch.setattr(LocalStore, "items", broken)
    assert "The disk is gone." in operator.page("turns.csv", 503)


def test_health_shows_the_parts_and_no_secret(operator: Operator, chat: Chat) -> None:
    chat.ask()
    data = operator.data("health")
    assert data["letta"]["version"] == "0.16.1"
    assert len(data["workers"]) == 1
    shown = {row["variable"]: row for row in data["settings"]}
    assert shown["LETTA_API_KEY"]["value"] == shown["BRIDGE_ADMIN_PASSWORD"]["value"] == "(set, not shown)"
    assert shown["BRIDGE_METHOD"] == {**shown["BRIDGE_METHOD"], "value": "auto", "changed": False}
    for page in ("health", "health.json", "tools", "activity"):
        assert "canary" not in operator.page(page)
        assert PASSWORD not in operator.page(page)


# --- failures ---------------------------------------------------------------------------------------------


def test_pages_say_that_letta_is_down_and_what_to_do(operator: Operator, letta: SharedLetta) -> None:
    letta.fails(LettaUnreachable("The Letta server at http://letta.test can't be reached."), at="features")
    for page in ("tools", "agents", "do/sweep"):
        letta.fails(LettaUnreachable("The Letta server at http://letta.test can't be reached."), at="tools")
        text = operator.text(page, 502)
        assert "Letta does not answer The Letta server at http://letta.test can't be reached." in text
    assert "Letta down" in operator.text("health")
    assert "Activity" in operator.text("activity")
    response = operator.client.get("/admin/tools.json")
    assert (response.status_code, (response.json or {})["error"]["code"]) == (502, "letta_unreachable")


def test_the_pages_and_readiness_say_the_same_of_letta(
    operator: Operator, letta: SharedLetta, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version and the snapshot are kept for longer than the result of the check."""
    monkeypatch.setattr(probe, "KEPT_SECONDS", 0.0)
    trouble = make_error("refused", "http://letta.test:8283")
    for failure in (None, trouble, None):
        letta.recovers()
        if failure:
            letta.fails(failure, at="check_server")
        ready, health, tools = (operator.client.get(f"/{path}") for path in ("readyz", *JSON_PAGES))
        assert (ready.json or {}).get("reasons") == ({"letta": failure.reason} if failure else None)
        assert (health.json or {})["letta"].get("failure") == (failure.message if failure else None)
        assert [warning.startswith(trouble.message) for warning in (tools.json or {})["warnings"]] == [True] * bool(
            failure
        )


def test_without_letta_the_pages_show_what_is_remembered(
    operator: Operator, chat: Chat, letta: SharedLetta, app: Flask, ada: Agent
) -> None:
    answered(chat, letta, called(chat, letta))
    operator.page("tools")
    letta.fails(LettaUnreachable("It is down."), at="features")
    app.extensions["parts"].snapshots.outdate()
    text = operator.text("tools")
    assert "It is down. What you see of it is" in text
    assert "read_file" in text
    agent = operator.text(f"agents/{ada.id}")
    assert "Here is what the bridge remembers of the agent." in agent
    assert "Result read_file 12 degrees" in agent
    assert operator.data("tools")["warnings"]


def test_without_the_store_the_pages_show_what_letta_knows(
    operator: Operator, chat: Chat, letta: SharedLetta, monkeypatch: pytest.MonkeyPatch
) -> None:
    called(chat, letta)

    def broken(*_: object, **__: object) -> None:
        raise StoreUnavailable("The disk is gone.")

    for name in ("get", "items", "add_to_counter", "check_writable", "put", "append"):
        monkeypatch.setattr(LocalStore, name, broken)
    for page in ("tools", "agents", "activity"):
        assert "The disk is gone. So the history is missing here." in operator.text(page)
    assert "read_file" in operator.text("tools")
    assert "store fails" in operator.text("health")


def test_the_page_of_an_internal_error_does_not_show_its_message(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> None:
        raise ZeroDivisionError("canary")

    monkeypatch.setattr(Snapshots, "view", broken)
    page = operator.page("tools", 500)
    assert "The bridge failed; its log says why." in page
    assert "canary" not in page


# --- text from outside ------------------------------------------------------------------------------------


def test_text_from_outside_is_escaped(operator: Operator, chat: Chat, letta: SharedLetta) -> None:
    agent = letta.has_agent(HOSTILE)
    sent = tool("read_file", {"type": "object", "properties": {HOSTILE: {"type": "string", "description": HOSTILE}}})
    sent["function"]["description"] = HOSTILE
    letta.will(
        Text(HOSTILE),
        AgentCall("m0", "c0", HOSTILE, HOSTILE),
        *held(("read_file", json.dumps({HOSTILE: HOSTILE}))),
    )
    reply = chat.ask(model=agent.id, tools=[sent], system=HOSTILE)
    letta.will(LettaTimeout(HOSTILE))
    chat.ask(
        model=agent.id,
        messages=[HELLO, {"role": "assistant", **reply.message}, result(reply.message["tool_calls"][0]["id"], HOSTILE)],
        tools=[sent],
    )
    letta.edits(letta.tool("read_file"), source=f"# letta-tool-bridge\ndef f():\n    '''{HOSTILE}'''\n{HOSTILE}")
    (row,) = operator.data("tools")["listing"]["rows"]
    chat.ask(HOSTILE, model=agent.id)
    pages = [
        "tools",
        "agents",
        "activity",
        "turns",
        "usage",
        f"turns?agent={HOSTILE}&key={HOSTILE}&since={HOSTILE}",
        f"tools/{row['key']}",
        f"agents/{agent.id}",
        f"tools?q={HOSTILE}",
    ]
    pages += [f"do/{action}?target={agent.id}" for action in ("resync", "detach")] + [f"do/delete?target={row['key']}"]
    for path in pages:
        page = operator.page(path)
        assert "<script" not in page.replace(SCRIPT, "", 1)
        assert "<img" not in page
        assert "onerror=alert(2)>" not in page.replace("onerror=alert(2)&gt;", "")
        assert "'49" not in page
        assert "&#39;49" not in page
        assert "\u202e" not in page
        assert "\x1b" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in operator.page(f"agents/{agent.id}")


SCRIPT = '<script src="/admin/static/live.js" defer></script>'


def test_pages_load_nothing_from_other_hosts(operator: Operator, chat: Chat) -> None:
    chat.ask(tools=[READ])
    for path in ("tools", "agents", "activity", "turns", "usage", "health", "sign-in"):
        page = operator.page(path)
        assert page.count("<script") == page.count(SCRIPT) == (0 if path == "sign-in" else 1)
        assert " style=" not in page
        assert "http-equiv" not in page
        for link in ("src=", "href="):
            assert f'{link}"http' not in page


@pytest.fixture
def searching(environment: dict[str, str]) -> None:
    environment["BRIDGE_TOOL_SEARCH"] = "20"


@pytest.mark.usefixtures("searching")
def test_the_page_of_an_agent_shows_what_it_looked_for_and_found(
    operator: Operator, chat: Chat, letta: SharedLetta
) -> None:
    letta.will(*held(("search_tools", json.dumps({"words": f"{HOSTILE} news"}))))
    letta.will(*held(("call_tool", '{"name": "nwes", "arguments": {}}')))
    chat.ask(tools=[*(tool(f"tool_{number}") for number in range(30)), tool("read_news")])
    (agent,) = letta.agents_named("Ada")
    page = operator.page(f"agents/{agent.id}")
    assert "Looked for tools" in page
    assert "read_news" in page
    assert "offers 16 tools that the agent does not have" in page
    assert HOSTILE not in page
    assert "by search" in page
    looked = operator.data(f"agents/{agent.id}")["looked_up"]
    assert [(step["name"], step["ok"]) for step in looked] == [("call_tool", False), ("search_tools", True)]
