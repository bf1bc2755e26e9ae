from __future__ import annotations

import gc
import hashlib
import logging
import runpy
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from gunicorn.util import parse_address  # type: ignore[import-untyped] # it has no types

from app import create_app
from bridge.config import Settings
from bridge.errors import InvalidRequest, SettingsError
from bridge.letta.client import LettaServer
from bridge.sync import cleanup, refused_stubs
from tests.actors import Chat
from tests.fakes import FakeGateway
from tests.waiting import until

ROOT = Path(__file__).parent.parent


@pytest.fixture
def at_home(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Puts the settings into the environment, as at the start of the service, and uses an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DYNO", raising=False)
    for name in ("PORT", "WEB_CONCURRENCY", "LETTA_API_KEY", "BRIDGE_API_KEYS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return tmp_path


def gunicorn_settings() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "gunicorn.conf.py"))


@pytest.mark.usefixtures("at_home")
def test_the_service_is_made_from_the_environment_without_a_call_to_letta(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LettaServer, "features", lambda _: pytest.fail("called"))
    routes = {rule.rule for rule in create_app().url_map.iter_rules()}
    assert {"/v1/models", "/v1/chat/completions", "/admin/", "/healthz", "/readyz"} <= routes


def test_a_dotenv_file_is_read_in_development(at_home: Path) -> None:
    (at_home / ".env").write_text("BRIDGE_DRAIN=7\n")
    assert create_app().extensions["parts"].settings.drain == 7


@pytest.fixture
def few_tools(environment: dict[str, str], parameters: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes two clients with keys, of 5 tools in a request, so 10 idle stubs of a key are left; sweeps do not pause."""
    hashes = {name: hashlib.sha256(f"the-key-of-{name}".encode()).hexdigest() for name in ("alice", "bob")}
    environment["BRIDGE_ALLOW_ANONYMOUS"] = "0"
    environment["BRIDGE_API_KEYS"] = ",".join(f"{name}:{digest}" for name, digest in hashes.items())
    parameters["most_attached"] = 5
    monkeypatch.setattr(cleanup, "GRACE", 0.0)


@pytest.mark.usefixtures("few_tools")
def test_a_key_that_brings_new_tools_again_and_again_leaves_few_stubs(chat: Chat, letta: FakeGateway) -> None:
    def ask(name: str, part: str) -> None:
        functions = [{"name": f"{part}_{number}", "parameters": {"type": "object"}} for number in range(5)]
        tools = [{"type": "function", "function": function} for function in functions]
        assert chat.ask(tools=tools, headers={"Authorization": f"Bearer the-key-of-{name}"}).status == 200
        most.append(len(letta.tools()))
        until(lambda: not any(thread.name == "sweep" for thread in threading.enumerate()))

    most: list[int] = []
    ask("bob", "quiet")
    for number in range(40):
        ask("alice", f"flood_{number}")
    assert max(most) <= 5 + 10 + 10 + 5 + 5  # of Bob, left by a sweep, made since, of the last two requests
    assert sum(tool.name.startswith("quiet") for tool in letta.tools()) == 5


def test_a_request_that_is_refused_leaves_no_stub(
    chat: Chat, letta: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refused_stubs, "WAIT", 0.0)
    monkeypatch.setattr(cleanup, "GRACE", 0.0)
    mine = letta.has_tool("mine")
    letta.fails(InvalidRequest("Too many.", param="tools", code="too_many_tools"), at="send_messages")
    tools = [{"type": "function", "function": {"name": f"tool_{number}"}} for number in range(140)]
    for stream in (False, True):
        assert chat.ask(tools=tools, stream=stream).status == 400
        until(lambda: letta.tools() == [mine])


@pytest.mark.usefixtures("at_home")
def test_a_wrong_environment_is_reported_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORT", "x")
    monkeypatch.delenv("LETTA_BASE_URL")
    with pytest.raises(SettingsError, match=r"LETTA_BASE_URL is not set(.|\n)*PORT: 'x'"):
        create_app()
    with pytest.raises(SystemExit, match=r"can't start:\nLETTA_BASE_URL is not set(.|\n)*PORT: 'x'"):
        gunicorn_settings()


@pytest.mark.usefixtures("at_home")
@pytest.mark.parametrize("place", ["a-file", "a-file/below"])
def test_an_unusable_folder_is_reported_as_a_wrong_setting(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, place: str
) -> None:
    (tmp_path / "a-file").write_text("")
    monkeypatch.setenv("BRIDGE_DATA_DIR", place)
    with pytest.raises(SystemExit, match=r"can't start:\nBRIDGE_DATA_DIR: 'a-file.* can't be written"):
        gunicorn_settings()


def test_two_services_share_nothing(settings: Settings) -> None:
    one, other = FakeGateway(), FakeGateway()
    one.has_agent("Ada")
    assert len(create_app(settings, one).test_client().get("/v1/models").json["data"]) == 1  # type: ignore[index]
    assert create_app(settings, other).test_client().get("/v1/models").json["data"] == []  # type: ignore[index]


@pytest.mark.usefixtures("at_home")
def test_gunicorn_accepts_few_more_connections_than_its_threads_can_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRIDGE_MAX_TURNS", "70")
    found = gunicorn_settings()
    assert found["worker_class"] == "bridge.web.worker.Worker"
    assert (found["threads"], found["worker_connections"]) == (80, 320)


@pytest.mark.usefixtures("at_home")
def test_a_variable_of_an_earlier_version_causes_a_warning_at_the_start(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("BRIDGE_PING_INTERVAL", "5")
    gunicorn_settings()["on_starting"](SimpleNamespace(log=logging.getLogger("gunicorn.error")))
    assert caplog.messages == [
        "BRIDGE_PING_INTERVAL is not a setting any more and is ignored: it is always 15 seconds."
    ]


@pytest.mark.usefixtures("at_home")
def test_a_misspelt_setting_causes_a_warning_at_the_start(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("BRIDGE_METHD", "prompt")
    gunicorn_settings()["on_starting"](SimpleNamespace(log=logging.getLogger("gunicorn.error")))
    assert caplog.messages == ["BRIDGE_METHD is not a setting and is ignored; did you mean BRIDGE_METHOD?"]


@pytest.mark.usefixtures("at_home")
def test_garbage_collection_ignores_what_gunicorn_loaded_before_its_workers() -> None:
    gunicorn_settings()["when_ready"](SimpleNamespace(LISTENERS=[]))
    try:
        assert gc.get_freeze_count() > 10_000
    finally:
        gc.unfreeze()


@pytest.mark.usefixtures("at_home")
def test_gunicorn_listens_at_the_address_in_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORT", "9000")
    monkeypatch.setenv("BRIDGE_HOST", "127.0.0.1")
    monkeypatch.setenv("WEB_CONCURRENCY", "3")
    found = gunicorn_settings()
    assert (found["bind"], found["workers"]) == ("127.0.0.1:9000", 3)


@pytest.mark.usefixtures("at_home")
@pytest.mark.parametrize("host", ["::", "[::]", "::1"])
def test_gunicorn_can_listen_on_an_address_with_colons(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    monkeypatch.setenv("PORT", "9000")
    monkeypatch.setenv("BRIDGE_HOST", host)
    assert parse_address(gunicorn_settings()["bind"]) == (host.strip("[]"), 9000)


@pytest.mark.usefixtures("at_home")
def test_gunicorns_timeouts_fit_those_of_platforms() -> None:
    found = gunicorn_settings()
    assert found["keepalive"] > 90
    assert 20 < found["graceful_timeout"] < 30
    assert found["forwarded_allow_ips"] == ""
    assert found["control_socket_disable"]


def test_the_procfile_starts_this_app_with_gunicorn() -> None:
    lines = (ROOT / "Procfile").read_text().splitlines()
    assert lines == ['release: gunicorn --check-config "app:create_app()"', 'web: gunicorn "app:create_app()"']
