"""Tests of the table of versions."""

import pytest

from testbed.errors import UnknownVersion
from testbed.versions import RECIPES, VERSIONS, agent_types, recipe


def test_the_table_is_sorted_by_release() -> None:
    assert tuple(sorted(VERSIONS, key=lambda version: [int(part) for part in version.split(".")])) == VERSIONS
    assert [entry.released for entry in RECIPES] == sorted(entry.released for entry in RECIPES)


def test_packages_are_at_most_two_days_newer_than_the_release() -> None:
    assert recipe("0.6.54").exclude_newer == "2025-04-21T00:00:00Z"
    assert recipe("0.16.1").exclude_newer == "2025-12-20T00:00:00Z"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_version_is_pinned_and_has_the_drivers_of_both_databases(version: str) -> None:
    packages = recipe(version).packages
    assert packages[0] == f"letta[sqlite]=={version}"
    assert {"asyncpg", "aiosqlite"} <= set(packages)


def test_the_error_of_an_unknown_version_lists_the_known_ones() -> None:
    with pytest.raises(UnknownVersion, match=r"Letta 9\.9\.9 is not in .*0\.6\.54, .*0\.16\.8"):
        recipe("9.9.9")


def test_versions_from_0_12_have_the_newest_agent_type_and_need_postgresql() -> None:
    newest = [version for version in VERSIONS if "letta_v1_agent" in agent_types(version)]
    assert newest == [entry.version for entry in RECIPES if entry.database == "postgresql"]
    assert newest[0] == "0.12.1"


def test_every_version_has_agents_of_the_oldest_type() -> None:
    assert all("memgpt_agent" in agent_types(version) for version in VERSIONS)
