from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bridge.catalogue.access import AccessNames
from bridge.config import Settings, read_settings
from bridge.errors import StoreUnavailable
from bridge.large_offers import LargeOffers, names_of_access
from bridge.letta.gateway import Agent
from bridge.store.sqlite import LocalStore
from bridge.stubs.cache import StubCache
from bridge.turn import Message, NewInput, ToolCall, ToolSpec, Turn

ADA = Agent("agent-1", "Ada", "letta_v1_agent")
MANY = tuple(ToolSpec(f"tool_{number}", place=f"tools[{number}].function.parameters") for number in range(200))
TURN = Turn("Ada", NewInput(()), MANY)


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "store")


@pytest.fixture
def offers(store: LocalStore, settings: Settings) -> LargeOffers:
    return LargeOffers(store, StubCache(), settings)


def names(offers: LargeOffers, turn: Turn = TURN) -> set[str]:
    return {spec.name for spec in offers.reduce(turn, ADA)[0].tools}


def called(name: str) -> Message:
    return Message("assistant", tool_calls=(ToolCall("call-1", name, "{}"),))


def test_an_unchanged_offer_gives_the_same_list_again(offers: LargeOffers) -> None:
    first, access = offers.reduce(TURN, ADA)
    again, other = offers.reduce(TURN, ADA)
    assert first.tools is again.tools
    assert access is not None
    assert other is not None
    assert access.catalogue is other.catalogue


def test_a_small_offer_stays_as_it_is(offers: LargeOffers) -> None:
    small = replace(TURN, tools=MANY[:100])
    assert offers.reduce(small, ADA) == (small, None)


def test_tools_of_calls_in_the_transcript_are_given(offers: LargeOffers) -> None:
    turn = replace(TURN, transcript=(called("tool_150"), Message("user", "x"), called("tool_180")))
    assert {"tool_150", "tool_180"} <= names(offers, turn)


def test_tools_that_the_agent_called_in_earlier_turns_are_given(offers: LargeOffers, store: LocalStore) -> None:
    offers.note_calls(ADA.id, [ToolCall("1", "tool_199", "{}")], store.change)
    assert "tool_199" in names(offers)


def test_an_offer_of_which_the_agent_gets_everything_needs_no_search(
    store: LocalStore, environment: dict[str, str]
) -> None:
    settings = read_settings({**environment, "BRIDGE_TOOL_SEARCH": "5"})
    small = replace(TURN, tools=MANY[:10])
    assert LargeOffers(store, StubCache(), settings).reduce(small, ADA) == (small, None)


def test_without_the_store_the_agent_gets_the_other_tools(
    offers: LargeOffers, store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise StoreUnavailable("down")

    monkeypatch.setattr(store, "items", fail)
    assert len(names(offers)) == 18


def test_ending_tools_are_given(offers: LargeOffers) -> None:
    tools = (*MANY, ToolSpec("attempt_completion"))
    assert "attempt_completion" in names(offers, replace(TURN, tools=tools))


def test_tools_that_the_operator_adds_do_not_make_another_catalogue(offers: LargeOffers) -> None:
    """They are added to each request, in a new list."""
    first, again = (offers.reduce(replace(TURN, tools=(*MANY, ToolSpec("own"))), ADA)[1] for _ in range(2))
    assert first is not None
    assert again is not None
    assert first.catalogue is again.catalogue


def test_the_names_of_the_tools_for_the_search_are_noted_for_each_agent(
    offers: LargeOffers, store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert names_of_access(store, ADA.id) is None
    offers.reduce(TURN, ADA)
    assert names_of_access(store, ADA.id) == AccessNames("search_tools", "describe_tool", "call_tool")
    monkeypatch.setattr(store, "put", lambda *_: pytest.fail("they were noted"))
    offers.reduce(TURN, ADA)
    monkeypatch.undo()
    offers.reduce(replace(TURN, tools=(*MANY, ToolSpec("call_tool"))), ADA)
    assert names_of_access(store, ADA.id) == AccessNames("search_tools", "describe_tool", "bridge_call_tool")
