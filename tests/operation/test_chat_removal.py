"""When the bridge is removed from an agent, the agent has its main chat in its context again."""

from __future__ import annotations

import pytest

from bridge.chats.lists import MAIN, METADATA_KEY, Chat, ChatLists
from bridge.interception import runs_under_way
from bridge.letta.gateway import Agent, AgentChange, Say
from bridge.operation.chat_removal import plan_chat_removal, remove_chat_lists
from tests.toolsets import SharedLetta, stub, tool_of


@pytest.fixture
def letta() -> SharedLetta:
    return SharedLetta()


@pytest.fixture
def ada(letta: SharedLetta) -> Agent:
    """Has a message in its main chat, a chat `aa` in its context, and metadata of somebody else."""
    agent = letta.has_agent("Ada")
    letta.change_agent(agent.id, AgentChange(metadata={"theirs": 1}))
    list(letta.send_messages(agent.id, [Say("user", "Hello")], by_token=False))
    enter(letta, agent.id, Chat("aa"))
    return letta.agent(agent.id)


def enter(letta: SharedLetta, agent_id: str, chat: Chat) -> None:
    agent = letta.agent(agent_id)
    change = ChatLists.of(agent).add(chat).change_to(chat.id, agent, 1_000.0, broken_off=False)
    letta.change_agent(agent_id, change)


def test_the_main_chat_comes_back_with_one_change(letta: SharedLetta, ada: Agent) -> None:
    main = ChatLists.of(ada).chats[MAIN].message_ids
    assert ada.message_ids == (ada.message_ids[0],)
    letta.calls.clear()
    after = remove_chat_lists(letta, ada)
    assert after == letta.agent(ada.id)
    assert after.message_ids == (ada.message_ids[0], *main)
    assert len(main) > 0
    assert after.metadata == {"theirs": 1}
    assert letta.calls.count("change_agent") == 1


def test_an_agent_without_lists_costs_nothing(letta: SharedLetta) -> None:
    agent = letta.has_agent("Bob")
    assert plan_chat_removal(letta, agent) is None
    assert remove_chat_lists(letta, agent) is agent
    assert letta.calls == []


def test_a_main_chat_in_the_context_stays_there(letta: SharedLetta, ada: Agent) -> None:
    enter(letta, ada.id, Chat("other", message_ids=("message-9",)))
    enter(letta, ada.id, ChatLists.of(ada).chats[MAIN])
    before = letta.agent(ada.id)
    plan = plan_chat_removal(letta, before)
    assert plan is not None
    assert (
        "Its main chat stays in its context, and the bridge's lists of 1 other chat are removed." in plan.sentences[0]
    )
    after = remove_chat_lists(letta, before)
    assert (after.message_ids, METADATA_KEY in after.metadata) == (before.message_ids, False)


def test_the_plan_names_the_call_that_is_given_up(letta: SharedLetta, ada: Agent) -> None:
    letta.attaches(ada, tool_of(stub()))
    letta.holds(ada, "read_file")
    plan = plan_chat_removal(letta, letta.agent(ada.id))
    assert plan is not None
    assert plan.changes
    assert plan.sentences[0].startswith("Its main chat comes back into its context")
    assert plan.sentences[1:] == (
        "The chat in its context waits for the client's result of read_file. The call gets none.",
    )


def test_the_chats_stay_while_the_owner_has_to_decide(letta: SharedLetta, ada: Agent) -> None:
    letta.attaches(ada, letta.has_tool("theirs"))
    letta.holds(ada, "theirs")
    before = letta.agent(ada.id)
    plan = plan_chat_removal(letta, before)
    assert plan is not None
    assert (plan.changes, "approve the agent's own tool 'theirs'" in plan.sentences[0]) == (False, True)
    assert remove_chat_lists(letta, before) == before == letta.agent(ada.id)


def test_a_call_of_an_own_tool_in_the_main_chat_does_not_keep_the_lists(letta: SharedLetta, ada: Agent) -> None:
    enter(letta, ada.id, ChatLists.of(ada).chats[MAIN])
    letta.attaches(ada, letta.has_tool("theirs"))
    letta.holds(ada, "theirs")
    before = letta.agent(ada.id)
    after = remove_chat_lists(letta, before)
    assert (after.message_ids, METADATA_KEY in after.metadata) == (before.message_ids, False)


def test_a_run_that_is_still_under_way_is_waited_for(
    letta: SharedLetta, ada: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At its end it writes the chat into the context, also over a change that was made meanwhile."""
    monkeypatch.setattr(runs_under_way, "PAUSE", 0.0)
    letta.under_way = ["run-1"]

    def ends() -> None:
        letta.under_way = []
        letta.holds(ada, "read_file")

    letta.before_call("runs_under_way", ends, 2)
    letta.calls.clear()
    main = ChatLists.of(ada).chats[MAIN].message_ids
    assert remove_chat_lists(letta, ada).message_ids == (ada.message_ids[0], *main)
    assert letta.calls == ["runs_under_way", "features", "runs_under_way", "agent", "newest_messages", "change_agent"]
