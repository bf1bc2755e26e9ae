"""Names of tools that one request reserves, as other workers in front of the same store see them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bridge.errors import StoreUnavailable
from bridge.letta.identity import ServerIdentity
from bridge.store.port import Store
from bridge.sync.reserved_names import ReservedNames
from tests.fakes import FakeGateway
from tests.stores import KINDS, FailingStore, shared_store


@pytest.fixture(params=KINDS)
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Store]]:
    with shared_store(request.param, tmp_path) as open_one:
        yield open_one


def new_letta() -> FakeGateway:
    letta = FakeGateway()
    letta.has_tool("send_message", "letta_core")
    return letta


def names(store: Store, letta: FakeGateway) -> ReservedNames:
    return ReservedNames(store, ServerIdentity(letta))


def test_a_name_is_reserved_for_one_stub_until_its_request_has_put_it(open_store: Callable[[], Store]) -> None:
    letta = new_letta()
    ours, theirs = names(open_store(), letta), names(open_store(), letta)
    with ours.reservation() as first:
        assert first.add({"read": "digest-1", "write": "digest-2"}) == set()
        assert first.add({"read": "digest-1"}) == set()
        with theirs.reservation() as second:
            assert second.add({"read": "digest-3", "write": "digest-2", "edit": "digest-4"}) == {"read"}
        with theirs.reservation() as third:
            assert third.add({"write": "digest-5"}) == {"write"}
    with theirs.reservation() as second:
        assert second.add({"read": "digest-3"}) == set()


def test_the_same_name_on_two_lettas_is_two_names(open_store: Callable[[], Store]) -> None:
    ours, theirs = names(open_store(), new_letta()), names(open_store(), new_letta())
    with ours.reservation() as first, theirs.reservation() as second:
        assert first.add({"read": "digest-1"}) == second.add({"read": "digest-2"}) == set()


def test_a_store_that_fails_at_the_end_fails_no_turn(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with shared_store("local", tmp_path) as open_one:
        failing = FailingStore(open_one(), "remove")
        with names(failing, new_letta()).reservation() as reservation:
            reservation.add({"read": "digest-1"})
            failing.fault = StoreUnavailable("The disk is full.")
    assert "The disk is full." in caplog.text
