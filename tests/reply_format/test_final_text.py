from __future__ import annotations

from collections.abc import Callable, Sequence

from bridge.reply_format.checker import CheckedReply
from bridge.reply_format.final_text import with_checked_text
from bridge.turn import (
    AgentCall,
    AgentEvent,
    FormatChecked,
    OriginalReply,
    Reasoning,
    RunStarted,
    Stopped,
    Text,
    ToolCall,
    TurnEvent,
    Used,
)

STOP = Stopped("end_turn")
CALL = ToolCall("call_1", "read", "{}")
VALID = FormatChecked("valid")
INVALID = FormatChecked("invalid")


def check(text: str) -> CheckedReply:
    """Takes the text after a colon for the JSON; a text without one is invalid, and "?" can't be checked."""
    if text == "?":
        return CheckedReply("unchecked")
    _, colon, value = text.partition(":")
    return CheckedReply("valid", value) if colon else CheckedReply("invalid", fault=f"{text} is wrong")


def runs(first: Sequence[AgentEvent], *later: Sequence[AgentEvent]) -> tuple[list[TurnEvent], list[str]]:
    """Returns the events of a turn whose agent does this in its runs, and the faults that the agent was told."""
    waiting, told = [*later], list[str]()

    def ask_again(fault: str) -> object:
        if not waiting:
            return None
        told.append(fault)
        return iter(waiting.pop(0))

    ask: Callable[[str], None] = ask_again  # type: ignore[assignment]
    return list(with_checked_text(iter(first), check, ask)), told


def test_a_valid_text_is_sent_when_it_is_checked() -> None:
    done, told = runs([RunStarted("run-1"), Text(":{", "m1"), Text("}", "m1"), Used(1, 2), STOP])
    assert done == [RunStarted("run-1"), OriginalReply(":{}"), VALID, Text("{}", "m1"), Used(1, 2), STOP]
    assert told == []


def test_a_text_that_is_only_the_json_is_not_recorded_twice() -> None:
    events = with_checked_text(
        iter([Text(" {}\n"), STOP]), lambda text: CheckedReply("valid", text.strip()), lambda _: None
    )
    assert list(events) == [VALID, Text("{}"), STOP]


def test_the_messages_of_a_reply_are_checked_together() -> None:
    done, _ = runs([Text("first", "m1"), Text(":2", "m2"), STOP])
    assert done == [OriginalReply("first\n\n:2"), VALID, Text("2", "m2"), STOP]


def test_an_invalid_text_is_asked_for_again_and_the_client_gets_only_the_second() -> None:
    done, told = runs(
        [Text("no"), Used(100, 10, 2, "s2"), STOP], [Text(":{}"), Used(30, 5, 1, "s3"), Stopped("tool_rule")]
    )
    assert done == [
        OriginalReply("no", "no is wrong"),
        OriginalReply(":{}"),
        VALID,
        Text("{}"),
        Used(130, 15, 3, "s3"),
        Stopped("tool_rule"),
    ]
    assert told == ["no is wrong"]


def test_what_is_still_invalid_is_sent_as_it_is() -> None:
    done, told = runs([Text("no"), STOP], [Text("not "), Text("this"), STOP])
    assert done == [OriginalReply("no", "no is wrong"), INVALID, Text("not "), Text("this"), STOP]
    assert told == ["no is wrong"]


def test_an_agent_that_says_nothing_is_asked_again() -> None:
    done, told = runs([Reasoning("hm"), STOP], [STOP])
    assert done == [Reasoning("hm"), OriginalReply("", " is wrong"), INVALID, STOP]
    assert told == [" is wrong"]


def test_a_run_that_letta_cut_short_is_not_asked_for_again() -> None:
    for reason in ("max_steps", "max_tokens_exceeded"):
        done, told = runs([Text("no"), Stopped(reason)], [Text(":{}"), STOP])
        assert done == [INVALID, Text("no"), Stopped(reason)]
        assert told == []


def test_a_text_that_cannot_be_checked_is_not_asked_for_again() -> None:
    done, told = runs([Text("?"), STOP], [Text(":{}"), STOP])
    assert done == [FormatChecked("unchecked"), Text("?"), STOP]
    assert told == []


def test_thoughts_and_own_calls_come_before_the_text() -> None:
    own = AgentCall("m1", "c1", "search", "{}")
    done, _ = runs([Text("Let me see", "m1"), own, Reasoning("hm"), Text(":1", "m2"), STOP])
    assert done == [own, Reasoning("hm"), OriginalReply("Let me see\n\n:1"), VALID, Text("1", "m2"), STOP]


def test_a_turn_with_calls_is_passed_on_unchecked() -> None:
    done, told = runs([Text("Let me see"), CALL, Text("After"), Used(1, 2), STOP], [Text(":{}"), STOP])
    assert done == [Text("Let me see"), CALL, Text("After"), Used(1, 2), STOP]
    assert told == []


def test_a_call_instead_of_the_second_reply_is_passed_on() -> None:
    done, _ = runs([Text("no"), Used(1, 1), STOP], [Text("Let me see"), CALL, Used(2, 2), Stopped("requires_approval")])
    assert done == [
        OriginalReply("no", "no is wrong"),
        Text("Let me see"),
        CALL,
        Used(3, 3, 2),
        Stopped("requires_approval"),
    ]


def test_an_agent_is_asked_as_often_as_is_allowed() -> None:
    done, told = runs([Text("a"), STOP], [Text("b"), STOP], [Text(":c"), STOP])
    assert done[-3:] == [VALID, Text("c"), STOP]
    assert told == ["a is wrong", "b is wrong"]
