"""Real Letta servers and a real PostgreSQL, in a cache of their own that shares what is installed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from testbed.agents import create_agent, delete_agent
from testbed.cache import REPOSITORY, Cache, is_locked
from testbed.errors import DatabaseFailed
from testbed.install import install, postgres_binaries
from testbed.network import health, send
from testbed.postgres import cluster, data_folder, keeper_lock, make_database, state_file
from testbed.server import NO_MODEL, running
from testbed.standing import bring_down, bring_up
from testbed.versions import VERSIONS, agent_types

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

# The fastest to start of those on PostgreSQL.
VERSION = "0.12.1"

OWNER = """
import sys, time
from testbed.server import running
with running(sys.argv[1]) as server:
    print(server.base_url, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Cache]:
    """A cache with the shared installations and a PostgreSQL and servers of its own."""
    shared, own = Cache.default(), Cache(tmp_path)
    postgres_binaries(shared)
    own.postgres.mkdir()
    for folder in ("letta", "uv", "encodings", "tools", "python", "postgres/pgserver"):
        (own.root / folder).symlink_to(shared.root / folder)
    yield own
    bring_down(own)
    assert not is_locked(keeper_lock(own))


def becomes_true(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False


def names(base_url: str, password: str | None = None) -> list[str]:
    """The agents of a server."""
    return [agent["name"] for agent in send("GET", f"{base_url}/v1/agents/", password=password).json()]


@pytest.mark.parametrize("version", VERSIONS)
def test_agents_of_every_type_can_be_made_and_removed(version: str) -> None:
    with running(version) as server:
        assert names(server.base_url) == []
        for agent_type in agent_types(version):
            agent = create_agent(
                server.base_url,
                name=agent_type,
                agent_type=agent_type,
                model_url=NO_MODEL,
                memory_blocks=[{"label": "human", "value": "Ada"}],
            )
            assert agent["agent_type"] == agent_type
            assert len(agent["message_ids"]) == 1
            assert names(server.base_url) == [agent_type]
            delete_agent(server.base_url, agent["id"])
        assert names(server.base_url) == []


def test_agents_outlive_a_crash_and_a_restart_at_the_same_address(cache: Cache) -> None:
    with running(VERSION, cache=cache) as server:
        address = server.base_url
        create_agent(address, name="Ada", agent_type="letta_v1_agent", model_url=NO_MODEL)
        server.kill()
        assert health(address) is None
        server.restart()
        assert names(address) == ["Ada"]


def test_a_server_with_a_password_refuses_whoever_does_not_know_it(cache: Cache) -> None:
    with running(VERSION, cache=cache, secure_password="open sesame") as server:
        assert send("GET", f"{server.base_url}/v1/agents/").status_code == 401
        assert names(server.base_url, "open sesame") == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_server_and_postgresql_end_with_their_owner_however_that_ends(cache: Cache, number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, VERSION],
        cwd=REPOSITORY,
        env=os.environ | {"TESTBED_CACHE": str(cache.root)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        address = owner.stdout.readline().strip()
        assert health(address) == VERSION
        assert is_locked(keeper_lock(cache))
        owner.send_signal(number)
        owner.wait()
    assert becomes_true(lambda: health(address) is None)
    assert becomes_true(lambda: not is_locked(keeper_lock(cache)))
    assert not (data_folder(cache) / "postmaster.pid").exists()


def test_a_server_that_is_up_keeps_its_agents_until_it_is_up_again(cache: Cache) -> None:
    first = bring_up(VERSION, cache)
    create_agent(first.base_url, name="Ada", agent_type="memgpt_v2_agent", model_url=NO_MODEL)
    bring_down(cache)
    assert not is_locked(keeper_lock(cache))
    second = bring_up(VERSION, cache)
    assert second.base_url == first.base_url
    assert names(second.base_url) == ["Ada"]
    bring_down(cache)
    assert names(bring_up(VERSION, cache, fresh=True).base_url) == []


def test_postgresql_serves_several_and_ends_with_the_last(cache: Cache) -> None:
    with cluster(cache) as one:
        with cluster(cache) as two:
            assert one.port == two.port
        assert one.sql("select 1") == ["1"]
    assert becomes_true(lambda: not is_locked(keeper_lock(cache)))


def test_postgresql_asks_for_its_password(cache: Cache) -> None:
    with cluster(cache) as own:
        other = type(own)(own.cache, own.binaries, own.port, "wrong", own.lease)
        with pytest.raises(DatabaseFailed, match="password authentication failed"):
            other.sql("select 1")


def test_postgresql_is_started_anew_after_its_keeper_was_killed(cache: Cache) -> None:
    with cluster(cache):
        keeper = int(state_file(cache).read_text().split('"keeper": ')[1].rstrip("}"))
        os.kill(keeper, signal.SIGKILL)
        assert becomes_true(lambda: not is_locked(keeper_lock(cache)))
        with cluster(cache) as again:
            assert again.sql("select 1") == ["1"]


def test_a_cluster_that_does_not_start_is_reported_with_its_log(cache: Cache) -> None:
    with cluster(cache):
        pass
    assert becomes_true(lambda: not is_locked(keeper_lock(cache)))
    (data_folder(cache) / "postgresql.conf").write_text("max_connections = many\n")
    with pytest.raises(DatabaseFailed, match=r"(?s)PostgreSQL did not start.*postgresql\.conf"), cluster(cache):
        pass


def test_a_database_is_made_once_and_anew_when_wanted(cache: Cache) -> None:
    installation = install(VERSION, cache)
    with cluster(cache) as own:
        lines: list[str] = []
        name = make_database(own, installation, "mine", lines.append)
        own.sql("create table notes ()", name)
        assert make_database(own, installation, "mine", lines.append) == name
        assert own.sql("select count(*) from notes", name) == ["0"]
        make_database(own, installation, "mine", lines.append, fresh=True)
        assert own.sql("select to_regclass('notes') is null, to_regclass('messages') is null", name) == ["t|f"]
        assert lines == [f"making the tables of Letta {VERSION}…"]
