"""The catalogue of a list of tools is made once, and forgotten when others were used more."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor

import pytest

from bridge.catalogue import known_catalogues
from bridge.catalogue.catalogue import EXPECTED_SIZE
from bridge.catalogue.known_catalogues import MAX_LISTS, MAX_SIZE, KnownCatalogues
from bridge.turn import ToolSpec
from tests.catalogue.tools import many_tools, named
from tests.memory import measured, memory_held

Specs = tuple[ToolSpec, ...]


@pytest.fixture
def known() -> KnownCatalogues:
    return KnownCatalogues()


def lists(count: int, tools: int = 3) -> list[Specs]:
    return [named(*(f"list{number}_{place}" for place in range(tools))) for number in range(count)]


def test_the_same_list_has_the_same_catalogue(known: KnownCatalogues) -> None:
    one, other = lists(2)
    assert known.catalogue(one) is known.catalogue(one)
    assert known.catalogue(one) is not known.catalogue(other)
    assert known.catalogue(one).specs is one


def test_an_equal_list_is_another_one(known: KnownCatalogues) -> None:
    one, equal = lists(1)[0], lists(1)[0]
    assert one == equal
    assert known.catalogue(one) is not known.catalogue(equal)


def test_a_list_that_was_forgotten_is_not_taken_for_a_new_one(known: KnownCatalogues) -> None:
    for number in range(200):
        specs = named(f"tool_{number}")
        assert known.catalogue(specs).specs is specs
        del specs
        gc.collect(0)


def test_the_list_that_was_not_used_for_the_longest_time_is_forgotten_first(known: KnownCatalogues) -> None:
    kept = lists(MAX_LISTS)
    catalogues = [known.catalogue(specs) for specs in kept]
    known.catalogue(kept[0])
    more = lists(1)[0]
    known.catalogue(more)
    assert known.catalogue(kept[0]) is catalogues[0]
    assert known.catalogue(kept[2]) is catalogues[2]
    assert known.catalogue(kept[1]) is not catalogues[1]


def test_lists_are_forgotten_when_together_they_are_too_large(known: KnownCatalogues) -> None:
    count = MAX_SIZE // EXPECTED_SIZE // 2 - 100
    kept = lists(3, count)
    catalogues = [known.catalogue(specs) for specs in kept]
    assert known.catalogue(kept[2]) is catalogues[2]
    assert known.catalogue(kept[1]) is catalogues[1]
    assert known.catalogue(kept[0]) is not catalogues[0]


def test_a_list_that_is_too_large_alone_is_not_remembered_and_pushes_out_no_other(known: KnownCatalogues) -> None:
    small, large = lists(2)[0], lists(1, MAX_SIZE // EXPECTED_SIZE + 1)[0]
    catalogue = known.catalogue(small)
    assert known.catalogue(large) is not known.catalogue(large)
    assert known.catalogue(small) is catalogue


def test_the_size_after_a_search_counts(known: KnownCatalogues, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = many_tools(), many_tools()
    monkeypatch.setattr(known_catalogues, "MAX_SIZE", 2 * 500 * EXPECTED_SIZE)
    catalogue = known.catalogue(one)
    catalogue.search("issue")
    assert catalogue.size != 500 * EXPECTED_SIZE
    monkeypatch.setattr(known_catalogues, "MAX_SIZE", catalogue.size + 500 * EXPECTED_SIZE - 1)
    known.catalogue(other)
    assert known.catalogue(one) is not catalogue


def test_many_threads_get_the_same_catalogue(known: KnownCatalogues) -> None:
    kept = lists(4)
    with ThreadPoolExecutor(8) as pool:
        found = [*pool.map(known.catalogue, kept * 100)]
    assert len({id(catalogue) for catalogue in found}) == 4


def test_the_memory_is_bounded(known: KnownCatalogues) -> None:
    sent = [many_tools(copies=4, size=600) for _ in range(MAX_LISTS + 4)]
    known.catalogue(sent[0]).search("warm upp")

    def remember() -> int:
        for specs in sent:
            catalogue = known.catalogue(specs)
            catalogue.search("creat an isue")
            assert catalogue.size < 6_000_000
            del catalogue
        return memory_held()

    assert 0.3 * MAX_SIZE < measured(remember) < 1.2 * MAX_SIZE


def test_tools_that_never_come_again_as_this_list_are_not_remembered() -> None:
    known, specs = KnownCatalogues(), (ToolSpec("a"),)
    assert known.catalogue(specs, comes_again=False) is not known.catalogue(specs, comes_again=False)
    assert not known._catalogues
