"""The lists of an agent's chats are read back from the agent's metadata, whatever else stands there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.chats import lists as module
from bridge.chats.lists import MAIN, METADATA_KEY, Chat, ChatLists, change_without_chats, new_chat_id, swap_of
from bridge.heard.records import HeardTurn
from bridge.letta.gateway import Agent, AgentChange

SYSTEM = "message-00000000-0000-4000-8000-000000000000"
NOW = 1_800_000_000.0


def message(number: int) -> str:
    return f"message-{number:08x}-1111-4222-8333-444444444444"


def agent_with(*ids: str, metadata: Mapping[str, Any] | None = None) -> Agent:
    return Agent("agent-1", "Ada", "letta_v1_agent", message_ids=(SYSTEM, *ids), metadata=metadata or {})


def as_letta_returns(agent: Agent, change: AgentChange) -> Agent:
    """Returns the agent after the change, with metadata that went through JSON."""
    assert change.message_ids is not None
    assert change.metadata is not None
    return replace(agent, message_ids=tuple(change.message_ids), metadata=json.loads(json.dumps(change.metadata)))


def enter(agent: Agent, chat: Chat, *, now: float = NOW, broken_off: bool = False) -> Agent:
    change = ChatLists.of(agent).add(chat).change_to(chat.id, agent, now, broken_off=broken_off)
    return as_letta_returns(agent, change)


def go_back(agent: Agent, chat_id: str, *, now: float = NOW) -> Agent:
    change = ChatLists.of(agent).change_to(chat_id, agent, now, broken_off=False)
    return as_letta_returns(agent, change)


def entry_of(agent: Agent) -> dict[str, Any]:
    entry = agent.metadata[METADATA_KEY]
    assert isinstance(entry, dict)
    return entry


def with_entry(entry: object) -> Agent:
    return agent_with(message(1), message(2), metadata={METADATA_KEY: entry})


# --- reading ------------------------------------------------------------------------------------------


def test_an_agent_without_lists_has_the_main_chat_in_context() -> None:
    lists = ChatLists.of(agent_with(message(1), message(2)))
    assert (lists.agent_id, lists.system_id, lists.current) == ("agent-1", SYSTEM, MAIN)
    assert lists.chats == {MAIN: Chat(MAIN, message_ids=(message(1), message(2)))}
    assert not lists.is_kept


def test_an_agent_without_messages_can_be_read() -> None:
    lists = ChatLists.of(Agent("agent-1", "Ada", "letta_v1_agent"))
    assert lists.system_id == ""
    assert lists.chats == {MAIN: Chat(MAIN)}


def test_a_chat_comes_back_with_all_that_is_known_of_it() -> None:
    agent = enter(agent_with(message(1)), Chat("a", "Bob's key", "name of a", (message(2), message(3))))
    agent = enter(agent, Chat("b"), now=NOW + 5)
    lists = ChatLists.of(agent)
    assert lists.current == "b"
    assert lists.is_kept
    assert lists.chats == {
        MAIN: Chat(MAIN, message_ids=(message(1),), used=NOW),
        "a": Chat("a", "Bob's key", "name of a", (message(2), message(3)), NOW + 5),
        "b": Chat("b", used=NOW + 5),
    }
    assert go_back(agent, "a").message_ids == (SYSTEM, message(2), message(3))


def test_the_present_context_is_that_of_the_current_chat_whatever_was_kept_of_it() -> None:
    agent = enter(agent_with(message(1)), Chat("a", "key", message_ids=(message(2),)))
    entry_of(agent)["chats"]["a"]["ids"] = message(9)
    agent = replace(agent, message_ids=(SYSTEM, message(4), message(5)))
    lists = ChatLists.of(agent)
    assert lists.chats["a"] == Chat("a", "key", message_ids=(message(4), message(5)), used=NOW)
    assert lists.chats[MAIN].message_ids == (message(1),)
    left = ChatLists.of(go_back(agent, MAIN))
    assert left.chats["a"].message_ids == (message(4), message(5))


def test_the_ids_of_letta_are_kept_short() -> None:
    agent = go_back(enter(agent_with(message(1)), Chat("a", message_ids=(message(2), message(3)))), MAIN)
    kept = entry_of(agent)["chats"]["a"]["ids"].split()
    assert [len(one) for one in kept] == [22, 22]
    assert "ids" not in entry_of(agent)["chats"][MAIN]


ids_of_letta = st.uuids().map(lambda one: f"message-{one}")
NO_UUIDS = ["message-7", "7", "message-", "run-1", "x" * 21, "x" * 23, "ü", "message-ü"]
UUIDS_IN_OTHER_FORMS = [
    "message-ABCDEF00-1111-4222-8333-444444444444",
    "message-{00000000-1111-4222-8333-444444444444}",
    "00000000-1111-4222-8333-444444444444",
]
other_ids = st.sampled_from([*NO_UUIDS, *UUIDS_IN_OTHER_FORMS])
chat_ids = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
some_chats = st.builds(
    Chat,
    chat_ids,
    st.text(st.characters(codec="utf-8"), max_size=5),
    st.text(st.characters(codec="utf-8"), max_size=5),
    st.lists(ids_of_letta | other_ids, max_size=6).map(tuple),
    st.integers(0, 4_000_000_000).map(float),
    st.booleans(),
)


@given(st.lists(some_chats, max_size=8, unique_by=lambda chat: chat.id), st.lists(ids_of_letta | other_ids, max_size=4))
def test_all_chats_are_read_back_as_they_were_kept(chats: list[Chat], context: list[str]) -> None:
    agent = agent_with(*context)
    lists = ChatLists.of(agent)
    for chat in (one for one in chats if one.id != MAIN):
        lists = lists.add(chat)
    lists = lists.add(Chat("entered"))
    changed = as_letta_returns(agent, lists.change_to("entered", agent, NOW, broken_off=False))
    expected = {
        **lists.chats,
        "entered": Chat("entered", used=NOW),
        MAIN: Chat(MAIN, message_ids=tuple(context), used=NOW),
    }
    swap = changed.metadata[METADATA_KEY]["swap"]
    assert ChatLists.of(changed) == ChatLists("agent-1", SYSTEM, "entered", expected, swap)


# --- what is missing or malformed ---------------------------------------------------------------------

REST = {"current": "a", "chats": {"a": {}, MAIN: {"ids": message(7)}}}


@pytest.mark.parametrize(
    "entry",
    [
        None,
        [],
        "agent-1",
        7,
        {},
        REST,
        {**REST, "agent": "agent-2"},
        {**REST, "agent": ["agent-1"]},
        {**REST, "agent": "agent-1", "current": None},
        {**REST, "agent": "agent-1", "current": ""},
        {**REST, "agent": "agent-1", "current": ["a"]},
        {**REST, "agent": "agent-1", "chats": []},
        {**REST, "agent": "agent-1", "chats": None},
    ],
)
def test_lists_of_another_agent_or_of_another_form_count_as_missing(entry: object) -> None:
    lists = ChatLists.of(with_entry(entry))
    assert lists.current == MAIN
    assert lists.chats == {MAIN: Chat(MAIN, message_ids=(message(1), message(2)))}


@pytest.mark.parametrize(
    "row",
    [
        None,
        [],
        "ids",
        {"ids": [message(3)]},
        {"ids": None},
        {"client": 1},
        {"name": []},
        {"used": "today"},
    ],
)
def test_a_malformed_chat_counts_as_missing_and_the_others_stay(row: object) -> None:
    chats = {"bad": row, "good": {"ids": message(4), "used": 5}, MAIN: {"ids": message(3)}}
    lists = ChatLists.of(with_entry({"agent": "agent-1", "current": "a", "chats": chats}))
    assert lists.chats == {
        "good": Chat("good", message_ids=(message(4),), used=5.0),
        MAIN: Chat(MAIN, message_ids=(message(3),)),
        "a": Chat("a", message_ids=(message(1), message(2))),
    }


def test_a_malformed_main_chat_is_an_empty_one() -> None:
    lists = ChatLists.of(with_entry({"agent": "agent-1", "current": "a", "chats": {MAIN: {"ids": 5}}}))
    assert lists.chats[MAIN] == Chat(MAIN)
    assert lists.chats["a"].message_ids == (message(1), message(2))


@pytest.mark.parametrize("used", [-1, 10**400, float("inf"), float("nan"), 1e300])
def test_a_time_that_no_clock_shows_is_not_known(used: float) -> None:
    chats = {"a": {"used": used, "ids": message(3)}}
    lists = ChatLists.of(agent_with(metadata={METADATA_KEY: {"agent": "agent-1", "current": "a", "chats": chats}}))
    assert lists.chats["a"].used == 0.0


def test_only_true_marks_a_chat_as_broken_off() -> None:
    rows = {"a": {"broken_off": "yes"}, "b": {"broken_off": 1}, "c": {"broken_off": True}}
    lists = ChatLists.of(with_entry({"agent": "agent-1", "current": "c", "chats": rows}))
    assert [chat.id for chat in lists.chats.values() if chat.is_broken_off] == ["c"]


numbers = st.integers() | st.floats() | st.just(10**400)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | numbers | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
rows = json_values | st.fixed_dictionaries(
    {},
    optional={key: json_values for key in ("client", "name", "ids", "used", "broken_off")},
)
entries = json_values | st.fixed_dictionaries(
    {},
    optional={
        "agent": st.just("agent-1") | json_values,
        "current": st.sampled_from(["a", MAIN]) | json_values,
        "chats": st.dictionaries(st.sampled_from(["a", MAIN]) | st.text(max_size=8), rows, max_size=4) | json_values,
    },
)


@given(entries, st.sampled_from(["a", MAIN, "new"]))
def test_lists_of_any_form_leave_the_agent_usable(entry: object, wanted: str) -> None:
    agent = with_entry(entry)
    lists = ChatLists.of(agent)
    assert MAIN in lists.chats
    assert lists.chats[lists.current].message_ids == (message(1), message(2))
    left = lists.current
    if wanted not in lists.chats:
        lists = lists.add(Chat(wanted))
    changed = as_letta_returns(agent, lists.change_to(wanted, agent, NOW, broken_off=False))
    assert changed.message_ids[0] == SYSTEM
    again = ChatLists.of(changed)
    assert again.current == wanted
    assert again.chats[left].message_ids == (message(1), message(2))
    change = change_without_chats(agent)
    assert change is not None
    assert change.message_ids is not None
    assert change.message_ids[0] == SYSTEM


# --- the change of the agent --------------------------------------------------------------------------


def test_the_metadata_of_other_programs_stays() -> None:
    others = {"colour": "blue", "nested": {"list": [1, {"two": None}]}}
    agent = enter(agent_with(message(1), metadata=others), Chat("a"))
    assert set(agent.metadata) == {*others, METADATA_KEY}
    agent = go_back(replace(agent, metadata={**agent.metadata, "shape": "round"}), MAIN)
    assert {key: value for key, value in agent.metadata.items() if key != METADATA_KEY} == {**others, "shape": "round"}
    assert others == {"colour": "blue", "nested": {"list": [1, {"two": None}]}}


@pytest.mark.parametrize("ids", [(), (message(2),), (message(2), message(3))])
def test_the_context_of_a_chat_begins_with_the_system_prompt(ids: Sequence[str]) -> None:
    agent = agent_with(message(1))
    change = ChatLists.of(agent).add(Chat("a", message_ids=tuple(ids))).change_to("a", agent, NOW, broken_off=False)
    assert change.message_ids == [SYSTEM, *ids]
    assert change == AgentChange(message_ids=change.message_ids, metadata=change.metadata)


def test_the_newest_system_prompt_is_used_for_all_chats() -> None:
    agent = enter(agent_with(message(1)), Chat("a", message_ids=(message(2),)))
    agent = replace(agent, message_ids=(message(99), message(2)))
    assert go_back(agent, MAIN).message_ids == (message(99), message(1))


def test_a_chat_is_used_when_it_comes_into_the_context_and_when_it_leaves_it() -> None:
    agent = enter(agent_with(), Chat("a", message_ids=(message(1),), used=1.0), now=NOW)
    assert ChatLists.of(agent).chats["a"].used == NOW
    agent = enter(agent, Chat("b", message_ids=(message(2),)), now=NOW + 60)
    agent = enter(agent, Chat("c"), now=NOW + 90)
    lists = ChatLists.of(agent)
    assert {chat.id: chat.used - NOW for chat in lists.chats.values()} == {MAIN: 0, "a": 60, "b": 90, "c": 90}


def test_a_chat_stays_marked_as_broken_off_while_others_are_in_context() -> None:
    agent = enter(agent_with(message(1)), Chat("a", message_ids=(message(2),)))
    agent = enter(agent, Chat("b"), broken_off=True)
    agent = enter(agent, Chat("c"))
    agent = go_back(agent, MAIN)
    assert [chat.id for chat in ChatLists.of(agent).chats.values() if chat.is_broken_off] == ["a"]
    agent = go_back(agent, "a")
    assert ChatLists.of(agent).chats["a"].is_broken_off
    agent = go_back(agent, MAIN)  # its turn ended well
    assert not ChatLists.of(agent).chats["a"].is_broken_off


def test_a_chat_of_which_no_turn_came_to_anything_is_not_kept() -> None:
    agent = enter(enter(agent_with(message(1)), Chat("a")), Chat("b"))
    assert set(ChatLists.of(agent).chats) == {MAIN, "b"}


def test_an_abandoned_chat_is_let_go_before_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_CHATS", 3)
    agent, lists = with_chats(3, each=1)
    for number in range(3):
        lists = lists.add(replace(lists.chats[str(number)], used=NOW - 100 + number))
    change = lists.add(Chat("new")).change_to("new", agent, NOW, broken_off=False, abandoned="2")
    assert set(ChatLists.of(as_letta_returns(agent, change)).chats) == {MAIN, "new", "1"}


@pytest.mark.parametrize("chats", [{}, {"a": {"ids": message(3)}}, [], None])
@pytest.mark.parametrize("swap", ["", "ab", 1, None])
@pytest.mark.parametrize("agent_id", ["agent-1", "agent-2"])
def test_the_last_change_is_read_alone_as_with_the_lists(agent_id: str, swap: object, chats: object) -> None:
    entry = {"agent": agent_id, "current": "a", "swap": swap, "chats": chats}
    agent = agent_with(message(1), metadata={METADATA_KEY: entry})
    assert swap_of(agent) == ChatLists.of(agent).swap


def noted(chat: str, swap: str) -> HeardTurn:
    return HeardTurn("ended", chat=chat, turn=f"{chat} {swap}", swap=swap)


def test_metadata_that_was_written_back_late_does_not_say_whose_the_context_is() -> None:
    stale = enter(agent_with(message(1)), Chat("a", message_ids=(message(2),)))
    swap = ChatLists.of(stale).swap
    now = replace(stale, message_ids=(SYSTEM, message(3)))  # another chat has spoken since
    lists = ChatLists.of(now).without_stale([noted("a", swap), noted("b", "later")])
    assert (lists.current, lists.swap) == ("b", "later")
    assert lists.chats["b"].message_ids == (message(3),)
    assert "a" not in lists.chats
    assert lists.chats[MAIN].message_ids == (message(1),)


def test_lists_that_another_bridge_wrote_are_trusted() -> None:
    agent = enter(agent_with(message(1)), Chat("a"))
    lists = ChatLists.of(agent)
    for turns in ([], [noted("b", "other")], [noted("b", "other"), noted("a", lists.swap)], [noted("a", "")]):
        assert lists.without_stale(turns) is lists


def test_adding_a_chat_changes_neither_the_lists_nor_the_other_chats() -> None:
    lists = ChatLists.of(agent_with(message(1)))
    added = lists.add(Chat("a")).add(Chat("a", name="again"))
    assert added.chats == {**lists.chats, "a": Chat("a", name="again")}
    assert set(lists.chats) == {MAIN}
    assert added.current == MAIN


def test_the_ids_of_new_chats_differ_from_each_other_and_from_the_main_one() -> None:
    made = {new_chat_id() for _ in range(50)}
    assert len(made) == 50
    assert MAIN not in made
    assert all(one and one.isalnum() for one in made)


# --- the limits ---------------------------------------------------------------------------------------


def with_chats(count: int, *, each: int = 0) -> tuple[Agent, ChatLists]:
    """Returns an agent with chats "0", "1" and so on, the oldest used first, each with so many messages."""
    agent = agent_with(message(1))
    lists = ChatLists.of(agent)
    for number in range(count):
        ids = tuple(message(number * each + at) for at in range(each))
        lists = lists.add(Chat(str(number), message_ids=ids, used=float(1_000 + number)))
    return agent, lists


def kept_after(agent: Agent, lists: ChatLists, entered: str) -> set[str]:
    return set(ChatLists.of(as_letta_returns(agent, lists.change_to(entered, agent, NOW, broken_off=False))).chats)


def test_beyond_the_number_of_chats_the_oldest_used_goes() -> None:
    agent, lists = with_chats(module.MOST_CHATS - 1)
    assert kept_after(agent, lists, "7") == set(lists.chats)
    more = lists.add(Chat("more"))
    assert kept_after(agent, more, "more") == set(more.chats) - {"0"}


def test_the_main_chat_and_the_entered_one_stay_however_old_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_CHATS", 4)
    _, lists = with_chats(9)
    current = agent_with(message(5), metadata={METADATA_KEY: {"agent": "agent-1", "current": "8", "chats": {}}})
    lists = replace(lists, current="8").add(Chat(MAIN, used=0.0, message_ids=(message(6),)))
    lists = lists.add(replace(lists.chats["8"], message_ids=(message(5),)))
    assert kept_after(current, lists, "0") == {MAIN, "0", "8", "7"}


def test_beyond_the_length_of_all_lists_the_oldest_used_go(monkeypatch: pytest.MonkeyPatch) -> None:
    agent, lists = with_chats(6, each=100)
    monkeypatch.setattr(module, "MOST_CHARACTERS", 4 * 100 * 23 + 6 * 100)
    kept = kept_after(agent, lists, "0")
    assert {MAIN, "0", "5", "4", "3"} >= kept >= {MAIN, "0", "5", "4"}
    assert kept_after(agent, lists.add(Chat("0")), "0") >= {MAIN, "0", "5", "4", "3"}


def test_lists_at_their_limit_are_not_longer_than_said() -> None:
    agent, lists = with_chats(60, each=300)
    changed = as_letta_returns(agent, lists.change_to("59", agent, NOW, broken_off=False))
    assert len(json.dumps(entry_of(changed))) <= module.MOST_CHARACTERS
    kept = set(ChatLists.of(changed).chats) - {MAIN}
    assert kept == {str(number) for number in range(60 - len(kept), 60)}
    assert len(kept) >= 10


def test_too_long_a_main_chat_stays_and_so_does_the_entered_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_CHARACTERS", 1_000)
    agent, lists = with_chats(3, each=100)
    context = tuple(map(message, range(100)))
    lists = lists.add(Chat(MAIN, message_ids=context)).add(replace(lists.chats["1"], client="key", name="one"))
    changed = as_letta_returns(agent, lists.change_to("1", agent, NOW, broken_off=False))
    again = ChatLists.of(changed)
    assert set(again.chats) == {MAIN, "1"}
    assert again.chats[MAIN].message_ids == context
    assert again.chats["1"] == replace(lists.chats["1"], used=NOW)


# --- without chats ------------------------------------------------------------------------------------


def test_an_agent_without_lists_needs_no_change() -> None:
    assert change_without_chats(agent_with(message(1), metadata={"colour": "blue"})) is None


def test_the_main_chat_comes_back_when_the_lists_are_removed() -> None:
    agent = agent_with(message(1), message(2), metadata={"colour": "blue"})
    agent = enter(agent, Chat("a", message_ids=(message(3),)))
    change = change_without_chats(agent)
    assert change == AgentChange(message_ids=[SYSTEM, message(1), message(2)], metadata={"colour": "blue"})
    assert change_without_chats(as_letta_returns(agent, change)) is None


def test_lists_of_another_agent_are_removed_and_the_context_stays() -> None:
    agent = with_entry({**REST, "agent": "agent-2"})
    assert change_without_chats(agent) == AgentChange(message_ids=[SYSTEM, message(1), message(2)], metadata={})


def test_an_agent_without_messages_gets_none_when_the_lists_are_removed() -> None:
    agent = Agent("agent-1", "Ada", "letta_v1_agent", metadata={METADATA_KEY: {}})
    assert change_without_chats(agent) == AgentChange(metadata={})
