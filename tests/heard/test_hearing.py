"""The agent hears all that a client says, once, wherever it stands in the transcript."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from threading import Event as Signal
from typing import Any

import pytest

from app import assemble_parts
from bridge.config import Settings, read_settings
from bridge.dialects.openai.call_ids import CALL_IDS
from bridge.errors import InvalidRequest, LettaUnreachable
from bridge.heard.records import HeardTurns
from bridge.letta.gateway import CallResult, Results, Say
from bridge.turn import (
    AgentCall,
    AgentEvent,
    Message,
    MethodChosen,
    Notice,
    ReplyFormat,
    Stopped,
    Text,
    ToolCall,
    ToolSpec,
)
from tests.asked import turn_of
from tests.fake_agent import new_id
from tests.fakes import FEATURES, FakeGateway

Ask = Callable[..., list[AgentEvent]]

READ = ToolSpec("read", parameters={"type": "object", "properties": {}})
OK = Message("assistant", "Ok, I will keep to these files.")


def user(text: str) -> Message:
    return Message("user", text)


def said(text: str) -> Message:
    return Message("assistant", text)


def quoted(text: str, **fields: Any) -> str:
    return json.dumps({"type": "earlier_message", "from": "another assistant", "text": text, **fields})


FOREIGN_RECORDS = [
    "",
    "null",
    "{}",
    "[]",
    '["ended"]',
    '["ended", ["a"], [], null, [], ""]',
    '["ended", [["a"]], [], null, [], "", ""]',
    '["ended", 1, [], null, [], "", ""]',
    '["ended", [], [], [1], [], "", ""]',
    '["ended", [], [], [3, "\\u1234", "a", ""], [], "", ""]',
    '["sideways", [], [], null, [], "", ""]',
    '[["ended"], [], [], null, [], "", ""]',
]
QUOTED_OK = quoted(OK.text)
SUMMING_UP = "You are a context summarization assistant."


@pytest.fixture
def ask(letta: FakeGateway, settings: Settings) -> Ask:
    conversation = assemble_parts(settings, letta).conversation
    return lambda *messages, **fields: list(conversation.events(turn_of(*messages, **fields), Signal()))


@pytest.fixture
def told(letta: FakeGateway, ask: Ask) -> Callable[..., list[str]]:
    """Asks, and returns what the agent's model was shown."""

    def told(*messages: Message, answer: str = "Yes.", **fields: Any) -> list[str]:
        before = len(letta.prompts)
        letta.will_say(answer)
        ask(*messages, **fields)
        return [text for prompt in letta.prompts[before:] for text in prompt.texts]

    return told


Told = Callable[..., list[str]]


# --- messages that the agent did not get as new ones --------------------------------------------------------


def test_a_file_before_an_answer_that_nobody_gave_is_told_once(told: Told) -> None:
    files = user("a.py: one")
    assert told(files, OK, user("Fix it"), answer="Fixed.") == ["a.py: one", QUOTED_OK, "Fix it"]
    assert told(files, OK, user("Fix it"), said("Fixed."), user("Thanks")) == ["Thanks"]


def test_a_file_at_another_place_is_not_told_again(told: Told) -> None:
    files = user("a.py: one")
    told(files, OK, user("Fix it"), answer="Fixed.")
    assert told(user("Fix it"), said("Fixed."), files, OK, user("Thanks")) == ["Thanks"]


def test_a_changed_file_is_told_also_when_it_changes_back(told: Told) -> None:
    one, two = user("a.py: one"), user("a.py: two")
    talk = [user("1"), said("Yes 1")]
    told(one, OK, user("1"), answer="Yes 1")
    assert told(*talk, two, OK, user("2"), answer="Yes 2") == ["a.py: two", "2"]
    talk += [user("2"), said("Yes 2")]
    assert told(*talk, one, OK, user("3"), answer="Yes 3") == ["a.py: one", "3"]
    talk += [user("3"), said("Yes 3")]
    assert told(*talk, one, OK, user("4")) == ["4"]


def test_a_file_that_changes_back_is_told_also_without_an_answer_of_the_agent_in_between(told: Told) -> None:
    one, two, ok = user("a.py: one"), user("a.py: two"), OK
    assert told(one, ok, user("1")) == ["a.py: one", QUOTED_OK, "1"]
    assert told(two, ok, user("2")) == ["a.py: two", "2"]
    assert told(one, ok, user("3")) == ["a.py: one", "3"]
    assert told(one, ok, user("4")) == ["4"]


def test_a_message_that_changes_in_its_place_is_told_also_when_it_changes_back(told: Told) -> None:
    one, two, answer = user("a.py: one"), user("a.py: two"), said("That is the file which you asked me to read first.")
    talk = [answer]
    assert told(one, user("Fix it"), answer=answer.text) == ["a.py: one", "Fix it"]
    shown = []
    for number, file in enumerate([two, two, one, one, two, one]):
        talk.append(user(f"Question {number}"))
        shown += told(file, user("Fix it"), *talk, answer=f"Answer {number}")
        talk.append(said(f"Answer {number}"))
    questions = [f"Question {number}" for number in range(6)]
    changes = [["a.py: two"], [], ["a.py: one"], [], ["a.py: two"], ["a.py: one"]]
    assert shown == [text for change, question in zip(changes, questions, strict=True) for text in (*change, question)]


def test_equal_words_count_as_often_as_they_occur(told: Told) -> None:
    assert told(user("go"), OK, user("go"), OK, user("now")) == ["go", QUOTED_OK, "go", QUOTED_OK, "now"]
    assert told(user("go"), OK, user("go"), OK, user("go"), OK, user("then")) == ["go", QUOTED_OK, "then"]


def test_an_imported_conversation_is_told_in_order(told: Told) -> None:
    call = ToolCall("call_other", "read", '{"path": "a"}')
    transcript = [
        user("Read a"),
        Message("assistant", "", tool_calls=(call,)),
        Message("tool", "one", tool_call_id="call_other"),
        said("It says one."),
        user("And b?"),
    ]
    assert told(*transcript) == [
        "Read a",
        quoted("", calls=[{"call": "call_other", "tool": "read", "arguments": '{"path": "a"}'}]),
        json.dumps(
            {
                "type": "earlier_tool_result",
                "for": "another assistant",
                "call": "call_other",
                "status": "success",
                "result": "one",
            }
        ),
        quoted("It says one."),
        "And b?",
    ]


def test_a_call_of_another_model_is_told_with_its_new_result(told: Told) -> None:
    call = ToolCall(CALL_IDS.id_in_message(new_id("message"), 0), "read", "{}")
    texts = told(user("Go"), Message("assistant", "", tool_calls=(call,)), Message("tool", "one", tool_call_id=call.id))
    assert texts[0] == "Go"
    assert json.loads(texts[1])["calls"][0]["call"] == call.id
    assert json.loads(texts[2])["result"] == "one"


def test_a_chat_goes_on_with_another_agent(letta: FakeGateway, told: Told) -> None:
    letta.has_agent("Bob")
    told(user("Hello"), answer="I am Ada.")
    chat = [user("Hello"), said("I am Ada."), user("And you?")]
    assert told(*chat, model="Bob") == ["Hello", quoted("I am Ada."), "And you?"]


def test_a_history_is_cut_with_a_notice(letta: FakeGateway, environment: dict[str, str]) -> None:
    environment["BRIDGE_HISTORY_LIMIT"] = "100"
    conversation = assemble_parts(read_settings(environment), letta).conversation
    old, long = user("The oldest."), user("x" * 150)
    list(conversation.events(turn_of(old, long, OK, user("Well?")), Signal()))
    notice, cut, ok, last = letta.prompts[0].texts
    left = 100 - len(QUOTED_OK)
    assert notice.startswith("[1 older messages")
    assert cut.startswith("x" * left + f"\n[{150 - left} characters")
    assert (ok, last) == (QUOTED_OK, "Well?")
    letta.prompts.clear()
    list(conversation.events(turn_of(old, long, OK, user("Well?"), said(f"You said: {last}"), user("?")), Signal()))
    assert letta.prompts[0].texts == ["?"]


def test_a_setting_brings_the_old_rule_back(letta: FakeGateway, environment: dict[str, str]) -> None:
    environment["BRIDGE_HISTORY_LIMIT"] = "0"
    conversation = assemble_parts(read_settings(environment), letta).conversation
    list(conversation.events(turn_of(user("a.py"), OK, user("Fix it")), Signal()))
    assert letta.prompts[0].texts == ["Fix it"]


def test_the_first_events_say_how_many_older_messages_were_told(ask: Ask) -> None:
    notice, chosen, *_ = ask(user("a.py"), OK, user("Fix it"))
    assert notice == Notice("the agent is told 2 older messages that it has not heard")
    assert chosen == MethodChosen("approval", told=2)
    assert ask(user("Hello"))[0] == MethodChosen("approval", told=0)


# --- what clients do with a conversation --------------------------------------------------------------------


def test_an_ordinary_conversation_costs_no_more_calls(letta: FakeGateway, told: Told) -> None:
    talk: list[Message] = []
    for number in range(5):
        talk.append(user(f"say {number}"))
        letta.calls.clear()
        assert told(*talk, answer=f"I say {number}") == [f"say {number}"]
        assert "newest_messages" not in letta.calls
        talk.append(said(f"I say {number}"))


@pytest.mark.parametrize("echo", ["  Yes,\nI do.  ", "<think>Do I?</think>Yes, I do."])
def test_white_space_and_thoughts_do_not_matter(told: Told, echo: str) -> None:
    told(user("Do you?"), answer="Yes, I do.")
    assert told(user("Do  you?\n"), said(echo), user("Why?")) == ["Why?"]


def test_answers_that_a_client_joins_or_cuts_stay_the_agents(told: Told) -> None:
    told(user("one"), answer="The first answer.")
    told(user("one"), said("The first answer."), user("two"), answer="The second answer.")
    joined = said("The first answer.\n\nThe second answer.")
    assert told(user("one"), joined, user("three")) == ["three"]


def test_the_same_prompt_again_is_asked_again(told: Told) -> None:
    assert told(user("Dice!"), answer="4") == ["Dice!"]
    assert told(user("Dice!"), answer="5") == ["Dice!"]
    assert told(user("Dice!"), said("5"), user("Dice!")) == ["Dice!"]


def test_a_prompt_whose_answer_the_client_dropped_is_not_told_again(told: Told) -> None:
    told(user("one"), answer="1")
    told(user("one"), said("1"), user("two"), answer="2")
    assert told(user("one"), said("1"), user("two"), user("three")) == ["three"]


@pytest.mark.parametrize("before", [[], [user("a.py: one"), OK]], ids=["opening", "after files"])
def test_a_first_prompt_whose_answer_the_client_dropped_is_not_told_again(told: Told, before: list[Message]) -> None:
    told(*before, user("one"))
    assert told(*before, user("one"), user("two")) == ["two"]
    assert told(*before, user("one"), user("two"), user("three")) == ["three"]


def test_an_edited_message_is_told_once_although_the_next_answer_was_dropped(told: Told) -> None:
    told(user("I am Tom."), answer="Hello.")
    edited = [user("I am Tim."), said("Hello."), user("Who am I?")]
    assert told(*edited, answer="Tim.") == ["I am Tim.", "Who am I?"]
    assert told(*edited, user("Well?")) == ["Well?"]


def test_a_conversation_that_is_taken_back_goes_on_from_there(told: Told) -> None:
    told(user("one"), answer="1")
    told(user("one"), said("1"), user("two"), answer="2")
    assert told(user("one"), said("1"), user("other")) == ["other"]


def test_an_edited_message_is_told(told: Told) -> None:
    told(user("I am Tom."), answer="Hello.")
    assert told(user("I am Tim."), said("Hello."), user("Who am I?")) == ["I am Tim.", "Who am I?"]
    assert told(user("I am Tim."), said("Hello."), user("Who am I?"), said("Yes."), user("?")) == ["?"]


def test_a_compacted_conversation_is_known(letta: FakeGateway, told: Told) -> None:
    summary = "The user greeted the assistant. " * 20
    told(user("Hello"), answer="Hi.")
    told(Message("system", SUMMING_UP), user("Hello"), said("Hi."), user("Sum up"), answer=summary)
    assert told(user(f"Summary so far:\n{summary}"), said("Got it."), user("Go on")) == [quoted("Got it."), "Go on"]
    assert told(said(summary), user("And now?")) == ["And now?"]


CODEX_SUMS_UP = user("You are performing a CONTEXT CHECKPOINT COMPACTION. Create a handoff summary.")
CODEX_GOES_ON = "Another language model started to solve this problem and produced a summary: "


def test_old_messages_that_come_again_before_a_summary_are_known(told: Told) -> None:
    summary = "The user counted, and the assistant agreed. " * 20
    talk = [user("One"), said("Yes."), user("Two")]
    told(talk[0])
    told(*talk)
    told(*talk, said("Yes."), CODEX_SUMS_UP, answer=summary)
    compacted = [user("One"), user("Imported"), user("Two"), user(CODEX_GOES_ON + summary)]
    assert told(*compacted, user("Two"), user("Three")) == ["Imported", "Two", "Three"]
    assert told(*compacted, user("Two"), user("Three"), said("Yes."), user("Four")) == ["Four"]


def test_old_messages_before_a_summary_of_a_result_are_known_and_the_summary_is_told(
    letta: FakeGateway, ask: Ask, told: Told
) -> None:
    call = calls_read(letta, ask)
    called, result = Message("assistant", tool_calls=(call,)), Message("tool", "one", tool_call_id=call.id)
    summary = "The file says one, and nothing else. " * 20
    told(user("Read"), called, result, CODEX_SUMS_UP, answer=summary)
    assert told(user("Read"), user(CODEX_GOES_ON + summary)) == [CODEX_GOES_ON + summary]


def test_words_around_another_answer_aside_are_told(told: Told) -> None:
    answer = "A better prompt is this. " * 20
    told(user("Better?"), answer=answer, aside=True)
    mine = user(f"{answer}What do you think? My number is 5.")
    assert told(mine, OK, user("Well?"))[0] == mine.text


def test_a_short_answer_aside_does_not_swallow_a_users_words(told: Told) -> None:
    told(user("Title?"), answer="Weather in Oslo", aside=True)
    assert told(user("Weather in Oslo"), OK, user("Well?"))[0] == "Weather in Oslo"


def test_thoughts_that_the_model_wrote_into_its_answer_do_not_matter(told: Told) -> None:
    answer = "<think>Do I?</think>Yes, I do."
    told(user("Do you?"), answer=answer)
    assert told(user("Do you?"), said(answer), user("Why?")) == ["Why?"]
    assert told(user("Do you?"), said("<think>Do I?</think>"), user("Well?")) == ["Well?"]


@pytest.mark.parametrize("opening", ["<think>", "<details>"])
def test_thoughts_without_an_end_take_no_time(told: Told, opening: str) -> None:
    began = time.thread_time()
    assert told(user("Hello"), said(opening * 20_000), user("Why?"))[-1] == "Why?"
    assert time.thread_time() - began < 5


def test_an_answer_that_the_user_stopped_is_the_agents(told: Told, forget: Callable[[], None]) -> None:
    told(user("A story!"), answer="Once upon a time there was a king who had a daughter.")
    cut = [user("A story!"), said("Once upon a time there was")]
    assert told(*cut, user("Stop"), answer="I stop.") == ["Stop"]
    forget()
    assert told(*cut, user("Stop"), said("I stop."), user("Go on")) == ["Go on"]


def test_an_agents_short_word_does_not_make_another_assistants_text_its_own(told: Told) -> None:
    talk: list[Message] = []
    for number in range(12):
        talk.append(user(f"say {number}"))
        told(*talk, answer="Done.")
        talk.append(said("Done."))
    other = said("I am another. The task is Done. We go to the next one in a moment.")
    assert told(*talk, user("And you?"), other, user("Well?")) == ["And you?", quoted(other.text), "Well?"]


def test_words_that_another_chat_said_since_are_not_missed(told: Told) -> None:
    told(user("Hi"), answer="Hello.")
    told(user("Good day"), answer="Good day to you.")
    told(user("Good day"), said("Good day to you."), user("Run the tests"), answer="They pass.")
    assert told(user("Hi"), said("Hello."), user("Run the tests"), user("Then stop")) == ["Run the tests", "Then stop"]


def test_equal_words_of_another_chat_do_not_hide_what_stands_in_this_one(told: Told) -> None:
    told(user("a.py"), OK, user("continue"), answer="Done.")
    told(user("continue"), answer="Done.")
    assert told(user("a.py"), OK, user("continue"), said("Done."), user("next")) == ["next"]


def test_equal_words_of_another_chat_do_not_hide_files_that_a_client_moves(told: Told) -> None:
    told(user("a.py"), OK, user("continue"), answer="Done.")
    told(user("continue"), answer="Done.")
    assert told(user("continue"), said("Done."), user("a.py"), OK, user("next")) == ["next"]


def test_equal_answers_do_not_hide_what_stands_in_a_conversation(told: Told) -> None:
    talk = [user("a.py"), OK, user("one"), said("Done."), user("two")]
    told(user("one"), answer="Done.")
    assert told(*talk, answer="Done.") == ["a.py", QUOTED_OK, "two"]
    sure = "Sure, this one too."
    assert told(*talk, user("b.py"), said(sure), said("Done."), user("three")) == ["b.py", quoted(sure), "three"]


# --- what was lost or broken off ----------------------------------------------------------------------------


@pytest.fixture
def forget(settings: Settings) -> Callable[[], None]:
    def forget() -> None:
        for path in settings.data_dir.glob("shared.db*"):
            path.unlink()

    return forget


def test_after_the_loss_of_the_store_the_agents_own_messages_tell(
    letta: FakeGateway, told: Told, forget: Callable[[], None]
) -> None:
    files = user("a.py: one")
    told(files, OK, user("one"), answer="The first.")
    forget()
    letta.calls.clear()
    assert told(files, OK, user("one"), said("The first."), user("two"), answer="The second.") == ["two"]
    assert letta.calls.count("newest_messages") == 1
    letta.calls.clear()
    talk = [files, OK, user("one"), said("The first."), user("two"), said("The second.")]
    assert told(*talk, user("three")) == ["three"]
    assert "newest_messages" not in letta.calls


def test_a_call_that_was_given_up_and_removed_stays_the_agents(environment: dict[str, str]) -> None:
    letta = FakeGateway(replace(FEATURES, version=(0, 16, 8), message_rewrite=False, client_tools=True))
    letta.has_agent("Ada", "memgpt_v2_agent")  # relay

    def ask(*messages: Message) -> list[AgentEvent]:
        letta.prompts.clear()
        conversation = assemble_parts(read_settings(environment), letta).conversation
        return list(conversation.events(turn_of(*messages, tools=(READ,), id=f"turn-{len(messages)}"), Signal()))

    letta.will(AgentCall(new_id("message"), "server-call", "read", "{}", held=True), Stopped("requires_approval"))
    call = call_of(ask(user("Read")))
    talk = [user("Read"), Message("assistant", "", tool_calls=(call,)), user("Never mind")]
    ask(*talk)
    talk.append(said("You said: Never mind"))
    late = Message("tool", "one", tool_call_id=call.id)
    environment["BRIDGE_DATA_DIR"] += "/second"
    ask(*talk, late, user("And now?"))
    quote, question = letta.prompts[0].texts
    assert (json.loads(quote)["result"], question) == ("one", "And now?")
    environment["BRIDGE_DATA_DIR"] += "/third"
    ask(*talk, late, user("And now?"), said("You said: And now?"), user("And then?"))
    assert letta.prompts[0].texts == ["And then?"]


def test_a_dropped_answer_is_not_missed_in_a_turn_after_the_loss_of_the_store(
    letta: FakeGateway, ask: Ask, told: Told, forget: Callable[[], None]
) -> None:
    call = calls_read(letta, ask)
    talk = [user("Read"), Message("assistant", "", tool_calls=(call,)), user("Never mind")]
    forget()
    assert told(*talk, tools=(READ,)) == ["Never mind"]
    assert told(*talk, user("Well?"), tools=(READ,)) == ["Well?"]


def test_json_that_was_taken_out_of_the_agents_words_stays_the_agents(told: Told, forget: Callable[[], None]) -> None:
    form = ReplyFormat("Answer with JSON.")
    told(user("Count"), answer='Here: {"count": 3}', reply_format=form)
    forget()
    assert told(user("Count"), said('{"count": 3}'), user("And now?")) == ["And now?"]


def test_a_message_that_a_client_wrapped_in_the_request_is_known_bare(letta: FakeGateway, told: Told) -> None:
    told(user(f"Use this: {'the moon is near. ' * 20}\nQuestion: How far?"), answer="Not far.")
    assert told(user("How far?"), said("Not far."), user("Really?"), answer="Really.") == ["Really?"]
    letta.calls.clear()
    assert told(user("How far?"), said("Not far."), user("Really?"), said("Really."), user("So.")) == ["So."]
    assert "newest_messages" not in letta.calls


def test_a_message_that_its_user_shortened_is_told(told: Told) -> None:
    told(user("Delete all the files but not b.py"), answer="Really?")
    assert told(user("Delete all the files"), said("Really?"), user("Yes"))[0] == "Delete all the files"


def test_a_message_of_a_turn_that_failed_is_told_unless_the_agent_has_it(letta: FakeGateway, ask: Ask) -> None:
    letta.will(LettaUnreachable("no model"))
    with pytest.raises(LettaUnreachable):
        ask(user("one"))
    letta.prompts.clear()
    ask(user("one"), said("(the answer was cut)"), user("two"))
    assert letta.prompts[0].texts == [quoted("(the answer was cut)"), "two"]


def test_the_first_message_of_a_conversation_that_failed_is_told_unless_the_agent_has_it(
    letta: FakeGateway, ask: Ask, told: Told
) -> None:
    letta.fails(LettaUnreachable("gone"), at="send_messages")
    with pytest.raises(LettaUnreachable):
        ask(user("zero"))
    letta.recovers()
    assert told(user("zero"), user("one")) == ["zero", "one"]
    letta.will(LettaUnreachable("no model"))
    with pytest.raises(LettaUnreachable):
        ask(user("two"))
    assert told(user("two"), user("three")) == ["three"]


def test_several_messages_that_open_a_conversation_cost_no_call_where_no_turn_failed(
    letta: FakeGateway, told: Told
) -> None:
    for _ in range(2):
        letta.calls.clear()
        assert told(user("a.py: one"), user("Fix it")) == ["a.py: one", "Fix it"]
        assert "newest_messages" not in letta.calls


def test_older_messages_of_a_turn_that_failed_are_told_again_unless_the_agent_has_them(
    letta: FakeGateway, ask: Ask, told: Told
) -> None:
    talk = [user("a.py: one"), OK, user("Fix it")]
    letta.fails(LettaUnreachable("gone"), at="send_messages")
    with pytest.raises(LettaUnreachable):
        ask(*talk)
    letta.recovers()
    assert told(*talk, answer="Fixed.") == ["a.py: one", QUOTED_OK, "Fix it"]
    talk += [said("Fixed."), user("b.py: one"), said("I will keep to b.py, too."), user("Fix it, too")]
    letta.will(LettaUnreachable("gone"))
    with pytest.raises(LettaUnreachable):
        ask(*talk)
    assert told(*talk) == ["Fix it, too"]


@pytest.mark.parametrize("arrived", [True, False], ids=["heard", "not heard"])
def test_a_message_that_changed_back_in_a_turn_that_failed_is_told_once(
    letta: FakeGateway, ask: Ask, told: Told, arrived: bool
) -> None:
    one, two, answer = user("a.py: one"), user("a.py: two"), said("That is the file which you asked me to read first.")
    told(one, answer=answer.text)
    told(two, answer, user("Look"), answer="I see.")
    talk = [one, answer, user("Look"), said("I see."), user("Again")]
    if arrived:
        letta.will(LettaUnreachable("gone"))
    else:
        letta.fails(LettaUnreachable("gone"), at="send_messages")
    with pytest.raises(LettaUnreachable):
        ask(*talk)
    letta.recovers()
    assert told(*talk, user("Well?")) == (["Well?"] if arrived else ["a.py: one", "Again", "Well?"])


def test_a_turn_that_failed_long_ago_does_not_hide_a_message_that_changed_back(
    letta: FakeGateway, ask: Ask, told: Told
) -> None:
    one, two, talk = user("a.py: one"), user("a.py: two"), [OK, user("Look")]
    letta.will(LettaUnreachable("gone"))
    with pytest.raises(LettaUnreachable):
        ask(one, *talk)
    told(one, *talk, user("Now?"), answer="I see.")
    talk += [user("Now?"), said("I see."), user("Again")]
    assert told(two, *talk, answer="I see two.") == ["a.py: two", "Again"]
    talk += [said("I see two."), user("And now?")]
    assert told(one, *talk) == ["a.py: one", "And now?"]


@pytest.mark.parametrize("arrived", [True, False], ids=["heard", "not heard"])
def test_a_file_that_changed_back_in_a_turn_that_failed_is_told_once(
    letta: FakeGateway, ask: Ask, told: Told, arrived: bool
) -> None:
    one, two, talk = user("a.py: one"), user("a.py: two"), [OK, user("Look")]
    told(one, *talk, answer="I see.")
    talk += [said("I see."), user("Again")]
    assert told(two, *talk, answer="I see two.") == ["a.py: two", "Again"]
    talk += [said("I see two."), user("And now?")]
    if arrived:
        letta.will(Text("Now it is"), LettaUnreachable("gone"))
    else:
        letta.fails(LettaUnreachable("gone"), at="send_messages")
    with pytest.raises(LettaUnreachable):
        ask(one, *talk)
    letta.recovers()
    talk += [said("Now it is")] if arrived else []
    assert told(one, *talk, user("Well?")) == (["Well?"] if arrived else ["a.py: one", "And now?", "Well?"])


def test_words_of_a_turn_that_failed_are_told_although_they_were_said_long_ago(
    letta: FakeGateway, ask: Ask, told: Told
) -> None:
    told(user("continue"), answer="The first.")
    talk = [user("continue"), said("The first."), user("more"), said("The second.")]
    told(*talk[:3], answer="The second.")
    letta.fails(LettaUnreachable("gone"), at="send_messages")
    with pytest.raises(LettaUnreachable):
        ask(*talk, user("continue"))
    letta.recovers()
    assert told(*talk, user("continue"), user("now")) == ["continue", "now"]


@pytest.mark.parametrize("talk", [[], [user("zero"), said("Yes.")]], ids=["first words", "later words"])
@pytest.mark.parametrize("arrived", [True, False], ids=["heard", "not heard"])
def test_words_in_the_turn_of_a_killed_worker_are_told_again_only_if_they_did_not_arrive(
    letta: FakeGateway, ask: Ask, told: Told, monkeypatch: pytest.MonkeyPatch, talk: list[Message], arrived: bool
) -> None:
    if talk:
        told(talk[0])
    if arrived:
        letta.will(LettaUnreachable("killed"))
    else:
        letta.fails(LettaUnreachable("killed"), at="send_messages")
    with monkeypatch.context() as killed:
        killed.setattr(HeardTurns, "note", lambda *_: None)
        with pytest.raises(LettaUnreachable):
            ask(*talk, user("one"))
    letta.recovers()
    assert told(*talk, user("one"), user("two")) == (["two"] if arrived else ["one", "two"])


@pytest.mark.parametrize("talk", [[], [user("zero"), said("Yes.")]], ids=["first words", "later words"])
def test_words_that_a_failed_run_left_out_of_the_context_are_told(
    letta: FakeGateway, ask: Ask, told: Told, talk: list[Message]
) -> None:
    if talk:
        told(talk[0])
    (kept,) = letta._agents.values()
    before = kept.agent.message_ids
    letta.will(LettaUnreachable("gone"))
    with pytest.raises(LettaUnreachable):
        ask(*talk, user("one"))
    kept.agent = replace(kept.agent, message_ids=before)
    assert told(*talk, user("one"), user("two")) == ["one", "two"]


def test_records_of_another_form_are_passed_over(letta: FakeGateway, settings: Settings, told: Told) -> None:
    told(user("Hi"), answer="Hello.")
    store = assemble_parts(settings, letta).store
    for record in FOREIGN_RECORDS:
        store.append(f"heard:{letta.agents()[0].id}", record, 1_000, 60)
    assert told(user("Hi"), said("Hello."), user("Well?")) == ["Well?"]


def test_what_was_shown_before_a_break_is_the_agents(letta: FakeGateway, ask: Ask) -> None:
    letta.will(Text("The beginning of"), LettaUnreachable("gone"))
    with pytest.raises(LettaUnreachable):
        ask(user("one"))
    letta.prompts.clear()
    ask(user("one"), said("The beginning of [interrupted]"), user("two"))
    assert letta.prompts[0].texts == ["two"]


def test_a_store_that_fails_makes_no_turn_fail(
    letta: FakeGateway, told: Told, settings: Settings, forget: Callable[[], None]
) -> None:
    told(user("one"), answer="1")
    forget()
    assert told(user("one"), said("1"), user("two")) == ["two"]


@pytest.mark.parametrize("arguments", ['{"a": "\\ud83d"}', "[" * 100_000])
def test_odd_arguments_of_a_call_make_no_turn_fail(told: Told, arguments: str) -> None:
    called = Message("assistant", "", tool_calls=(ToolCall("call_other", "read", arguments),))
    assert told(user("Hi"), called, user("Well?"))[-1] == "Well?"


def test_half_a_character_in_an_answer_makes_no_turn_fail(told: Told) -> None:
    told(user("Hi"), answer="Hello \ud83d")
    assert told(user("Hi"), said("Hello \ufffd"), user("Well?"))[-1] == "Well?"


# --- calls and results ----------------------------------------------------------------------------------------


def call_of(events: list[AgentEvent]) -> ToolCall:
    return next(event for event in events if isinstance(event, ToolCall))


def calls_read(letta: FakeGateway, ask: Ask) -> ToolCall:
    """Makes the agent call the client's tool in its first turn."""

    def call() -> AgentCall:
        return AgentCall(new_id("message"), "server-call", "read", "{}", held=True)

    letta.will(call(), Stopped("requires_approval"))
    return call_of(ask(user("Read"), tools=(READ,)))


def test_the_agents_own_calls_and_results_are_not_told_again(letta: FakeGateway, ask: Ask, told: Told) -> None:
    call = calls_read(letta, ask)
    called = Message("assistant", "", tool_calls=(call,))
    result = Message("tool", "one", tool_call_id=call.id)
    letta.prompts.clear()
    ask(user("Read"), called, result, tools=(READ,))
    assert letta.prompts[0].messages == (Results((CallResult("server-call", "one"),)),)
    rewritten = Message("assistant", "", tool_calls=(ToolCall(call.id, "read", '{"path": null}'),))
    answer = said("You said: ")
    assert told(user("Read"), rewritten, result, answer, user("Thanks"), tools=(READ,))[-1] == "Thanks"
    assert letta.prompts[-1].messages == (Say("user", "Thanks"),)


def test_a_summary_of_a_result_that_the_agent_waits_for_is_told(letta: FakeGateway, ask: Ask, told: Told) -> None:
    call = calls_read(letta, ask)
    called = Message("assistant", tool_calls=(call,))
    summary = "The file says one, and nothing else. " * 20
    result = Message("tool", "one", tool_call_id=call.id)
    told(Message("system", SUMMING_UP), user("Read"), called, result, user("Sum up"), answer=summary)
    assert told(user(summary), OK, user("Well?"))[0] == summary


def test_a_call_that_a_client_sends_back_as_text_is_the_agents(
    letta: FakeGateway, ask: Ask, told: Told, forget: Callable[[], None]
) -> None:
    call = calls_read(letta, ask)
    text = f"Calling tools: [{{'id': '{call.id}', 'type': 'function', 'function': {{'name': 'read'}}}}]"
    talk = [user("Read"), said(text), user("Observation: one")]
    assert told(*talk, tools=(READ,), answer="It says one.") == ["Observation: one"]
    forget()
    assert told(*talk, said("It says one."), user("Thanks"), tools=(READ,)) == ["Thanks"]


def test_a_result_before_an_answer_that_nobody_gave_is_the_calls_return(letta: FakeGateway, ask: Ask) -> None:
    call = calls_read(letta, ask)
    called = Message("assistant", "", tool_calls=(call,))
    letta.prompts.clear()
    ask(user("Read"), called, Message("tool", "one", tool_call_id=call.id), OK, user("Well?"), tools=(READ,))
    results, *rest = letta.prompts[0].messages
    assert results == Results((CallResult("server-call", "one"),))
    assert [message.text for message in rest if isinstance(message, Say)] == [QUOTED_OK, "Well?"]


def test_a_result_of_an_unknown_call_is_told_beside_a_users_message(told: Told) -> None:
    result, well = told(Message("tool", "one", tool_call_id="call_nobody"), user("Well?"))
    assert json.loads(result)["result"] == "one"
    assert well == "Well?"


def test_a_result_of_a_call_that_the_transcript_does_not_have_is_refused(ask: Ask) -> None:
    with pytest.raises(InvalidRequest, match="call_nobody"):
        ask(user("Hello"), OK, Message("tool", "one", tool_call_id="call_nobody"))
