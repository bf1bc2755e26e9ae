"""A turn that is refused leaves no new stubs on the server."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from threading import Event as Signal
from unittest.mock import Mock

import pytest

from app import assemble_parts
from bridge import errors
from bridge.config import Settings
from bridge.letta.gateway import HELPER_PREFIX, Tool
from bridge.operation.parts import Parts
from bridge.turn import AgentCall, Image, Message, Reasoning, Stopped, Stub, ToolCall, ToolSpec, Turn
from tests.asked import turn_of
from tests.fake_agent import new_id
from tests.fakes import FEATURES, FakeGateway
from tests.toolsets import SharedLetta, offered, rules_of

HELLO = Message("user", "Hello")
READ, WRITE, EDIT = ToolSpec("read"), ToolSpec("write"), ToolSpec("edit")
# Errors that the same request would meet again.
TOO_MANY = errors.InvalidRequest("Too many.", code="too_many_tools")
REFUSALS = [
    TOO_MANY,
    errors.ContextOverflow("The context is full."),
    errors.LettaConflict("The agent waits for an approval.", code="agent_waits_for_approval"),
    errors.LettaNotFound("There is no such agent."),
    errors.LettaRejected("It did not accept what the bridge sent (422)."),
]
AGAIN_LATER = [
    errors.ModelOverloaded("It is rate limited."),
    errors.ModelFailed("It failed."),
    errors.LettaUnreachable("It broke."),
    errors.LettaTimeout("It is slow."),
]


@pytest.fixture
def letta() -> SharedLetta:
    letta = SharedLetta()
    letta.has_agent("Ada")
    return letta


@pytest.fixture
def parts(letta: SharedLetta, settings: Settings) -> Parts:
    return assemble_parts(settings, letta)


def run(parts: Parts, *tools: ToolSpec, messages: Sequence[Message] = (HELLO,), aside: bool = False) -> None:
    turn: Turn = turn_of(*messages, tools=tools, aside=aside)
    list(parts.conversation.events(turn, Signal()))


def is_refused(parts: Parts, refusal: errors.BridgeError, *tools: ToolSpec, aside: bool = False) -> None:
    """Runs a turn that ends with the error."""
    said = (HELLO, *calls_and_results()) if aside else (HELLO,)
    with pytest.raises(errors.BridgeError) as caught:
        run(parts, *tools, messages=said, aside=aside)
    assert caught.value is refusal or caught.value.message == refusal.message


def calls_and_results() -> tuple[Message, ...]:
    call = ToolCall("call_1", "read", "{}")
    return Message("assistant", tool_calls=(call,)), Message("tool", "milk", tool_call_id="call_1")


def remaining(parts: Parts, letta: SharedLetta) -> list[str]:
    """Returns the tools on the server after the removal that follows a refused turn."""
    parts.offering.refused_stubs.remove(lambda _: None)
    return sorted(tool.name for tool in letta.tools())


def has_only(letta: SharedLetta, *names: str) -> bool:
    """Whether the only agent has exactly these stubs, and rules for them."""
    agent = letta.agent(letta.agents()[0].id)
    ruled = [name for _, name in rules_of(letta, agent)]
    return [*offered(letta, agent)] == ruled == [*names]


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda fault: type(fault).__name__)
def test_a_turn_that_the_model_or_letta_refuses_leaves_no_new_stub(
    letta: SharedLetta, parts: Parts, refusal: errors.BridgeError
) -> None:
    letta.fails(refusal, at="send_messages")
    is_refused(parts, refusal, READ, WRITE)
    assert has_only(letta)
    assert remaining(parts, letta) == []


def test_a_refused_turn_leaves_the_stubs_that_were_there_before(letta: SharedLetta, parts: Parts) -> None:
    letta.has_tool("mine")
    run(parts, READ)
    letta.fails(TOO_MANY, at="send_messages")
    is_refused(parts, TOO_MANY, READ, WRITE)
    assert has_only(letta, "read")
    assert remaining(parts, letta) == ["mine", "read"]


def test_a_refusal_in_the_middle_of_a_turn_leaves_no_new_stub(letta: SharedLetta, parts: Parts) -> None:
    letta.will(Reasoning("Let me see."), REFUSALS[1])
    is_refused(parts, REFUSALS[1], READ)
    assert remaining(parts, letta) == []


@pytest.mark.parametrize("fault", AGAIN_LATER, ids=lambda fault: type(fault).__name__)
def test_stubs_stay_for_a_request_that_is_asked_to_come_again(
    letta: SharedLetta, parts: Parts, fault: errors.BridgeError
) -> None:
    letta.fails(fault, at="send_messages")
    is_refused(parts, fault, READ)
    assert has_only(letta, "read")
    assert remaining(parts, letta) == ["read"]


@pytest.mark.parametrize("refusal", [REFUSALS[0], REFUSALS[4]], ids=["InvalidRequest", "LettaRejected"])
@pytest.mark.parametrize("verb", ["change_agent", "agent"])
def test_a_toolset_that_letta_refuses_leaves_no_stub(
    letta: SharedLetta, parts: Parts, verb: str, refusal: errors.BridgeError
) -> None:
    run(parts)
    letta.before_call(verb, Mock(side_effect=refusal), nth=2 if verb == "agent" else 1)
    is_refused(parts, refusal, READ, WRITE)
    assert has_only(letta)
    assert remaining(parts, letta) == []


def test_one_tool_that_letta_refuses_takes_the_others_back(
    letta: SharedLetta, parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = letta.put_tool

    def put_some(stub: Stub, tags: Sequence[str]) -> Tool:
        if stub.name == "write":
            raise errors.LettaRejected("422")
        return put(stub, tags)

    monkeypatch.setattr(letta, "put_tool", put_some)
    is_refused(parts, errors.LettaRejected("The Letta server did not accept the tool 'write'."), READ, WRITE, EDIT)
    assert remaining(parts, letta) == []


def test_an_agent_that_is_deleted_during_the_turn_leaves_no_stub(letta: SharedLetta, parts: Parts) -> None:
    letta.before_call("change_agent", lambda: letta.loses_agent(letta.agents()[0].id))
    with pytest.raises(errors.LettaNotFound):
        run(parts, READ)
    assert remaining(parts, letta) == []


def test_an_open_call_of_a_new_stub_keeps_it(letta: SharedLetta, parts: Parts) -> None:
    """The client that got the call may send its result."""
    letta.will(AgentCall(new_id("message"), "call_1", "read", "{}", held=True), Stopped("requires_approval"), TOO_MANY)
    is_refused(parts, TOO_MANY, READ)
    assert has_only(letta, "read")
    assert remaining(parts, letta) == ["read"]


def test_the_same_client_finds_its_stubs_when_it_asks_again(letta: SharedLetta, parts: Parts) -> None:
    letta.fails(TOO_MANY, at="send_messages")
    is_refused(parts, TOO_MANY, READ, WRITE)
    letta.recovers()
    letta.calls.clear()
    run(parts, READ)
    assert "put_tool" not in letta.calls
    assert has_only(letta, "read")
    assert remaining(parts, letta) == ["read"]


@pytest.mark.parametrize("verb", ["agent", "newest_messages", "change_agent"])
def test_a_clean_up_that_fails_hides_no_refusal(
    letta: SharedLetta, parts: Parts, caplog: pytest.LogCaptureFixture, verb: str
) -> None:
    letta.will(lambda: letta.fails(errors.LettaUnreachable("It is down."), at=verb), TOO_MANY)
    with caplog.at_level(logging.WARNING):
        is_refused(parts, TOO_MANY, READ)
    assert "new tools of a refused request stay with the agent for now: It is down." in caplog.messages
    letta.recovers()
    assert remaining(parts, letta) == ["read"]
    run(parts)
    assert has_only(letta)


# --- requests aside ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["make_helper", "change_agent", "send_messages"])
def test_a_request_aside_that_is_refused_leaves_no_stub(letta: SharedLetta, parts: Parts, verb: str) -> None:
    letta.fails(REFUSALS[4], at=verb)
    is_refused(parts, REFUSALS[4], READ, aside=True)
    assert not any(agent.name.startswith(HELPER_PREFIX) for agent in letta.agents())
    assert remaining(parts, letta) == []


def test_pictures_that_the_server_does_not_take_are_refused_before_a_stub_is_made(settings: Settings) -> None:
    old = FakeGateway(replace(FEATURES, version=(0, 7, 29)))
    old.has_agent("Ada")
    shown = Message("user", "Look.", images=(Image("image/png", "AAAA"),))
    with pytest.raises(errors.InvalidRequest, match="takes no pictures"):
        run(assemble_parts(settings, old), READ, messages=(shown, *calls_and_results()), aside=True)
    assert not {"put_tool", "make_helper"} & {*old.calls}
