"""A held call is found although the agent's other conversations fill its list of messages."""

from __future__ import annotations

import pytest

from bridge.interception.close_held import find_held_request
from bridge.interception.stored_messages import LOOK_BACK, USER, is_heartbeat
from bridge.letta.gateway import Agent, StoredMessage
from tests.actors import Chat, ChatReply
from tests.fakes import FakeGateway
from tests.test_complaints import answered, called, delivered, ids, result


@pytest.fixture
def ada(letta: FakeGateway) -> Agent:
    return letta.agent(letta.agents_named("Ada")[0].id)


@pytest.fixture
def waiting(chat: Chat, letta: FakeGateway, ada: Agent) -> ChatReply:
    reply = called(chat, letta)
    letta.talks_elsewhere(ada.id, LOOK_BACK)
    return reply


def test_the_result_reaches_the_call(chat: Chat, letta: FakeGateway, waiting: ChatReply) -> None:
    assert answered(chat, letta, waiting, result(ids(waiting)[0])).text == "Thanks"
    assert delivered(letta) == [("12 degrees", True)]


@pytest.mark.usefixtures("waiting")
def test_a_message_instead_of_the_result_frees_the_agent(chat: Chat, letta: FakeGateway) -> None:
    letta.will_say("Hello again")
    assert chat.ask("never mind").text == "Hello again"


@pytest.mark.usefixtures("waiting")
def test_the_operator_sees_the_held_call(letta: FakeGateway, ada: Agent) -> None:
    held = find_held_request(letta, letta.agent(ada.id))
    assert held is not None
    assert [call.name for call in held.calls] == ["get_weather"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [('{"type": "heartbeat"}', True), ('{"type": "x"}', False), ("{", False), ('{"a":' * 100_000, False)],
    ids=["heartbeat", "another type", "not JSON", "too deep"],
)
def test_only_lettas_own_message_is_a_heartbeat(text: str, expected: bool) -> None:
    assert is_heartbeat(StoredMessage("message-1", USER, text=text)) is expected
