"""Stored messages are shown as Letta's own API shows them with client tools."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.catalogue.access import AccessNames
from bridge.dialects.openai.call_ids import CALL_IDS
from bridge.interception.method import GO_ON, NO_RESULT, NO_RESULT_HERE, OLD_NO_RESULT
from bridge.letta.rows import message_from_row
from bridge.passthrough.hiding import OurTools
from bridge.passthrough.readable import may_lack_open_call, readable_messages, with_open_call, with_readable_request
from bridge.turn import JsonObject
from tests.passthrough.answers import ANSWERS, ours_in

OURS = OurTools({"fs_read_1a2b3c4d": "fs.read", "shell": "shell"}, frozenset({"tool-read", "tool-shell"}))
SEARCHING = replace(OURS, access=AccessNames("search_tools", "bridge_describe_tool", "call_tool"))
OWN = frozenset({"own_tool", "send_message"})
REQUEST, RESPONSE, CALL, RETURN = (
    f"{kind}_message" for kind in ("approval_request", "approval_response", "tool_call", "tool_return")
)


def message_id(number: int) -> str:
    return f"message-00000000-0000-4000-8000-{number:012x}"


def call_id(number: int, index: int = 0) -> str:
    return CALL_IDS.id_in_message(message_id(number), index)


def called(name: str = "fs_read_1a2b3c4d", server_id: str = "call_x", **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": json.dumps(arguments or {"path": "a"}), "tool_call_id": server_id}


def row(number: int, kind: str, **fields: Any) -> dict[str, Any]:
    return {"id": message_id(number), "date": "2026-11-19T10:00:21+00:00", "message_type": kind, **fields}


def calling(number: int, *calls: Mapping[str, Any], kind: str = CALL) -> dict[str, Any]:
    return row(number, kind, tool_call=calls[0], tool_calls=list(calls))


def returning(number: int, text: str = NO_RESULT, server_id: str = "call_x", **fields: Any) -> dict[str, Any]:
    return row(number, RETURN, tool_return=text, status="success", tool_call_id=server_id, **fields)


def shown(
    rows: list[JsonObject], last: int = 0, own: frozenset[str] = OWN, ours: OurTools = SEARCHING
) -> list[JsonObject]:
    return readable_messages(rows, ours, message_id(last), own_tool_names=own, call_ids=CALL_IDS)


USER = row(1, "user_message", content="Read a.", name="fs_read_1a2b3c4d")
ANSWER = row(9, "assistant_message", content="Done with fs_read_1a2b3c4d.")
READ = {"name": "fs.read", "arguments": '{"path": "a"}'}


def test_a_closed_call_keeps_its_kind_and_ids_and_gets_its_clients_name() -> None:
    rows = [USER, calling(2, called()), returning(3, "the text", name="fs_read_1a2b3c4d"), ANSWER]
    assert shown(rows, last=9) == [
        USER,
        calling(2, {**READ, "tool_call_id": "call_x"}),
        returning(3, "the text", name="fs.read"),
        ANSWER,
    ]


def test_a_closed_request_stays_a_request() -> None:
    closed = {**READ, "tool_call_id": "call_x"}
    rows = [calling(2, called(), kind=REQUEST), returning(3, "the text"), ANSWER]
    assert shown(rows, last=9)[0] == calling(2, closed, kind=REQUEST)


def test_lettas_own_arguments_of_stubs_are_left_out() -> None:
    rows = [calling(2, called(path="a", request_heartbeat=True, thinking="hm", inner_thoughts="hm")), ANSWER]
    assert shown(rows, last=9)[0]["tool_call"]["arguments"] == '{"path": "a"}'


def test_an_agent_with_the_name_of_a_stub_keeps_its_name() -> None:
    rows = [row(2, CALL, tool_call=called("shell"), name="fs_read_1a2b3c4d"), ANSWER]
    assert shown(rows, last=9) is rows


@pytest.mark.parametrize("arguments", ['{ "path" :1e400}', '{"path": ', "[1]", "", None])
def test_other_arguments_stay_as_the_model_wrote_them(arguments: str | None) -> None:
    rows = [calling(2, {**called("shell"), "arguments": arguments}), ANSWER]
    assert shown(rows, last=9) is rows


def test_calls_of_the_agents_own_tools_stay_unchanged() -> None:
    rows = [calling(2, called("own_tool", request_heartbeat=True)), returning(3, NO_RESULT)]
    assert shown(rows, last=3) is rows


def test_a_piece_of_a_call_gets_its_clients_name() -> None:
    piece = {**called(), "arguments": None}
    streamed = row(2, CALL, tool_call=piece, tool_calls=piece)
    assert shown([streamed], last=9) == [row(2, CALL, tool_call=(new := {**piece, "name": "fs.read"}), tool_calls=new)]


# --- held calls ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("backwards", [False, True])
def test_a_held_call_of_a_stub_has_the_id_under_which_the_bridge_takes_its_result(backwards: bool) -> None:
    rows = [USER, calling(2, called(), kind=REQUEST)][:: -1 if backwards else 1]
    open_call = calling(2, {**READ, "tool_call_id": call_id(2)}, kind=REQUEST)
    assert shown(rows, last=2) == [USER, open_call][:: -1 if backwards else 1]


def test_a_held_call_of_a_server_that_lists_none_gets_a_list() -> None:
    rows = [row(2, REQUEST, tool_call=called())]
    assert shown(rows, last=2) == [calling(2, {**READ, "tool_call_id": call_id(2)}, kind=REQUEST)]


def test_held_calls_in_parallel_have_an_id_each() -> None:
    request = calling(2, called("shell", "call_x"), called("shell", "call_y"), kind=REQUEST)
    calls = shown([request], last=2)[0]["tool_calls"]
    assert [call["tool_call_id"] for call in calls] == [call_id(2, 0), call_id(2, 1)]


def test_a_held_call_of_a_tool_that_came_with_a_message_gets_the_bridges_id() -> None:
    request = calling(2, called("native_tool", request_heartbeat=True), kind=REQUEST)
    expected = calling(2, {**called("native_tool", request_heartbeat=True), "tool_call_id": call_id(2)}, kind=REQUEST)
    assert shown([request], last=2) == [expected]


def test_a_held_call_of_the_agents_own_tool_keeps_its_id() -> None:
    rows = [calling(2, called("own_tool"), kind=REQUEST)]
    assert shown(rows, last=2) is rows
    both = [calling(2, called("shell"), called("own_tool", "call_y"), kind=REQUEST)]
    assert shown(both, last=2) is both


def test_a_held_call_that_left_the_context_is_not_open() -> None:
    rows = [calling(2, called("shell"), kind=REQUEST), ANSWER]
    assert shown(rows, last=9) is rows


# --- provisional returns ------------------------------------------------------------------------------

PACKED = json.dumps({"status": "OK", "message": NO_RESULT, "time": "2026-11-19 10:00:22 AM UTC+0000"})
DENIED = f"Error: request to call tool denied. User reason: {NO_RESULT}"


@pytest.mark.parametrize("text", [NO_RESULT, NO_RESULT_HERE, OLD_NO_RESULT, PACKED, DENIED])
@pytest.mark.parametrize("backwards", [False, True])
def test_a_call_with_a_provisional_return_is_shown_as_held(text: str, backwards: bool) -> None:
    rows = [USER, row(2, CALL, tool_call=called(), step_id="step-1"), returning(3, text)][:: -1 if backwards else 1]
    calls = [{**READ, "tool_call_id": call_id(3)}]
    request = row(3, REQUEST, tool_call=calls[0], step_id="step-1", tool_calls=calls)
    assert shown(rows, last=3) == [USER, request][:: -1 if backwards else 1]


@pytest.mark.parametrize("old", [False, True])
def test_the_bridges_own_denial_is_left_out(old: bool) -> None:
    approvals = [{"type": "approval", "tool_call_id": "message-1", "approve": False, "reason": NO_RESULT}]
    denial = row(4, RESPONSE, approve=False, reason=NO_RESULT, approval_request_id=message_id(2))
    rows = [calling(2, called(), kind=REQUEST), denial if old else {**denial, "approvals": approvals}, returning(3)]
    assert [one["message_type"] for one in shown(rows, last=3)] == [REQUEST]
    closed = [*rows[:2], returning(3, "the text"), ANSWER]
    assert [one["message_type"] for one in shown(closed, last=9)] == [REQUEST, RETURN, "assistant_message"]


HEARTBEAT = row(5, "user_message", content='{"type": "heartbeat", "reason": "user denied request to call tool."}')


@pytest.mark.parametrize("backwards", [False, True])
def test_the_heartbeat_after_the_bridges_own_denial_is_left_out(backwards: bool) -> None:
    denial = row(4, RESPONSE, approve=False, reason=NO_RESULT)
    rows = [HEARTBEAT, calling(2, called("shell"), kind=REQUEST), denial, returning(3), HEARTBEAT][
        :: -1 if backwards else 1
    ]
    kinds = [one["message_type"] for one in shown(rows, last=3)]
    assert kinds == ["user_message", REQUEST][:: -1 if backwards else 1]


def test_other_heartbeats_are_shown() -> None:
    denial = row(4, RESPONSE, approve=False, reason="no")
    rows = [calling(2, called("shell"), kind=REQUEST), denial, returning(3, "no"), HEARTBEAT, ANSWER]
    assert shown(rows, last=9) is rows


def test_the_message_that_makes_an_agent_go_on_is_left_out() -> None:
    assert shown([USER, row(2, "system_message", content=GO_ON), ANSWER], last=9) == [USER, ANSWER]
    said = [row(2, "user_message", content=GO_ON)]
    assert shown(said, last=9) is said


@pytest.mark.parametrize(
    "fields",
    [
        {"approve": True, "reason": NO_RESULT},
        {"approve": False, "reason": "no"},
        {"approve": None, "reason": None},
    ],
)
def test_the_clients_own_decisions_are_shown(fields: dict[str, Any]) -> None:
    rows = [calling(2, called("shell"), kind=REQUEST), row(4, RESPONSE, **fields), ANSWER]
    assert shown(rows, last=9) is rows


def test_an_earlier_call_with_the_same_id_stays_closed() -> None:
    rows = [calling(2, called("shell")), returning(3, "one"), calling(4, called("shell")), returning(5)]
    assert [one["id"] for one in shown(rows, last=5)] == [message_id(number) for number in (2, 3, 5)]
    assert [one["id"] for one in shown(rows[::-1], last=5)] == [message_id(number) for number in (5, 3, 2)]


def test_several_calls_with_provisional_returns_are_one_request() -> None:
    returns = [{"tool_call_id": one, "tool_return": NO_RESULT, "status": "success"} for one in ("call_x", "call_y")]
    request = calling(2, called("shell", "call_x"), called("shell", "call_y"), kind=REQUEST)
    [open_calls] = shown([request, returning(3, tool_returns=returns)], last=3)
    assert [call["tool_call_id"] for call in open_calls["tool_calls"]] == [call_id(3, 0), call_id(3, 1)]


def test_a_given_up_call_keeps_its_provisional_return() -> None:
    rows = [calling(2, called("shell")), returning(3), ANSWER]
    assert shown(rows, last=9) is rows


def test_a_result_is_never_taken_for_a_provisional_return() -> None:
    rows = [calling(2, called("shell")), returning(3, f"{NO_RESULT} I read it in the log.")]
    assert shown(rows, last=3) is rows


OPEN_CALL = [
    *[USER, calling(2, called("shell")), row(4, RESPONSE, approve=False, reason=DENIED)],
    *[returning(3), row(5, "user_message", content='{"type": "heartbeat"}')],
]


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("first", [2, 3, 4])
def test_a_page_with_only_some_messages_of_an_open_call_has_the_call(first: int, backwards: bool) -> None:
    newest = OPEN_CALL[:: -1 if backwards else 1]
    rows = [one for one in newest if one in OPEN_CALL[first:]]
    page, shown_newest = shown(rows, last=3), shown(newest, last=3)
    assert may_lack_open_call(page, message_id(3))
    (request,) = with_open_call(page, newest, shown_newest, message_id(3))
    assert request in shown_newest
    assert (request["id"], request["message_type"]) == (message_id(3), REQUEST)
    assert request["tool_calls"][0]["tool_call_id"] == call_id(3)


def test_a_page_with_the_open_call_lacks_nothing() -> None:
    assert not may_lack_open_call(shown(OPEN_CALL, last=3), message_id(3))
    assert not may_lack_open_call(shown([USER, returning(3, "the text")], last=3), message_id(3))
    assert not may_lack_open_call([USER], "")


def test_a_page_of_an_agent_without_an_open_call_stays_as_it_is() -> None:
    page = [row(5, "user_message", content='{"type": "heartbeat"}')]
    assert with_open_call(page, [*page, ANSWER], [*page, ANSWER], message_id(9)) is page


# --- the pending request of an agent ------------------------------------------------------------------


def test_an_agents_pending_request_is_shown_like_its_message() -> None:
    agent = {"id": "agent-1", "pending_approval": calling(2, called(), kind=REQUEST)}
    expected = calling(2, {**READ, "tool_call_id": call_id(2)}, kind=REQUEST)
    assert with_readable_request(agent, OURS, own_tool_names=OWN, call_ids=CALL_IDS)["pending_approval"] == expected


@pytest.mark.parametrize("agent", [{}, {"pending_approval": None}, {"pending_approval": {}}])
def test_an_agent_without_a_pending_request_is_returned_as_it_is(agent: dict[str, Any]) -> None:
    assert with_readable_request(agent, OURS, own_tool_names=OWN, call_ids=CALL_IDS) is agent


# --- answers of real servers --------------------------------------------------------------------------


def real_messages(answers: dict[str, Any], kind: str, last: str) -> list[JsonObject]:
    ours = ours_in(answers)
    own = {tool["name"] for tool in answers["agent"]["tools"]} - ours.client_names.keys()
    return readable_messages(answers[kind], ours, last, own_tool_names=own, call_ids=CALL_IDS)


@pytest.mark.parametrize("answers", ANSWERS.values(), ids=ANSWERS)
def test_a_real_servers_open_call_is_the_last_message_of_its_agent(answers: dict[str, Any]) -> None:
    last = answers["agent"]["message_ids"][-1]
    rows = real_messages(answers, "open", last)
    call = {**rows[-1]["tool_call"], "name": answers["client_name"], "tool_call_id": answers["call_id"]}
    assert json.loads(call["arguments"]) == {"path": "a.txt"}
    assert {**rows[-1], "id": last, "message_type": REQUEST, "tool_call": call, "tool_calls": [call]} == rows[-1]
    assert [one["message_type"] for one in rows if one["id"] != answers["open"][2]["id"]] == [
        "system_message",
        "user_message",
        *([REQUEST] if last != answers["open"][2]["id"] else []),
    ]


@pytest.mark.parametrize("answers", ANSWERS.values(), ids=ANSWERS)
def test_a_real_servers_closed_call_has_its_result(answers: dict[str, Any]) -> None:
    rows = real_messages(answers, "closed", answers["message_ids_after"][-1])
    [call] = [one for one in rows if "tool_call" in one]
    [returned] = [one for one in rows if one["message_type"] == RETURN]
    assert call["tool_call"]["name"] == answers["client_name"]
    assert message_from_row(returned, packed=True).text == "The text."
    assert returned["tool_call_id"] == call["tool_call"]["tool_call_id"] != answers["call_id"]
    assert rows[-1]["message_type"] == "assistant_message"
    assert not [one for one in rows if one.get("approve") is False]


# --- properties ---------------------------------------------------------------------------------------

names = st.sampled_from(["fs_read_1a2b3c4d", "shell", "own_tool", "native_tool"])
calls = st.builds(
    called,
    names,
    st.sampled_from(["call_x", "call_y"]),
    path=st.text(max_size=3),
    thinking=st.text(max_size=3),
)
returned = st.sampled_from([NO_RESULT, PACKED, DENIED, "the text", ""])
lists_of_rows = st.lists(
    st.one_of(
        st.builds(calling, st.integers(1, 6), calls, kind=st.sampled_from([CALL, REQUEST])),
        st.builds(calling, st.integers(1, 6), calls, calls, kind=st.sampled_from([CALL, REQUEST])),
        st.builds(row, st.integers(1, 6), st.sampled_from([CALL, REQUEST]), tool_call=calls),
        st.builds(returning, st.integers(1, 6), returned, st.sampled_from(["call_x", "call_y"]), name=names),
        st.builds(row, st.integers(1, 6), st.just(RESPONSE), approve=st.booleans(), reason=returned),
        st.builds(row, st.integers(1, 6), st.just("user_message"), content=names),
    ),
    max_size=6,
)


@given(lists_of_rows, st.integers(1, 6))
def test_no_stubs_name_is_left_and_the_rows_themselves_are_not_changed(rows: list[JsonObject], last: int) -> None:
    before = copy.deepcopy(rows)
    result = shown(rows, last)
    assert rows == before
    tools = [one for one in result if one["message_type"] in (REQUEST, CALL, RETURN)]
    assert '"fs_read_1a2b3c4d"' not in json.dumps(tools)
    assert [one for one in result if one["message_type"] == "user_message"] == [
        one for one in rows if one["message_type"] == "user_message"
    ]


@given(lists_of_rows, st.integers(1, 6))
def test_only_the_last_message_of_the_context_is_open(rows: list[JsonObject], last: int) -> None:
    given_ids = {"call_x", "call_y"}
    opened = [one for one in shown(rows, last) if not {call["tool_call_id"] for call in listed(one)} <= given_ids]
    assert len(opened) <= 1
    for one in opened:
        assert (one["id"], one["message_type"]) == (message_id(last), REQUEST)
        places = [CALL_IDS.message_and_index(call["tool_call_id"]) for call in one["tool_calls"]]
        assert {place[0] for place in places if place} == {message_id(last)}


def listed(one: JsonObject) -> list[Mapping[str, Any]]:
    return one.get("tool_calls") or ([one["tool_call"]] if "tool_call" in one else [])


@given(lists_of_rows)
def test_messages_with_nothing_of_ours_are_returned_as_they_are(rows: list[JsonObject]) -> None:
    nothing = OurTools({}, frozenset())
    everything = {"fs_read_1a2b3c4d", "shell", "own_tool", "native_tool"}
    kept = [one for one in rows if one["message_type"] != RESPONSE]
    for last in range(1, 7):
        result = readable_messages(kept, nothing, message_id(last), own_tool_names=everything, call_ids=CALL_IDS)
        assert result is kept


def looked(tool: str, arguments: Any, server_id: str = "call_x") -> dict[str, Any]:
    return {"name": tool, "arguments": json.dumps(arguments), "tool_call_id": server_id}


LOOK = looked("search_tools", {"words": "read a file"})
DESCRIBE = looked("bridge_describe_tool", {"name": "fs.read", "request_heartbeat": True}, "call_y")
THROUGH = looked("call_tool", {"name": "fs.read", "arguments": {"path": "a"}})


def test_searches_for_tools_and_their_answers_are_left_out() -> None:
    rows = [USER, calling(2, LOOK, DESCRIBE), returning(3, "fs.read: Reads."), returning(4, "{}", "call_y"), ANSWER]
    assert shown(rows, last=9) == [USER, ANSWER]


@pytest.mark.parametrize("arguments", [{"path": "a"}, '{"path": "a"}'], ids=["an object", "JSON text"])
def test_a_call_through_the_search_is_shown_as_that_of_the_clients_tool(arguments: Any) -> None:
    through = looked("call_tool", {"name": "fs.read", "arguments": arguments})
    rows = [USER, calling(2, through), returning(3, "the text"), ANSWER]
    assert shown(rows, last=9)[1] == calling(2, {**READ, "tool_call_id": "call_x"})


def test_an_open_call_beside_a_search_is_the_only_one_to_answer() -> None:
    (request,) = shown([calling(2, LOOK, THROUGH, kind=REQUEST)], last=2)
    assert request["tool_calls"] == [{**READ, "tool_call_id": call_id(2, 1)}]


def test_an_open_search_waits_for_nobody() -> None:
    assert shown([USER, calling(2, LOOK, kind=REQUEST)], last=2) == [USER]


def test_a_stub_with_another_name_on_the_server_is_a_search_too() -> None:
    renamed = replace(SEARCHING, client_names={**OURS.client_names, "search_tools_1a2b3c4d": "search_tools"})
    rows = [USER, calling(2, looked("search_tools_1a2b3c4d", {"words": "a"})), returning(3, "found"), ANSWER]
    assert shown(rows, 9, OWN | {"search_tools"}, renamed) == [USER, ANSWER]


@pytest.mark.parametrize("call", [LOOK, THROUGH])
def test_an_agents_own_tool_of_such_a_name_is_shown(call: dict[str, Any]) -> None:
    rows = [USER, calling(2, call), returning(3, "the text"), ANSWER]
    assert shown(rows, 9, OWN | {"search_tools", "call_tool"}) == rows


@pytest.mark.parametrize("call", [LOOK, THROUGH])
def test_a_clients_tool_of_such_a_name_is_shown_if_the_agent_never_had_a_search(call: dict[str, Any]) -> None:
    rows = [USER, calling(2, call), returning(3, "the text"), ANSWER]
    assert shown(rows, last=9, ours=OURS) == rows


def test_a_closed_search_beside_another_call_is_left_out() -> None:
    rows = [calling(2, LOOK, called("shell", "call_z")), ANSWER]
    (row, _) = shown(rows, last=9)
    assert [call["name"] for call in row["tool_calls"]] == ["shell"]
    assert row["tool_call"]["name"] == "shell"


def test_only_the_nearest_answer_with_the_id_of_a_search_is_left_out() -> None:
    """Models may give the same ids again, and old servers give none."""
    shell = calling(4, called("shell", "call_x"))
    done, bare = returning(5, "done"), returning(6, "bare", "")
    rows = [calling(2, LOOK), returning(3, "found"), shell, done, bare, ANSWER]
    assert shown(rows, last=9) == [shell, done, bare, ANSWER]


def test_a_search_that_holds_the_agent_is_no_pending_approval() -> None:
    agent = {"pending_approval": calling(2, LOOK, kind=REQUEST)}
    found = with_readable_request(agent, SEARCHING, own_tool_names=OWN, call_ids=CALL_IDS)
    assert found == {"pending_approval": None}


def test_a_call_through_the_search_with_odd_arguments_is_shown_as_it_is() -> None:
    deep = '{"name": "fs.read", "arguments": {"a": ' + "[" * 600 + "]" * 600 + "}}"
    for arguments in (deep, "no JSON", '{"name": 1}'):
        call = {"name": "call_tool", "arguments": arguments, "tool_call_id": "call_x"}
        assert shown([calling(2, call), ANSWER], last=9)[0] == calling(2, call)
