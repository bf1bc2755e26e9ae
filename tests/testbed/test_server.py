"""Tests of starting, stopping and restarting servers, with a stand-in for Letta."""

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from testbed.cache import REPOSITORY, Cache
from testbed.errors import NotOwned, StartFailed, UnknownVersion
from testbed.network import health
from testbed.server import Server, running, running_all
from testbed.slots import Slot
from testbed.up import bring_down, bring_up
from tests.fake_letta import DYING, cache_with, install_fake
from tests.waiting import until

pytestmark = pytest.mark.servers

VERSION = "0.11.7"
OTHER = "0.8.17"

# A shell may start a background process with SIGINT ignored, and so would this owner.
OWNER = """
import signal, sys, time
from pathlib import Path
from testbed.cache import Cache
from testbed.server import running
signal.signal(signal.SIGINT, signal.default_int_handler)
with running(sys.argv[1], cache=Cache(Path(sys.argv[2]))) as server:
    print(server.base_url, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return cache_with(tmp_path, VERSION, OTHER)


def start_environment(server: Server) -> dict[str, Any]:
    """Returns the environment and the arguments that the server was started with."""
    environment: dict[str, Any] = json.loads((server.slot.home / "environment.json").read_text())
    return environment


def test_a_server_answers_within_the_block_and_has_ended_after_it(cache: Cache) -> None:
    with running(VERSION, cache=cache) as server:
        assert health(server.base_url) == VERSION
    assert health(server.base_url) is None
    assert not server.slot.is_taken()


def test_each_step_is_reported(cache: Cache) -> None:
    lines: list[str] = []
    with running(VERSION, cache=cache, progress=lines.append) as server:
        assert lines[0] == f"starting Letta {VERSION}…"
        assert lines[1].startswith(f"Letta {VERSION} is ready after ")
        assert lines[1].endswith(server.base_url)


def test_a_server_has_the_given_model_and_its_own_home(cache: Cache) -> None:
    with running(VERSION, cache=cache, model_url="http://127.0.0.1:5/v1", model_key="sk-1") as server:
        environment = start_environment(server)
    assert environment["OPENAI_BASE_URL"] == environment["OPENAI_API_BASE"] == "http://127.0.0.1:5/v1"
    assert environment["OPENAI_API_KEY"] == "sk-1"
    assert environment["HOME"] == str(server.slot.home)
    assert "--secure" not in environment["arguments"]


def test_the_callers_settings_do_not_reach_the_server(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LETTA_PG_URI", "postgresql://elsewhere/production")
    monkeypatch.setenv("HTTP_PROXY", "http://proxy:3128")
    with running(VERSION, cache=cache) as server:
        assert not {"LETTA_PG_URI", "HTTP_PROXY"} & start_environment(server).keys()


def test_a_password_is_set_and_not_readable_by_other_users(cache: Cache) -> None:
    with running(VERSION, cache=cache, secure_password="open sesame") as server:
        assert "--secure" in start_environment(server)["arguments"]
        assert start_environment(server)["LETTA_SERVER_PASSWORD"] == "open sesame"
        assert stat.S_IMODE((server.slot.folder / "server.json").stat().st_mode) == 0o600


def test_a_restart_keeps_the_address_and_the_data(cache: Cache) -> None:
    with running(VERSION, cache=cache) as server:
        address = server.base_url
        (server.slot.home / "agents").write_text("Ada")
        server.restart()
        assert server.base_url == address
        assert health(address) == VERSION
        assert (server.slot.home / "agents").read_text() == "Ada"


def test_a_killed_server_does_not_answer_until_it_is_restarted(cache: Cache) -> None:
    with running(VERSION, cache=cache) as server:
        server.kill()
        assert not server.is_healthy()
        assert server.slot.read().pid == 0
        server.restart()
        assert server.is_healthy()


def test_two_servers_of_one_version_share_nothing(cache: Cache) -> None:
    with running(VERSION, cache=cache) as one, running(VERSION, cache=cache) as two:
        assert one.base_url != two.base_url
        assert one.slot.home != two.slot.home
        assert one.is_healthy()
        assert two.is_healthy()


def test_a_server_without_a_slot_starts_without_data(cache: Cache) -> None:
    with running(VERSION, cache=cache) as server:
        (server.slot.home / "agents").write_text("Ada")
    with running(VERSION, cache=cache) as again:
        assert again.slot == server.slot
        assert not (again.slot.home / "agents").exists()


def test_a_named_slot_keeps_its_data_and_its_port(cache: Cache) -> None:
    with running(VERSION, cache=cache, slot="demo") as server:
        (server.slot.home / "agents").write_text("Ada")
    with running(VERSION, cache=cache, slot="demo") as again:
        assert (again.slot.home / "agents").read_text() == "Ada"
        assert again.base_url == server.base_url


def test_a_named_slot_is_used_by_one_server_at_a_time(cache: Cache) -> None:
    with (
        running(VERSION, cache=cache, slot="demo"),
        pytest.raises(StartFailed, match="is already running"),
        running(VERSION, cache=cache, slot="demo"),
    ):
        pytest.fail("a second server was started on the same data")


@pytest.mark.parametrize("name", ["", "a-b", "../up", "Demo", "x" * 21])
def test_a_name_that_no_database_can_have_is_refused(cache: Cache, name: str) -> None:
    with pytest.raises(ValueError, match="a slot's name"):
        Slot(cache, VERSION, name)


def test_a_server_that_ends_during_its_start_is_reported_with_its_log(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    install_fake(cache, VERSION, DYING)
    with pytest.raises(StartFailed) as failure, running(VERSION, cache=cache):
        pytest.fail("a dead server was taken for a running one")
    sentence, *log = str(failure.value).splitlines()
    assert sentence.startswith(f"Letta {VERSION} ended with exit code 7 while it started; its log is {tmp_path}")
    assert [line.strip() for line in log] == ["the disk is full"]
    assert not Slot(cache, VERSION, "1").is_taken()


def test_a_server_of_another_version_does_not_count_as_ready(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("testbed.owned.READY_SECONDS", 1.0)
    (cache.letta(OTHER) / "package" / "letta" / "main.py").write_text(
        (cache.letta(VERSION) / "package" / "letta" / "main.py").read_text()
    )
    with pytest.raises(StartFailed, match=r"Letta 0\.8\.17 was not ready within 1 s"), running(OTHER, cache=cache):
        pytest.fail("a server of another version was taken for ours")


def test_several_servers_run_at_once(cache: Cache) -> None:
    with running_all([VERSION, OTHER, VERSION], cache=cache) as servers:
        assert {version: health(server.base_url) for version, server in servers.items()} == {
            VERSION: VERSION,
            OTHER: OTHER,
        }
    assert not any(server.slot.is_taken() for server in servers.values())


def test_if_one_of_several_servers_fails_all_are_ended(cache: Cache) -> None:
    install_fake(cache, "0.6.54", DYING)
    with pytest.raises(StartFailed, match=r"0\.6\.54"), running_all([VERSION, "0.6.54"], cache=cache):
        pytest.fail("the failure of one was hidden")
    assert not Slot(cache, VERSION, "1").is_taken()


def test_an_unknown_version_is_refused_before_any_file_is_made(cache: Cache) -> None:
    with pytest.raises(UnknownVersion), running("1.2.3", cache=cache):
        pytest.fail("an unknown version was started")
    assert not (cache.state / "1.2.3").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_a_server_ends_when_its_owner_ends_in_any_way(cache: Cache, number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, VERSION, str(cache.root)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        address = owner.stdout.readline().strip()
        assert health(address) == VERSION
        owner.send_signal(number)
        owner.wait()
    until(lambda: not Slot(cache, VERSION, "1").is_taken())
    assert health(address) is None


def test_attach_uses_a_server_that_is_up_and_leaves_it_running(cache: Cache) -> None:
    up = bring_up(VERSION, cache)
    try:
        with running(VERSION, cache=cache, attach=True) as server:
            assert server.base_url == up.base_url
            with pytest.raises(NotOwned):
                server.kill()
            with pytest.raises(NotOwned):
                server.restart()
        assert up.is_healthy()
    finally:
        bring_down(cache)
    assert not up.is_healthy()


def test_attach_does_not_use_a_server_with_another_password(cache: Cache) -> None:
    up = bring_up(VERSION, cache, password="secret")
    try:
        with running(VERSION, cache=cache, attach=True) as server:
            assert server.base_url != up.base_url
    finally:
        bring_down(cache)


def test_attach_starts_a_server_if_none_is_up(cache: Cache) -> None:
    with running(VERSION, cache=cache, attach=True) as server:
        assert server.is_healthy()
    assert not server.is_healthy()


def test_a_server_that_is_up_must_be_brought_down_before_other_options_apply(cache: Cache) -> None:
    bring_up(VERSION, cache, model_url="http://127.0.0.1:5/v1")
    try:
        assert bring_up(VERSION, cache).model_url == "http://127.0.0.1:5/v1"
        with pytest.raises(StartFailed, match=rf"down {VERSION}"):
            bring_up(VERSION, cache, model_url="http://127.0.0.1:6/v1")
        with pytest.raises(StartFailed, match=rf"down {VERSION}"):
            bring_up(VERSION, cache, fresh=True)
    finally:
        bring_down(cache)


def test_a_server_can_be_brought_up_again_after_a_crash(cache: Cache) -> None:
    up = bring_up(VERSION, cache)
    os.killpg(up.state.pid, signal.SIGKILL)
    until(lambda: not up.slot.is_taken())
    try:
        assert bring_up(VERSION, cache).base_url == up.base_url
    finally:
        bring_down(cache)
