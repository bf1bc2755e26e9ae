"""Which requests are the same turn. Whole turns that come again are in test_turns.py and test_two_lettas.py."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from bridge.dialects.base import RequestRules
from bridge.dialects.chat_completions.dialect import ChatCompletions
from bridge.directory import Directory
from bridge.errors import LettaTimeout, LettaUnreachable
from bridge.journal.claims import Identity
from bridge.letta.identity import ServerIdentity
from bridge.turn import NewInput, Turn
from bridge.turns import identity as module
from bridge.turns.identity import Identities
from tests.fakes import FakeGateway
from tests.waiting import SOON, until

TURN = Turn("Ada", NewInput(()))
CHAT = ChatCompletions(RequestRules())


@pytest.fixture
def letta() -> FakeGateway:
    letta = FakeGateway()
    letta.has_agent("Ada")
    letta.has_tool("send_message", "letta_core")
    return letta


@pytest.fixture
def identities(letta: FakeGateway) -> Identities:
    return Identities(Directory(letta), ServerIdentity(letta))


def identify(identities: Identities, turn: Turn = TURN, named: str = "", text: str = "Hello") -> Identity:
    body = {"model": turn.model, "messages": [{"role": "user", "content": text}]}
    return identities.identify(named, CHAT, body, turn)


def test_the_same_content_of_one_client_for_one_agent_is_the_same_turn(identities: Identities) -> None:
    first = identify(identities)
    assert identify(identities) == first
    others = [identify(identities, text="Hello!"), identify(identities, replace(TURN, client="alice"))]
    assert len({first.name, *(other.name for other in others)}) == 3


def test_the_same_content_is_the_same_turn_in_whatever_order_its_fields_are_and_as_a_stream(
    identities: Identities,
) -> None:
    reordered = {"stream": True, "messages": [{"content": "Hello", "role": "user"}], "model": "Ada"}
    assert identities.identify("", CHAT, reordered, TURN) == identify(identities)


def test_an_agent_that_was_made_again_is_another_one(letta: FakeGateway) -> None:
    first = identify(Identities(Directory(letta), ServerIdentity(letta)))
    letta.loses_agent(letta.agents_named("Ada")[0].id)
    letta.has_agent("Ada")
    assert identify(Identities(Directory(letta), ServerIdentity(letta))).name != first.name


@pytest.mark.parametrize("named", ["", "order-1"])
def test_letta_is_asked_once(letta: FakeGateway, identities: Identities, named: str) -> None:
    for _ in range(5):
        identify(identities, named=named)
    assert len(letta.calls) == 1


def test_a_turn_for_no_agent_has_an_identity_and_fails_by_itself(identities: Identities) -> None:
    nobody = replace(TURN, model="Nobody")
    assert identify(identities, nobody).name == identify(identities, nobody).name != identify(identities).name


@pytest.mark.parametrize(("named", "call"), [("", "agents_named"), ("order-1", "tools_named")])
def test_without_letta_no_turn_begins_and_later_it_has_the_same_identity(
    letta: FakeGateway, identities: Identities, named: str, call: str
) -> None:
    letta.fails(LettaUnreachable("It is down."), at=call)
    with pytest.raises(LettaUnreachable):
        identify(identities, named=named)
    letta.recovers()
    assert identify(identities, named=named) == identify(identities, named=named)


def test_a_letta_that_does_not_answer_keeps_a_request_waiting_for_a_limited_time(
    letta: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LONGEST_LOOKUP", 0.05)
    goes_on, named = threading.Event(), letta.agents_named
    monkeypatch.setattr(letta, "agents_named", lambda name: goes_on.wait(SOON) and named(name))
    directory = Directory(letta)
    identities = Identities(directory, ServerIdentity(letta))
    with pytest.raises(LettaTimeout) as caught:
        identify(identities)
    assert caught.value.retry_after == 5
    goes_on.set()
    until(lambda: directory.known_id("Ada"))
    assert identify(identities)
