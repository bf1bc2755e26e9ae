"""A new stub gets its plain name when only a stub that nobody uses has it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bridge import errors
from bridge.letta.gateway import Agent
from bridge.sync.ownership import idle_since, is_leaving, tags_when_idle
from bridge.sync.plain_names import LONG_IDLE
from tests.stores import MemoryStore
from tests.toolsets import Bridge, SharedLetta, offered, rules_of, second_name, stub

NOW = 1_800_000_000.0
READ, WRITE = stub("read_file"), stub("write_file")
OTHER_READ, OTHER_WRITE = stub("read_file", "Reads another file."), stub("write_file", "Writes another file.")


@pytest.fixture
def letta() -> SharedLetta:
    return SharedLetta()


@pytest.fixture
def ada(letta: SharedLetta) -> Agent:
    return letta.has_agent("Ada")


@pytest.fixture
def bob(letta: SharedLetta) -> Agent:
    return letta.has_agent("Bob")


def new_bridge(
    letta: SharedLetta, pause: Callable[[float], None] = lambda _: None, store: MemoryStore | None = None
) -> Bridge:
    return Bridge(letta, store, clock=lambda: NOW, pause=pause)


@pytest.fixture
def first(letta: SharedLetta, ada: Agent) -> Bridge:
    """A bridge whose client had two tools, which no agent has any more, as a sweep noted long ago."""
    bridge = new_bridge(letta)
    bridge.sync(ada, READ, WRITE)
    bridge.sync(ada)
    for name in ("read_file", "write_file"):
        note_idle(letta, name, LONG_IDLE)
    return bridge


def note_idle(letta: SharedLetta, name: str, seconds: float) -> None:
    found = letta.tool(name)
    letta.edits(found, tags=tuple(tags_when_idle(found, int(NOW - seconds))))


@pytest.mark.usefixtures("first")
def test_an_idle_stub_gives_its_name_to_another_clients_tool(letta: SharedLetta, bob: Agent) -> None:
    pauses: list[float] = []
    bridge = new_bridge(letta, pauses.append)
    assert bridge.sync(bob, OTHER_READ, OTHER_WRITE) == ["read_file", "write_file"]
    assert offered(letta, bob)["read_file"]["description"] == "Reads another file."
    assert len(pauses) == 1
    assert bridge.counts == {
        "tools_named": 3, "tag_tool": 2, "whole_agents": 1, "delete_tool": 2, "put_tool": 2, "agent": 1,
        "change_agent": 1,
    }  # fmt: skip
    assert sorted(tool.name for tool in letta.tools()) == ["read_file", "write_file"]
    bridge.sync(bob, OTHER_READ, OTHER_WRITE)
    assert bridge.counts == {}
    assert bridge.store.values == {}


def test_its_own_client_gets_another_stub_when_it_comes_back(
    letta: SharedLetta, first: Bridge, ada: Agent, bob: Agent
) -> None:
    new_bridge(letta).sync(bob, OTHER_READ)
    assert first.sync(ada, READ, WRITE) == [second_name(READ), "write_file"]
    assert offered(letta, ada)[second_name(READ)]["description"] == "Reads a file."
    assert offered(letta, bob)["read_file"]["description"] == "Reads another file."


@pytest.mark.usefixtures("first")
def test_a_stub_that_was_used_lately_keeps_its_name(letta: SharedLetta, bob: Agent) -> None:
    note_idle(letta, "read_file", LONG_IDLE - 1)
    bridge = new_bridge(letta)
    assert bridge.sync(bob, OTHER_READ) == [second_name(OTHER_READ)]
    assert "whole_agents" not in bridge.counts


def test_a_stub_that_no_sweep_found_idle_keeps_its_name(letta: SharedLetta, ada: Agent, bob: Agent) -> None:
    new_bridge(letta).sync(ada, READ)
    new_bridge(letta).sync(ada)
    assert new_bridge(letta).sync(bob, OTHER_READ) == [second_name(OTHER_READ)]


@pytest.mark.usefixtures("first")
def test_a_foreign_tool_keeps_its_name_whatever_its_tags(letta: SharedLetta, bob: Agent) -> None:
    letta.edits(letta.tool("read_file"), source="def read_file(): pass")
    assert new_bridge(letta).sync(bob, OTHER_READ) == [second_name(OTHER_READ)]
    assert letta.tool("read_file").source == "def read_file(): pass"


def test_a_stub_that_an_agent_has_or_has_a_rule_for_keeps_its_name(
    letta: SharedLetta, first: Bridge, ada: Agent, bob: Agent
) -> None:
    first.sync(ada, READ, WRITE)
    letta.detaches(ada, "write_file")
    for name in ("read_file", "write_file"):
        note_idle(letta, name, LONG_IDLE)
    names = new_bridge(letta).sync(bob, OTHER_READ, OTHER_WRITE)
    assert names == [second_name(OTHER_READ), second_name(OTHER_WRITE)]
    assert rules_of(letta, ada) == [("requires_approval", "read_file"), ("requires_approval", "write_file")]
    assert idle_since(letta.tool("read_file")) is None
    assert not is_leaving(letta.tool("read_file"))


def test_a_turn_that_attaches_the_stub_meanwhile_keeps_it(
    letta: SharedLetta, first: Bridge, ada: Agent, bob: Agent
) -> None:
    """The other turn sent its change before the stub was marked, and Letta does it after that."""
    read = letta.tool("read_file")
    bridge = new_bridge(letta, lambda _: letta.attaches(ada, read))
    assert bridge.sync(bob, OTHER_READ) == [second_name(OTHER_READ)]
    assert letta.has("read_file")
    assert first.sync(ada, READ) == ["read_file"]


@pytest.mark.parametrize("moment", ["tag_tool", "whole_agents", "delete_tool", "put_tool", "agent", "change_agent"])
def test_both_clients_get_their_own_tools_whenever_the_other_turn_comes(
    letta: SharedLetta, first: Bridge, ada: Agent, bob: Agent, moment: str
) -> None:
    letta.before_call(moment, lambda: first.sync(ada, READ))
    (name,) = new_bridge(letta, store=first.store).sync(bob, OTHER_READ)
    assert offered(letta, bob)[name]["description"] == "Reads another file."
    (name,) = first.sync(ada, READ)
    assert offered(letta, ada)[name]["description"] == "Reads a file."


@pytest.mark.usefixtures("first")
def test_a_name_that_another_request_has_reserved_is_left_to_it(letta: SharedLetta, bob: Agent) -> None:
    third = stub("read_file", "Reads a third file.")
    store, names = MemoryStore(), list[list[str]]()
    carol = letta.has_agent("Carol")

    def another_turn(_: float) -> None:
        names.append(new_bridge(letta, store=store).sync(carol, third))

    assert new_bridge(letta, another_turn, store).sync(bob, OTHER_READ) == ["read_file"]
    assert names == [[second_name(third)]]
    assert offered(letta, carol)[second_name(third)]["description"] == "Reads a third file."


@pytest.mark.usefixtures("first")
def test_a_stub_that_is_there_under_another_name_is_used(letta: SharedLetta, bob: Agent) -> None:
    note_idle(letta, "read_file", 0)
    new_bridge(letta).sync(bob, OTHER_READ)
    new_bridge(letta).sync(bob)
    note_idle(letta, "read_file", LONG_IDLE)
    bridge = new_bridge(letta)
    assert bridge.sync(bob, OTHER_READ) == [second_name(OTHER_READ)]
    assert "delete_tool" not in bridge.counts


@pytest.mark.usefixtures("first")
def test_a_turn_goes_on_with_another_name_if_the_agents_cannot_be_read(
    letta: SharedLetta, bob: Agent, caplog: pytest.LogCaptureFixture
) -> None:
    letta.fails(errors.LettaTimeout("The list of agents takes too long."), at="whole_agents")
    assert new_bridge(letta).sync(bob, OTHER_READ) == [second_name(OTHER_READ)]
    assert "idle stubs keep their names: The list of agents takes too long." in caplog.text
