"""The stubs of refused turns are removed, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bridge import errors
from bridge.letta.gateway import Agent
from bridge.sync import refused_stubs
from bridge.sync.cleanup import GRACE, sweep_server
from bridge.sync.new_stubs import NewStubs
from bridge.sync.ownership import has_sweep_tag
from bridge.sync.refused_stubs import WAIT, RefusedStubs
from bridge.sync.registry import Registry
from bridge.turn import Stub
from tests.toolsets import Bridge, SharedLetta, new_registry, offered, second_name, stub

READ, WRITE = stub("read_file"), stub("write_file")


@pytest.fixture
def letta() -> SharedLetta:
    return SharedLetta()


@pytest.fixture
def ada(letta: SharedLetta) -> Agent:
    return letta.has_agent("Ada")


@pytest.fixture
def refused(letta: SharedLetta) -> RefusedStubs:
    return RefusedStubs(letta)


def made_by_a_turn(letta: SharedLetta, agent: Agent, *stubs: Stub, registry: Registry | None = None) -> NewStubs:
    new = NewStubs()
    (registry or new_registry(letta)).place_stubs(letta.agent(agent.id), stubs, new)
    return new


def removed(refused: RefusedStubs, during: Callable[[], object] = lambda: None, at: float = GRACE) -> list[float]:
    """Removes the stubs at once. `during` happens in each pause of `at` seconds. Returns the pauses."""
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if seconds == at:
            during()

    refused.remove(pause)
    return pauses


def test_stubs_of_a_refused_turn_are_deleted_when_a_client_had_time_to_ask_again(
    letta: SharedLetta, ada: Agent, refused: RefusedStubs
) -> None:
    letta.has_tool("mine")
    refused.add(made_by_a_turn(letta, ada, READ, WRITE))
    assert removed(refused) == [WAIT, GRACE]
    assert [tool.name for tool in letta.tools()] == ["mine"]
    assert not refused.are_waiting()


def test_stubs_that_were_there_before_the_turn_are_not_new(letta: SharedLetta, ada: Agent) -> None:
    Bridge(letta).sync(ada, READ)
    letta.edits(letta.tool("read_file"), source=f"{READ.source_code}\nimport os")
    new = made_by_a_turn(letta, letta.has_agent("Bob"), READ, WRITE)
    assert [one.stub.name for one in new.bindings] == ["write_file"]


def test_stubs_that_another_turn_of_the_worker_makes_are_new_there_only(letta: SharedLetta, ada: Agent) -> None:
    registry = new_registry(letta)
    found: list[NewStubs] = []
    letta.before_call("put_tool", lambda: found.append(made_by_a_turn(letta, ada, WRITE, registry=registry)))
    found.append(made_by_a_turn(letta, ada, READ, registry=registry))
    found.append(made_by_a_turn(letta, ada, READ, WRITE, registry=registry))
    assert [[one.stub.name for one in new.bindings] for new in found] == [["write_file"], ["read_file"], []]


def test_a_stub_that_another_turn_took_over_stays_and_is_not_touched(
    letta: SharedLetta, ada: Agent, refused: RefusedStubs
) -> None:
    refused.add(made_by_a_turn(letta, ada, READ, WRITE))
    assert Bridge(letta).sync(letta.has_agent("Bob"), READ) == ["read_file"]
    before = letta.tool("read_file")
    marked: list[bool] = []
    removed(refused, lambda: marked.append(has_sweep_tag(letta.tool("read_file"))))
    assert (letta.tool("read_file"), marked) == (before, [False])
    assert not letta.has("write_file")


@pytest.mark.parametrize("verb", ["whole_agents", "tag_tool", "delete_tool"])
def test_a_turn_that_begins_to_use_the_stub_during_the_removal_has_its_tool(
    letta: SharedLetta, ada: Agent, refused: RefusedStubs, verb: str
) -> None:
    refused.add(made_by_a_turn(letta, ada, READ))
    offers: list[list[str]] = []
    letta.before_call(verb, lambda: offers.append(Bridge(letta).sync(ada, READ)))
    removed(refused)
    assert [[*offered(letta, ada)]] == offers
    assert offered(letta, ada)[offers[0][0]]["description"] == "Reads a file."


def test_a_turn_that_comes_in_the_last_seconds_gets_a_stub_of_its_own(
    letta: SharedLetta, ada: Agent, refused: RefusedStubs
) -> None:
    refused.add(made_by_a_turn(letta, ada, READ))
    removed(refused, lambda: Bridge(letta).sync(ada, READ))
    assert [*offered(letta, ada)] == [second_name(READ)]
    assert not letta.has("read_file")


def test_tools_of_others_under_the_names_stay(letta: SharedLetta, ada: Agent, refused: RefusedStubs) -> None:
    """Somebody replaced one stub, and deleted the other and made a tool of that name."""
    refused.add(made_by_a_turn(letta, ada, READ, WRITE))
    theirs = letta.edits(letta.tool("read_file"), source="def read_file():\n    return 1\n")
    letta.delete_tool(letta.tool("write_file").id)
    mine = letta.has_tool("write_file")
    removed(refused)
    assert letta.tools() == [theirs, mine]


def test_a_stub_that_was_changed_stays(letta: SharedLetta, ada: Agent, refused: RefusedStubs) -> None:
    """Another bridge put a stub of its own under the name, as a bridge with another store can do."""
    refused.add(made_by_a_turn(letta, ada, READ))
    Bridge(letta).sync(letta.has_agent("Bob"), READ)
    other = stub("read_file", "Reads another file.")
    letta.put_tool(other, [tag.replace(READ.digest, other.digest) for tag in letta.tool("read_file").tags])
    letta.loses_agent(letta.agents_named("Bob")[0].id)
    removed(refused)
    assert letta.has("read_file")


def test_stubs_that_are_refused_during_a_removal_are_removed_by_it(
    letta: SharedLetta, ada: Agent, refused: RefusedStubs
) -> None:
    later = [WRITE]
    refused.add(made_by_a_turn(letta, ada, READ))
    pauses = removed(refused, lambda: refused.add(made_by_a_turn(letta, ada, later.pop())) if later else None)
    assert pauses == [WAIT, GRACE] * 2
    assert letta.tools() == []


@pytest.mark.parametrize("verb", ["tools_named", "whole_agents", "tag_tool", "delete_tool"])
def test_what_a_removal_that_fails_leaves_is_left_to_the_sweep(
    letta: SharedLetta, ada: Agent, refused: RefusedStubs, verb: str
) -> None:
    refused.add(made_by_a_turn(letta, ada, READ))
    letta.fails(errors.LettaUnreachable("It is down."), at=verb)
    with pytest.raises(errors.LettaUnreachable):
        removed(refused)
    assert not refused.are_waiting()
    letta.recovers()
    for now in (1_800_000_000, 1_800_090_000):
        sweep_server(letta, 86_400, 100, clock=lambda now=now: now, pause=lambda _: None)  # type: ignore[misc]
    assert letta.tools() == []


def test_only_so_many_stubs_wait_for_their_removal(
    letta: SharedLetta, ada: Agent, refused: RefusedStubs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refused_stubs, "MOST", 3)
    for part in ("a", "b"):
        refused.add(made_by_a_turn(letta, ada, *(stub(f"{part}_{number}") for number in range(2))))
    removed(refused)
    assert [tool.name for tool in letta.tools()] == ["b_1"]
