from __future__ import annotations

import weakref
from pathlib import Path
from typing import Any

import pytest

from bridge.errors import StoreUnavailable, UnknownResponse
from bridge.journal.kept import LONGEST, MOST, KeptResponses
from bridge.store.port import Store
from bridge.store.sqlite import LocalStore
from tests.stores import FailingStore


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return LocalStore(tmp_path / "shared.db")


def test_a_response_is_read_by_the_client_that_asked_for_it(store: Store) -> None:
    kept = KeptResponses(store)
    kept.keeper("roo", ["Hi"])({"id": "resp_1"})
    found = kept.read("roo", "resp_1")
    assert (found.response, found.items) == ({"id": "resp_1"}, ["Hi"])
    for client in ("", "codex", "roo:resp_1"):
        with pytest.raises(UnknownResponse):
            kept.read(client, "resp_1")
        with pytest.raises(UnknownResponse):
            kept.delete(client, "resp_1")


def test_the_newest_of_a_client_are_kept(store: Store) -> None:
    kept = KeptResponses(store)
    kept.keeper("codex", [])({"id": "resp_0"})
    for number in range(MOST + 2):
        kept.keeper("roo", [])({"id": f"resp_{number}"})
    for gone in ("resp_0", "resp_1"):
        with pytest.raises(UnknownResponse):
            kept.read("roo", gone)
    assert kept.read("roo", "resp_2").response == {"id": "resp_2"}
    assert kept.read("codex", "resp_0").response == {"id": "resp_0"}


def test_a_very_long_response_is_not_kept(store: Store) -> None:
    kept = KeptResponses(store)
    kept.keeper("roo", [])({"id": "resp_1", "text": "x" * LONGEST})
    kept.keeper("roo", ["x" * LONGEST])({"id": "resp_1"})
    with pytest.raises(UnknownResponse):
        kept.read("roo", "resp_1")


@pytest.mark.parametrize(
    "items", [["x" * (LONGEST + 1)], ["x"] * (LONGEST + 1), [{"x" * LONGEST: 1}], [[{"a": ["x" * LONGEST]}]]]
)
def test_an_input_that_is_too_long_is_not_held_until_the_response_is_there(store: Store, items: list[Any]) -> None:
    class Input(list[Any]):
        """A list that can be referred to weakly."""

    given = Input(items)
    held = weakref.ref(given)
    kept = KeptResponses(store)
    keep = kept.keeper("roo", given)
    del given
    assert held() is None
    keep({"id": "resp_1"})
    with pytest.raises(UnknownResponse):
        kept.read("roo", "resp_1")


def test_a_response_is_kept_with_its_input(store: Store) -> None:
    kept = KeptResponses(store)
    kept.keeper("roo", [{"role": "user"}, 5, None, "x" * (LONGEST // 2)])({"id": "resp_1"})
    assert kept.read("roo", "resp_1").items[:3] == [{"role": "user"}, 5, None]


def test_an_input_is_held_as_a_text_until_the_response_is_finished(store: Store) -> None:
    class Item(dict[str, str]):
        """Can be watched."""

    held = []
    for length in (1, LONGEST):
        item = Item({"content": "x" * length})
        watched = weakref.ref(item)
        held.append(KeptResponses(store).keeper("roo", [item]))
        del item
        assert watched() is None


def test_a_store_that_fails_does_not_keep_the_response_from_its_client(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    KeptResponses(FailingStore(store, fault=StoreUnavailable("gone"))).keeper("roo", [])({"id": "resp_1"})
    assert "gone" in caplog.text
