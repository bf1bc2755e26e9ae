"""Turns of several chats with an agent of the in-memory Letta: its context, and what each change of the chat costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event as Signal
from typing import Any

import pytest

from app import assemble_parts
from bridge import errors
from bridge.chats.lists import MAIN, METADATA_KEY, ChatLists
from bridge.config import Settings, read_settings
from bridge.conversation import Conversation
from bridge.letta.gateway import Agent, AgentChange, StoredMessage
from bridge.turn import AgentCall, Message, Notice, Stopped, Text, ToolCall, ToolSpec, Turn, TurnEvent
from tests.asked import turn_of
from tests.fake_agent import new_id
from tests.fakes import FEATURES, FakeGateway

WEATHER = ToolSpec("weather")
MESSAGE = "message-00000000-0000-4000-8000-000000000001"
ONE, TWO = Message("user", "I am Ann."), Message("user", "I am Bob.")
NEXT = Message("user", "Who am I?")


@pytest.fixture
def environment(environment: dict[str, str]) -> dict[str, str]:
    return {**environment, "BRIDGE_CHATS": "each", "BRIDGE_TOOL_WAIT": "30"}


@dataclass
class Side:
    """The conversation of one worker with the only agent of a server."""

    letta: FakeGateway
    conversation: Conversation

    def ask(self, *messages: Message, **fields: Any) -> list[TurnEvent]:
        return self.run(turn_of(*messages, **{"id": new_id("turn"), **fields}))

    def run(self, turn: Turn) -> list[TurnEvent]:
        return [*self.conversation.events(turn, Signal())]

    @property
    def agent(self) -> Agent:
        (summary,) = self.letta.agents()
        return self.letta.agent(summary.id)

    def context(self) -> list[str]:
        """Returns the texts in the agent's context, without the system prompt."""
        texts = {row.id: row.text for row in self.letta.newest_messages(self.agent.id, 1_000)}
        return [texts[one] for one in self.agent.message_ids[1:]]

    def count(self, ask: Callable[[], object]) -> list[str]:
        """Returns the calls to Letta that change something, or read messages, while `ask` runs."""
        self.letta.calls.clear()
        ask()
        return [call for call in self.letta.calls if call in ("change_agent", "newest_messages", "runs_under_way")]


def made(letta: FakeGateway, settings: Settings) -> Side:
    return Side(letta, assemble_parts(settings, letta).conversation)


@pytest.fixture
def side(letta: FakeGateway, settings: Settings) -> Side:
    return made(letta, settings)


def said(events: Sequence[TurnEvent]) -> Message:
    """Returns the answer as clients send it back."""
    calls = tuple(event for event in events if isinstance(event, ToolCall))
    return Message("assistant", "".join(event.text for event in events if isinstance(event, Text)), tool_calls=calls)


def notices(events: Sequence[TurnEvent]) -> list[str]:
    return [event.text for event in events if isinstance(event, Notice)]


def test_a_chat_costs_nothing_while_it_goes_on_and_one_change_when_another_speaks(side: Side) -> None:
    chats: dict[str, list[Message]] = {"ann": [], "bob": []}

    def say(chat: str, message: Message) -> Callable[[], object]:
        def ask() -> None:
            answer = said(side.ask(*chats[chat], message))
            chats[chat] += [message, answer]

        return ask

    side.ask(Message("user", "Hello."), chats="one")  # at the very first turn, nothing says that the agent is free
    assert side.count(say("ann", ONE)) == ["change_agent"]
    assert side.count(say("ann", NEXT)) == []
    assert side.context() == ["I am Ann.", "You said: I am Ann.", "Who am I?", "You said: Who am I?"]
    assert side.count(say("bob", TWO)) == ["change_agent"]
    assert side.context() == ["I am Bob.", "You said: I am Bob."]
    assert side.count(say("ann", Message("user", "Bye."))) == ["change_agent"]
    assert side.context()[-4:] == ["Who am I?", "You said: Who am I?", "Bye.", "You said: Bye."]
    assert side.count(say("ann", Message("user", "Again."))) == []


def test_developers_are_told_which_context_a_chat_has(side: Side) -> None:
    first = side.ask(ONE)
    assert notices(first) == ["this chat begins with a context of its own"]
    assert notices(side.ask(TWO)) == ["this chat begins with a context of its own"]
    assert notices(side.ask(ONE, said(first), NEXT)) == ["the context of this chat is back"]
    assert notices(side.ask(ONE, said(first), Message("user", "Who?"))) == [
        "this chat goes on from where it parted from another one"
    ]
    assert side.context() == ["I am Ann.", "You said: I am Ann.", "Who?", "You said: Who?"]


def test_an_open_call_keeps_no_other_chat_waiting(side: Side) -> None:

    side.letta.will(AgentCall(MESSAGE, "call-1", "weather", "{}", held=True), Stopped("requires_approval"))
    called = side.ask(ONE, tools=(WEATHER,))
    (call,) = (event for event in called if isinstance(event, ToolCall))
    assert "waiting" not in str(notices(side.ask(TWO)))
    assert side.context() == ["I am Bob.", "You said: I am Bob."]
    given = Message("tool", "12 degrees", tool_call_id=call.id)
    answered = side.ask(ONE, said(called), given, tools=(WEATHER,))
    assert "You said: " in said(answered).text
    assert side.context()[0] == "I am Ann."
    assert "12 degrees" in side.context()


@pytest.mark.parametrize("mode", ["one", None])
def test_a_key_or_the_setting_decides_who_has_chats(letta: FakeGateway, environment: dict[str, str], mode: Any) -> None:
    side = made(letta, read_settings({**environment, "BRIDGE_CHATS": "one, Ada=each"}))
    side.ask(ONE, chats=mode)
    side.ask(TWO, chats=mode)
    assert ("I am Ann." in side.context()) == (mode == "one")


def test_an_agent_that_keeps_no_context_has_no_chats(side: Side) -> None:
    kept = side.letta._kept(side.agent.id)
    kept.agent = replace(kept.agent, clears_context=True)
    side.ask(ONE)
    side.ask(TWO)
    assert METADATA_KEY not in side.agent.metadata


def test_chats_of_another_client_are_never_gone_on_with(side: Side) -> None:
    answer = said(side.ask(ONE, client="ann"))
    events = side.ask(ONE, answer, NEXT, client="bob")
    assert notices(events)[0] == "this chat begins with a context of its own"
    assert notices(events)[1].startswith("the agent is told 2 older messages")


def test_what_the_main_chat_had_is_back_when_the_setting_changes(
    letta: FakeGateway, environment: dict[str, str]
) -> None:
    one = made(letta, read_settings({**environment, "BRIDGE_CHATS": "one"}))
    one.ask(Message("user", "Main."))
    each = made(letta, read_settings(environment))
    each.ask(ONE)
    assert each.context() == ["I am Ann.", "You said: I am Ann."]
    one.ask(Message("user", "Main again."))
    assert one.context() == ["Main.", "You said: Main.", "Main again.", "You said: Main again."]


def test_the_main_chat_is_back_after_each_turn_if_the_setting_says_so(
    letta: FakeGateway, environment: dict[str, str]
) -> None:
    side = made(letta, read_settings({**environment, "BRIDGE_CHATS": "each+main"}))
    answer = said(side.ask(ONE))
    assert side.context() == []
    assert side.count(lambda: side.ask(ONE, answer, NEXT)) == ["change_agent", "change_agent"]
    assert side.context() == []
    assert len(ChatLists.of(side.agent).chats) == 2


def test_a_session_that_forks_another_ones_chat_has_a_chat_of_its_own(side: Side) -> None:
    answer = said(side.ask(ONE, session="s1"))
    side.ask(ONE, answer, Message("user", "In two."), session="s2")
    assert side.context() == ["I am Ann.", "You said: I am Ann.", "In two.", "You said: In two."]
    side.ask(ONE, answer, Message("user", "In one."), session="s1")
    assert side.context() == ["I am Ann.", "You said: I am Ann.", "In one.", "You said: In one."]


def test_sessions_without_transcripts_have_contexts_of_their_own(side: Side) -> None:
    """As messages to conversations of Letta's own API, which bring only what is new."""

    def say(text: str, session: str) -> None:
        turn = turn_of(Message("user", text), id=new_id("turn"), session=session)
        side.run(replace(turn, transcript=(), answers_all_calls=True))

    say("A.", "letta:a")
    say("B.", "letta:b")
    say("A again.", "letta:a")
    assert side.context() == ["A.", "You said: A.", "A again.", "You said: A again."]
    say("Main.", "letta:default")
    assert side.context() == ["Main.", "You said: Main."]


def test_any_answer_of_the_agent_can_be_gone_on_with_by_its_name(side: Side) -> None:
    side.ask(ONE, id="first", is_named=True)
    side.ask(NEXT, id="second", follows="first", is_named=True)
    side.ask(TWO, id="other", is_named=True)
    side.ask(Message("user", "Third."), id="third", follows="second", is_named=True)
    assert [*map(str, side.context())][::2] == ["I am Ann.", "Who am I?", "Third."]
    side.ask(Message("user", "Instead."), id="fourth", follows="first", is_named=True)
    assert side.context()[::2] == ["I am Ann.", "Instead."]


def test_the_main_chat_has_a_newest_answer_of_its_own(side: Side) -> None:
    side.ask(ONE, id="first", is_named=True, chats="one")
    side.ask(TWO, id="other", is_named=True)
    side.ask(NEXT, id="second", follows="first", is_named=True, chats="one")
    assert side.context()[::2] == ["I am Ann.", "Who am I?"]


def test_an_answer_that_nobody_knows_any_more_is_refused(side: Side) -> None:
    side.ask(ONE, id="first", is_named=True)
    with pytest.raises(errors.InvalidRequest, match="send the whole conversation"):
        side.ask(NEXT, id="second", follows="unknown", is_named=True)


@pytest.mark.parametrize("named", [False, True])
def test_another_bridge_knows_the_chats_from_the_server_alone(
    side: Side, environment: dict[str, str], tmp_path: Path, named: bool
) -> None:
    first = said(side.ask(ONE, id="first", is_named=True))
    side.ask(ONE, first, NEXT, id="second", is_named=True)
    side.ask(TWO, id="other", is_named=True)
    other = made(side.letta, read_settings({**environment, "BRIDGE_DATA_DIR": str(tmp_path / "other")}))
    if named:
        other.ask(Message("user", "Instead."), id="third", follows="first", is_named=True)
    else:
        other.ask(ONE, first, Message("user", "Instead."), id="third")
    assert other.context()[::2] == ["I am Ann.", "Instead."]


def test_a_repeated_turn_finds_the_chat_that_its_first_attempt_began(side: Side, environment: dict[str, str]) -> None:
    """The attempt was killed before it could be noted: its message on the server has the turn's id."""
    side.letta.fails(KeyboardInterrupt(), at="send_messages")
    turn = turn_of(ONE, id="turn-1")
    with pytest.raises(KeyboardInterrupt):
        side.run(turn)
    side.letta.recovers()
    kept = side.letta._kept(side.agent.id)
    kept.store(StoredMessage(new_id("message"), "user_message", text="I am Ann.", otid="turn-1-0"))
    chats = set(ChatLists.of(side.agent).chats)
    answer = said(side.run(replace(turn, repeated=True)))
    assert set(ChatLists.of(side.agent).chats) == chats
    assert side.context().count("I am Ann.") == 1
    side.ask(TWO)
    side.ask(ONE, answer, NEXT)
    assert side.context()[0] == "I am Ann."


def test_what_a_killed_attempt_said_leaves_the_context_when_it_is_taken_back(side: Side) -> None:
    first = said(side.ask(TWO))
    side.letta.fails(KeyboardInterrupt(), at="send_messages")
    turn = turn_of(TWO, first, ONE, id="turn-1")
    with pytest.raises(KeyboardInterrupt):
        side.run(turn)
    side.letta.recovers()
    kept = side.letta._kept(side.agent.id)
    kept.store(StoredMessage(new_id("message"), "user_message", text="I am Ann.", otid="turn-1-0"))
    side.letta.will_say("Hello Ann.")
    side.run(replace(turn, repeated=True))
    side.ask(TWO, first, NEXT)
    assert side.context() == ["I am Bob.", first.text, NEXT.text, f"You said: {NEXT.text}"]


def test_a_broken_off_chat_is_put_in_order_when_it_comes_back(side: Side) -> None:
    side.ask(Message("user", "Hello."), chats="one")
    first = said(side.ask(ONE))
    side.letta.fails(errors.LettaError("It broke."), at="send_messages")
    with pytest.raises(errors.LettaError):
        side.ask(ONE, first, NEXT)
    side.letta.recovers()
    side.ask(TWO)
    broken = [chat for chat in ChatLists.of(side.agent).chats.values() if chat.is_broken_off]
    assert len(broken) == 1
    side.ask(ONE, first, NEXT)
    side.ask(TWO, Message("assistant", "You said: I am Bob."), NEXT)
    assert not any(chat.is_broken_off for chat in ChatLists.of(side.agent).chats.values())


def test_no_chat_speaks_while_the_owner_has_to_decide_on_a_call(side: Side) -> None:
    """In another chat's context, nobody could see and approve the call."""

    tool = side.letta.has_tool("delete_all")
    rules = [{"type": "requires_approval", "tool_name": "delete_all"}]
    side.letta.change_agent(side.agent.id, AgentChange(tool_ids=[tool.id], rules=rules))
    kept = side.letta._kept(side.agent.id)
    call = AgentCall(MESSAGE, "call-9", "delete_all", "{}", held=True)
    kept.held = kept.store(StoredMessage(MESSAGE, "approval_request_message", (call,)))
    with pytest.raises(errors.LettaConflict, match="delete_all"):
        side.ask(ONE)
    assert ChatLists.of(side.agent).current == MAIN


def test_parallel_calls_stay_switched_on_where_a_change_would_switch_them_off(environment: dict[str, str]) -> None:
    letta = FakeGateway(replace(FEATURES, version=(0, 14, 0)))
    letta.has_agent("Ada")
    side = made(letta, read_settings(environment))
    letta.change_agent(side.agent.id, AgentChange(parallel_calls=True))
    side.ask(ONE)
    assert side.agent.parallel_calls


def test_a_summary_given_aside_stands_for_its_chat(side: Side) -> None:
    """A client sums its transcript up aside, and goes on with the summary in place of what was said."""
    first = said(side.ask(ONE))
    summary = "The user is Ann. " * 20
    side.letta.will_say(summary)
    side.ask(ONE, first, Message("user", "Sum it up."), aside=True)
    side.ask(TWO)
    side.ask(Message("user", "What did we do?"), Message("assistant", summary), NEXT)
    assert side.context()[0] == "I am Ann."
    assert side.context()[-2] == "Who am I?"


def test_results_of_a_call_that_was_made_before_chats_go_to_the_main_chat(
    letta: FakeGateway, environment: dict[str, str]
) -> None:

    one = made(letta, read_settings({**environment, "BRIDGE_CHATS": "one"}))
    letta.will(AgentCall(MESSAGE, "call-1", "weather", "{}", held=True), Stopped("requires_approval"))
    called = one.ask(ONE, tools=(WEATHER,))
    (call,) = (event for event in called if isinstance(event, ToolCall))
    each = made(letta, read_settings(environment))
    each.ask(TWO)
    given = Message("tool", "12 degrees", tool_call_id=call.id)
    each.ask(ONE, said(called), given, tools=(WEATHER,))
    assert each.context()[0] == "I am Ann."
    assert "12 degrees" in each.context()


# --- contexts that must not mix -----------------------------------------------------------------------

LONG = "Understood. I will keep that in mind for the rest of our talk."
ANN, BOB = Message("user", "My PIN is 9999 (Ann)."), Message("user", "My PIN is 1111 (Bob).")


def say(side: Side, answer: str, *messages: Message, **fields: Any) -> Message:
    side.letta.will_say(answer)
    return said(side.ask(*messages, **fields))


def call(side: Side, *messages: Message, **fields: Any) -> Message:
    held = AgentCall(new_id("message"), new_id("call"), "weather", "{}", held=True)
    side.letta.will(held, Stopped("requires_approval"))
    return said(side.ask(*messages, tools=(WEATHER,), **fields))


def result(answer: Message, text: str) -> Message:
    return Message("tool", text, tool_call_id=answer.tool_calls[0].id)


@pytest.mark.parametrize(("ann", "bob"), [("", ""), ("ann", "bob")])
def test_equal_long_answers_mix_no_chats(side: Side, ann: str, bob: str) -> None:
    answer = say(side, LONG, BOB, session=bob)
    say(side, "Go on.", BOB, answer, Message("user", "second"), session=bob)
    say(side, LONG, ANN, session=ann)
    say(side, "x", BOB, answer, Message("user", "second"), session=bob)  # another answer is wanted
    assert ANN.text not in side.context()
    assert side.context()[0] == BOB.text


def test_an_unknown_chat_with_an_equal_answer_is_told_in_a_new_one(side: Side) -> None:
    answer = say(side, LONG, ANN)
    say(side, "x", BOB, answer, NEXT)
    assert ANN.text not in side.context()
    assert BOB.text in side.context()


def test_a_chat_finds_its_call_however_much_others_have_said(side: Side) -> None:
    called = call(side, ONE)
    others: list[Message] = []
    for number in range(40):
        others += [Message("user", f"Another {number}")]
        others += [said(side.ask(*others))]
    side.ask(ONE, called, result(called, "12 degrees"), tools=(WEATHER,))
    assert "12 degrees" in side.context()


def test_words_of_other_chats_are_not_known_in_the_main_chat(letta: FakeGateway, environment: dict[str, str]) -> None:
    each = made(letta, read_settings(environment))
    secret = Message("user", "My code word is elephant.")
    answer = said(each.ask(secret))
    one = made(letta, read_settings({**environment, "BRIDGE_CHATS": "one"}))
    one.ask(Message("user", "Hello from someone else."))
    one.ask(secret, answer, NEXT)
    assert any("elephant" in text for text in one.context())


def test_metadata_that_is_written_back_late_mixes_no_chats(side: Side) -> None:
    ann = said(side.ask(ONE))
    stale = side.agent.metadata
    bob = said(side.ask(TWO))
    side.letta.change_agent(side.agent.id, AgentChange(metadata=stale))
    side.ask(ONE, ann, NEXT)
    assert not any("Bob" in text for text in side.context())
    side.ask(TWO, bob, NEXT)
    assert not any("Ann" in text for text in side.context())


def test_a_good_answer_stays_one_if_the_main_chat_cannot_be_put_back(
    letta: FakeGateway, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    side = made(letta, read_settings({**environment, "BRIDGE_CHATS": "each+main"}))
    change, seen = letta.change_agent, list[AgentChange]()

    def fails_at_the_second(agent_id: str, wanted: AgentChange) -> Agent:
        seen.append(wanted)
        if len(seen) == 2:
            raise errors.LettaError("It is down.")
        return change(agent_id, wanted)

    monkeypatch.setattr(letta, "change_agent", fails_at_the_second)
    assert said(side.ask(ONE)).text == "You said: I am Ann."
    assert len(seen) == 2


def test_a_chat_with_the_same_name_goes_on_though_its_client_changes_a_question(side: Side) -> None:
    """As a chat window does that puts documents around the newest question."""
    hello = Message("user", "Hello.")
    first = say(side, LONG, hello, session="c1")
    wrapped = Message("user", "### Context\n" + "doc text " * 50 + "\nIs it so?")
    second = say(side, "Yes.", hello, first, wrapped, session="c1")
    say(side, "No.", hello, first, Message("user", "Is it so?"), second, Message("user", "Sure?"), session="c1")
    assert any("doc text" in text for text in side.context())


def test_a_refused_request_changes_no_context_and_lets_no_chat_go(side: Side) -> None:
    first = say(side, LONG, ONE)
    called = call(side, ONE, first, Message("user", "Weather?"))
    before = side.agent.metadata
    many = tuple(ToolSpec(f"t{number}") for number in range(3_000))
    with pytest.raises(errors.InvalidRequest):
        side.ask(Message("user", "Hello"), tools=many, search_above=0)
    assert side.agent.metadata == before
    side.letta.fails(errors.LettaError("No model."), at="send_messages")
    for number in range(60):
        with pytest.raises(errors.LettaError):
            side.ask(Message("user", f"Hello {number}"))
    side.letta.recovers()
    side.ask(ONE, first, Message("user", "Weather?"), called, result(called, "12 degrees"), tools=(WEATHER,))
    assert "12 degrees" in side.context()


def test_an_answer_without_the_agent_can_be_gone_on_with(letta: FakeGateway, environment: dict[str, str]) -> None:
    side = made(letta, read_settings({**environment, "BRIDGE_FINAL_TOOLS": "done"}))
    schema = {"type": "object", "properties": {"result": {"type": "string"}}, "required": ["result"]}
    tools = (ToolSpec("done", "", schema),)
    answer = say(side, "All is ready now.", ONE, tools=tools, id="r1", is_named=True)
    side.ask(result(answer, "ok"), tools=tools, id="r2", follows="r1", is_named=True)
    side.ask(NEXT, tools=tools, id="r3", follows="r2", is_named=True)
    assert [text for text in side.context() if text in (ONE.text, NEXT.text)] == [ONE.text, NEXT.text]


def test_after_a_lost_store_what_is_taken_back_leaves_the_context(
    side: Side, environment: dict[str, str], tmp_path: Path
) -> None:
    called = call(side, ONE)
    answer = say(side, LONG, ONE, called, result(called, "12"))
    other = made(side.letta, read_settings({**environment, "BRIDGE_DATA_DIR": str(tmp_path / "new")}))
    known = [ONE, called, result(called, "12"), answer]
    say(other, LONG + " 2", *known, Message("user", "taken back"), tools=(WEATHER,))
    say(other, LONG + " 3", *known, Message("user", "instead"), tools=(WEATHER,))
    assert "taken back" not in other.context()
    assert ONE.text in other.context()


def test_a_new_context_has_the_system_prompt_also_without_a_history(
    letta: FakeGateway, environment: dict[str, str]
) -> None:
    more = {"BRIDGE_HISTORY_LIMIT": "0", "BRIDGE_SYSTEM_PROMPT": "message"}
    side = made(letta, read_settings({**environment, **more}))
    pirate = Message("system", "Be a pirate.")
    side.ask(pirate, Message("user", "old"), Message("assistant", "old answer"), Message("user", "now"))
    assert "Be a pirate." in side.context()


# --- a reset of the agent's messages ------------------------------------------------------------------


def reset(letta: FakeGateway, agent: Agent, *, deletes: bool) -> None:
    """Does what Letta does, without the bridge."""
    kept = letta._agents[agent.id]
    if deletes:
        kept.messages = kept.messages[:1]
    kept.agent = replace(kept.agent, message_ids=kept.agent.message_ids[:1])


@pytest.mark.parametrize("current", ["ann", "bob"])
@pytest.mark.parametrize(("version", "deletes"), [((0, 14, 0), True), ((0, 16, 1), False)])
def test_chats_whose_messages_a_reset_has_deleted_are_told_again(
    environment: dict[str, str], version: tuple[int, int, int], deletes: bool, current: str
) -> None:
    letta = FakeGateway(replace(FEATURES, version=version))
    letta.has_agent("Ada")
    side = made(letta, read_settings(environment))
    ann = [ONE, said(side.ask(ONE))]
    bob = [TWO, said(side.ask(TWO))]
    if current == "ann":
        ann += [NEXT, said(side.ask(*ann, NEXT))]
    reset(letta, side.agent, deletes=deletes)
    for chat, mine, other in ((bob, "I am Bob.", "I am Ann."), (ann, "I am Ann.", "I am Bob.")):
        chat += [NEXT, said(side.ask(*chat, NEXT))]
        assert sum(mine in text for text in side.context()) >= 1
        assert not any(other in text for text in side.context())
        chat += [NEXT, said(side.ask(*chat, NEXT))]
        assert sum(text == "Who am I?" for text in side.context()) >= 2


@pytest.mark.parametrize("mode", ["each+main", "each"])
def test_a_reset_is_noticed_though_the_chat_in_the_context_had_no_messages(
    environment: dict[str, str], mode: str
) -> None:
    letta = FakeGateway(replace(FEATURES, version=(0, 14, 0)))
    letta.has_agent("Ada")
    side = made(letta, read_settings({**environment, "BRIDGE_CHATS": mode}))
    ann = [ONE, said(side.ask(ONE))]
    if mode == "each":
        letta.will(errors.ModelFailed("It failed."))
        with pytest.raises(errors.ModelFailed):
            side.ask(TWO)
    reset(letta, side.agent, deletes=True)
    letta.prompts.clear()
    side.ask(*ann, NEXT)
    assert "I am Ann." in letta.prompts[-1].texts


def test_an_emptied_context_is_no_reset_while_the_messages_of_other_chats_exist(
    environment: dict[str, str],
) -> None:
    letta = FakeGateway(replace(FEATURES, version=(0, 14, 0)))
    letta.has_agent("Ada")
    side = made(letta, read_settings(environment))
    bob = [TWO, said(side.ask(TWO))]
    side.ask(ONE)
    reset(letta, side.agent, deletes=False)
    side.ask(*bob, NEXT)
    assert side.context() == ["I am Bob.", "You said: I am Bob.", "Who am I?", "You said: Who am I?"]


def test_a_chat_that_nobody_reset_keeps_its_messages_though_it_has_none(environment: dict[str, str]) -> None:
    """A new chat has an empty context until its first turn comes to its end."""
    letta = FakeGateway(replace(FEATURES, version=(0, 14, 0)))
    letta.has_agent("Ada")
    side = made(letta, read_settings(environment))
    ann = [ONE, said(side.ask(ONE))]
    letta.will(errors.ModelFailed("It failed."))
    with pytest.raises(errors.ModelFailed):
        side.ask(TWO)
    assert side.context() in ([], ["I am Bob."])
    side.ask(*ann, NEXT)
    assert side.context() == ["I am Ann.", "You said: I am Ann.", "Who am I?", "You said: Who am I?"]
