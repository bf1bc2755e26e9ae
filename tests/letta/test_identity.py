from __future__ import annotations

import pytest

from bridge.errors import LettaUnreachable
from bridge.letta.identity import ServerIdentity
from tests.fakes import FakeGateway


@pytest.fixture
def letta() -> FakeGateway:
    return FakeGateway()


def test_the_id_is_one_that_the_server_made_and_is_read_once(letta: FakeGateway) -> None:
    tool = letta.has_tool("send_message", "letta_core")
    identity = ServerIdentity(letta)
    assert [identity.read() for _ in range(3)] == [tool.id] * 3
    assert letta.calls == ["tools_named"]


def test_two_servers_have_different_ids(letta: FakeGateway) -> None:
    other = FakeGateway()
    for server in (letta, other):
        server.has_tool("send_message", "letta_core")
    assert ServerIdentity(letta).read() != ServerIdentity(other).read()


def test_a_server_that_is_down_is_asked_again(letta: FakeGateway) -> None:
    tool = letta.has_tool("send_message", "letta_core")
    identity = ServerIdentity(letta)
    letta.fails(LettaUnreachable("It is down."), at="tools_named")
    with pytest.raises(LettaUnreachable):
        identity.read()
    letta.recovers()
    assert identity.read() == tool.id


def test_a_server_without_the_tool_has_no_id_and_is_not_asked_again(letta: FakeGateway) -> None:
    identity = ServerIdentity(letta)
    assert [identity.read() for _ in range(3)] == [""] * 3
    assert letta.calls == ["tools_named"]
