"""Real Letta servers and a real PostgreSQL in a separate cache, which shares the installations."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from testbed.agents import create_agent, delete_agent
from testbed.cache import REPOSITORY, Cache, is_locked
from testbed.errors import DatabaseFailed
from testbed.install import install, postgres_binaries
from testbed.network import health, send
from testbed.postgres import cluster, data_folder, keeper_lock, make_database, state_file
from testbed.server import NO_MODEL, running
from testbed.up import bring_down, bring_up
from tests.real.world import World

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

# The version on PostgreSQL that starts fastest.
VERSION = "0.12.1"

OWNER = """
import sys, time
from testbed.server import running
with running(sys.argv[1]) as server:
    print(server.base_url, flush=True)
    time.sleep(600)
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cache]:
    """A separate cache that links to the shared installations."""
    shared, own = Cache.default(), Cache(tmp_path_factory.mktemp("cache"))
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


def postgresql_ends(cache: Cache) -> bool:
    return becomes_true(lambda: not is_locked(keeper_lock(cache)) and not is_running(cache))


def is_running(cache: Cache) -> bool:
    return (data_folder(cache) / "postmaster.pid").exists()


def names(base_url: str, password: str | None = None) -> list[str]:
    """Lists the agents of a server."""
    return [agent["name"] for agent in send("GET", f"{base_url}/v1/agents/", password=password).json()]


def test_a_new_agent_has_only_its_system_message(world: World, agent_type: str) -> None:
    agent = world.agent(agent_type)
    state = world.letta("GET", f"/v1/agents/{agent.id}")
    assert state["agent_type"] == agent_type
    assert len(state["message_ids"]) == 1
    assert state["llm_config"]["model_endpoint"] == world.model.url
    agent.delete()
    assert world.letta("GET", "/v1/agents/", name=agent.name) == []


def test_agents_survive_a_crash_and_a_restart_at_the_same_address(cache: Cache) -> None:
    with running(VERSION, cache=cache) as server:
        address = server.base_url
        assert names(address) == []
        create_agent(address, name="Ada", agent_type="letta_v1_agent", model_url=NO_MODEL)
        server.kill()
        assert health(address) is None
        server.restart()
        assert names(address) == ["Ada"]


def test_server_and_postgresql_end_when_their_owner_is_killed(cache: Cache) -> None:
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
        assert is_running(cache)
        owner.kill()
        owner.wait()
    assert becomes_true(lambda: health(address) is None)
    assert postgresql_ends(cache)


def test_a_server_that_was_brought_up_keeps_its_address_agents_and_password(cache: Cache) -> None:
    first = bring_up(VERSION, cache, password="open sesame")
    assert send("GET", f"{first.base_url}/v1/agents/").status_code == 401
    create_agent(
        first.base_url,
        name="Ada",
        agent_type="memgpt_v2_agent",
        model_url=NO_MODEL,
        password="open sesame",
    )
    bring_down(cache)
    assert not is_running(cache)
    again = bring_up(VERSION, cache)
    assert again.base_url == first.base_url
    (agent,) = send("GET", f"{again.base_url}/v1/agents/").json()
    assert agent["name"] == "Ada"
    delete_agent(again.base_url, agent["id"])
    assert names(again.base_url) == []
    bring_down(cache)


def test_postgresql_serves_several_users_and_ends_with_the_last(cache: Cache) -> None:
    with cluster(cache) as one:
        with cluster(cache) as two:
            assert one.port == two.port
        assert one.sql("select 1") == ["1"]
    assert postgresql_ends(cache)


def test_postgresql_asks_for_its_password(cache: Cache) -> None:
    with cluster(cache) as own:
        other = type(own)(own.cache, own.binaries, own.port, "wrong", own.lease)
        with pytest.raises(DatabaseFailed, match="password authentication failed"):
            other.sql("select 1")


def test_postgresql_starts_again_after_its_keeper_was_killed(cache: Cache) -> None:
    with cluster(cache):
        os.kill(json.loads(state_file(cache).read_text())["keeper"], signal.SIGKILL)
        assert becomes_true(lambda: not is_locked(keeper_lock(cache)))
        with cluster(cache) as again:
            assert again.sql("select 1") == ["1"]


def test_a_database_is_kept_unless_a_fresh_one_is_wanted(cache: Cache) -> None:
    installation = install(VERSION, cache)
    with cluster(cache) as own:
        name = make_database(own, installation, "mine")
        own.sql("create table notes ()", name)
        assert make_database(own, installation, "mine") == name
        assert own.sql("select count(*) from notes", name) == ["0"]
        make_database(own, installation, "mine", fresh=True)
        assert own.sql("select to_regclass('notes') is null, to_regclass('messages') is null", name) == ["t|f"]


def test_a_cluster_that_does_not_start_is_reported_with_its_log(cache: Cache) -> None:
    with cluster(cache):
        pass
    assert postgresql_ends(cache)
    settings = data_folder(cache) / "postgresql.conf"
    right = settings.read_text()
    settings.write_text("max_connections = many\n")
    try:
        with pytest.raises(DatabaseFailed, match=r"(?s)PostgreSQL did not start.*postgresql\.conf"), cluster(cache):
            pytest.fail("a cluster with wrong settings was started")
    finally:
        settings.write_text(right)
