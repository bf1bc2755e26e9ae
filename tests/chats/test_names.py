from __future__ import annotations

from bridge.chats.lists import MAIN, Chat, ChatLists
from bridge.chats.names import DEFAULT_SESSION, Speaker, context_of_session, name_of_session, place_of_chat
from bridge.letta.gateway import Agent, AgentChange

AGENT = Agent("agent-1", "Ada", "letta_v1_agent", message_ids=("system", "one", "two"))


def changed(agent: Agent, change: AgentChange) -> Agent:
    return Agent(
        agent.id, agent.name, agent.type, message_ids=tuple(change.message_ids or ()), metadata=change.metadata or {}
    )


def test_the_default_conversation_of_an_agent_has_no_name() -> None:
    assert name_of_session("") == name_of_session(DEFAULT_SESSION) == ""
    assert name_of_session("a") != name_of_session("b") != ""
    assert name_of_session("\ud800")


def test_open_calls_of_the_main_chat_are_noted_under_the_agents_id() -> None:
    assert place_of_chat("agent-1", "") == "agent-1"
    assert place_of_chat("agent-1", "ab") not in ("agent-1", place_of_chat("agent-1", "cd"))


def test_each_session_sees_its_own_context() -> None:
    lists = ChatLists.of(AGENT).add(Chat("c1", "ann", name_of_session("s"), ("three",)))
    agent = changed(AGENT, lists.change_to("c1", AGENT, 1.0, broken_off=False))
    assert agent.message_ids == ("system", "three")
    own = place_of_chat("agent-1", name_of_session("s"))
    main = "agent-1", ("system", "one", "two")
    for is_apart in (False, True):
        assert context_of_session(agent, Speaker("ann", "s"), is_apart=is_apart) == (own, ("system", "three"))
        assert context_of_session(agent, Speaker("ann"), is_apart=is_apart) == main
    for speaker in (Speaker("ann", "other"), Speaker("bob", "s")):
        assert context_of_session(agent, speaker, is_apart=False) == main
        place = place_of_chat("agent-1", name_of_session(speaker.session))
        assert context_of_session(agent, speaker, is_apart=True) == (place, ("system",))
    assert ChatLists.of(agent).chats[MAIN].message_ids == ("one", "two")
