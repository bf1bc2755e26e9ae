"""The operator sees each chat of an agent, and the calls that chats wait for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from uuid import uuid4

import pytest

from bridge.chats.lists import MAIN, METADATA_KEY, Chat, ChatLists
from bridge.history.records import Step, TurnRecord
from bridge.interception.method import NO_RESULT, OLD_NO_RESULT
from bridge.letta.gateway import Agent, StoredMessage
from bridge.operation.chat_rows import ChatRow, chat_rows
from bridge.turn import PLAIN_CALL_IDS, AgentCall

SYSTEM, FIRST, SECOND, THIRD = (f"message-{uuid4()}" for _ in range(4))
REQUEST, CALL, RETURN = "approval_request_message", "tool_call_message", "tool_return_message"


def agent_with(*chats: Chat, current: str) -> Agent:
    """Returns an agent whose lists have these chats, as the bridge writes them."""
    agent = Agent("agent-1", "Ada", "letta_v1_agent", message_ids=(SYSTEM,))
    lists = ChatLists.of(agent)
    for chat in chats:
        lists = lists.add(chat)
    change = lists.change_to(current, agent, 1_000.0, broken_off=False)
    return replace(agent, message_ids=tuple(change.message_ids or ()), metadata=change.metadata or {})


def rows_of(
    agent: Agent, messages: Iterable[StoredMessage] = (), turns: Sequence[TurnRecord] = ()
) -> dict[str, ChatRow]:
    return {row.id: row for row in chat_rows(agent, messages, turns, PLAIN_CALL_IDS)}


def call(name: str, message_id: str = FIRST, index: int = 0) -> AgentCall:
    return AgentCall(message_id, f"call_{index}", name, "{}", index=index)


def turn_with_calls(message_id: str, *names: str, ended: bool = True) -> TurnRecord:
    steps = tuple(
        Step(0.0, "call", name, call_id=PLAIN_CALL_IDS.id_in_message(message_id, index))
        for index, name in enumerate(names)
    )
    return TurnRecord("turn-1", 3_000.0, "Ada", ended=ended, seconds=5.0, called=len(names), steps=steps)


WAITS = agent_with(Chat("aa", "roo", message_ids=(FIRST, SECOND)), current="aa")


def test_an_agent_with_its_main_chat_only_has_no_rows() -> None:
    assert (
        chat_rows(Agent("agent-1", "Ada", "letta_v1_agent", message_ids=(SYSTEM, FIRST)), (), (), PLAIN_CALL_IDS) == []
    )
    assert rows_of(agent_with(current=MAIN)) == {}


def test_the_chat_in_the_context_comes_first_then_the_last_used_ones() -> None:
    old, new = Chat("old", "roo", message_ids=(FIRST,), used=10.0), Chat("new", "phone", used=900.0)
    agent = agent_with(old, new, Chat("now", message_ids=(SECOND, THIRD)), current="now")
    rows = chat_rows(agent, (), (), PLAIN_CALL_IDS)
    assert [(row.id, row.client, row.in_context, row.messages, row.last_used) for row in rows] == [
        ("now", "", True, 2, 1_000.0),
        (MAIN, "", False, 0, 1_000.0),
        ("new", "phone", False, 0, 900.0),
        ("old", "roo", False, 1, 10.0),
    ]
    assert [row.id for row in rows if row.is_main] == [MAIN]


def test_the_chat_in_the_context_was_used_by_the_agents_last_turn() -> None:
    failed, aside = TurnRecord("turn-2", 9_000.0, "Ada"), TurnRecord("turn-3", 8_000.0, "Ada", ended=True, aside=True)
    rows = rows_of(WAITS, turns=[failed, aside, turn_with_calls(THIRD), turn_with_calls(FIRST)])
    assert (rows["aa"].last_used, rows[MAIN].last_used) == (3_005.0, 1_000.0)


@pytest.mark.parametrize("used", [1e300, -5])
def test_a_time_that_nobody_can_show_is_not_known(used: float) -> None:
    agent = agent_with(Chat("aa"), current=MAIN)
    entry = agent.metadata[METADATA_KEY]
    entry["chats"]["aa"]["used"] = used
    assert rows_of(agent)["aa"].last_used == 0.0


def test_a_chat_whose_last_message_is_an_approval_request_waits_also_out_of_the_context() -> None:
    agent = agent_with(Chat("aa", message_ids=(FIRST, SECOND)), Chat("bb", message_ids=(FIRST,)), current="bb")
    thought = StoredMessage(SECOND, "reasoning_message", text="Hm.")
    request = StoredMessage(SECOND, REQUEST, (call("read_file", SECOND), call("list_files", SECOND, 1)))
    rows = rows_of(agent, [thought, request, StoredMessage(FIRST, "user_message", text="Hi")])
    assert rows["aa"].waits_for == ("read_file", "list_files")
    assert rows["bb"].waits_for == rows[MAIN].waits_for == ()


@pytest.mark.parametrize("text", [NO_RESULT, OLD_NO_RESULT, f"Error: denied. {NO_RESULT}"])
def test_a_chat_whose_last_message_has_a_provisional_text_waits(text: str) -> None:
    called = StoredMessage(FIRST, CALL, (call("read_file"),))
    assert rows_of(WAITS, [StoredMessage(SECOND, RETURN, text=text), called])["aa"].waits_for == ("read_file",)
    assert rows_of(WAITS, [StoredMessage(SECOND, RETURN, text="12 degrees"), called])["aa"].waits_for == ()


def test_of_several_calls_only_those_without_a_result_are_waited_for() -> None:
    called = StoredMessage(FIRST, CALL, (call("read_file"), call("list_files", index=1)))
    returns = {"call_0": "12 degrees", "call_1": NO_RESULT}
    rows = rows_of(WAITS, [called, StoredMessage(SECOND, RETURN, text=NO_RESULT, returns=returns)])
    assert rows["aa"].waits_for == ("list_files",)


def test_a_call_that_is_not_among_the_messages_has_no_name() -> None:
    assert rows_of(WAITS, [StoredMessage(SECOND, RETURN, text=NO_RESULT)])["aa"].waits_for == ("?",)


def test_the_history_has_the_clients_names_and_stands_in_for_messages_that_were_not_read() -> None:
    turns = [turn_with_calls(SECOND, "fs.read/file")]
    request = StoredMessage(SECOND, REQUEST, (call("fs_read_file", SECOND),))
    answered = StoredMessage(SECOND, RETURN, text="12 degrees")
    assert rows_of(WAITS, [request], turns)["aa"].waits_for == ("fs.read/file",)
    assert rows_of(WAITS, [], turns)["aa"].waits_for == ("fs.read/file",)
    assert rows_of(WAITS, [answered], turns)["aa"].waits_for == ()
    assert rows_of(WAITS, [], [turn_with_calls(SECOND, "fs.read/file", ended=False)])["aa"].waits_for == ()
    assert rows_of(WAITS, [], [turn_with_calls(FIRST, "fs.read/file")])["aa"].waits_for == ()
