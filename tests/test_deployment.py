"""The files for platforms name settings and paths that exist."""

from __future__ import annotations

import configparser
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from bridge.config import read_settings, variable_rows
from bridge.store.redis import RedisServer, RedisStore
from testbed.redis import Redis

ROOT = Path(__file__).parent.parent
SETTINGS = {row["variable"] for row in variable_rows()}
REQUIRED = {row["variable"] for row in variable_rows() if row["default"] == "(required)"}
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
PYTHON = (3, 11)


def test_herokus_description_asks_for_settings_that_exist() -> None:
    asked = json.loads((ROOT / "app.json").read_text())["env"]
    assert asked.keys() <= SETTINGS
    assert {name for name, about in asked.items() if about.get("required")} == REQUIRED
    assert all(about["description"] for about in asked.values())


def test_the_values_that_heroku_makes_and_sets_are_enough_to_start() -> None:
    """A generated secret has 64 hex digits. It is a plain key, not the hash of one."""
    asked = json.loads((ROOT / "app.json").read_text())["env"]
    made = {name: "0f" * 32 for name, about in asked.items() if about.get("generator") == "secret"}
    set_ = {name: about["value"] for name, about in asked.items() if "value" in about}
    platform = {"DYNO": "web.1", "PORT": "12345", "WEB_CONCURRENCY": "2"}
    settings = read_settings({**made, **set_, **platform, "LETTA_BASE_URL": "https://letta.example.com"})
    assert [key.name for key in settings.api_keys] == ["key-1"]
    assert (settings.port, settings.workers, settings.proxies) == (12345, 2, 1)


def test_the_compose_file_gives_the_bridge_settings_that_exist() -> None:
    assert COMPOSE["services"]["bridge"]["environment"].keys() <= SETTINGS


def test_every_variable_of_the_compose_file_is_in_the_example_of_its_environment() -> None:
    used = set(re.findall(r"\$\{([A-Z_]+)", (ROOT / "compose.yaml").read_text()))
    example = (ROOT / "docs" / "compose.env.example").read_text()
    assert used == set(re.findall(r"^([A-Z_]+)=", example, re.M))


def test_the_example_has_no_secret_in_it() -> None:
    lines = (ROOT / "docs" / "compose.env.example").read_text().splitlines()
    assert not [line for line in lines if re.match(r"[A-Z_]*(KEY|KEYS|PASSWORD|TOKEN)=.", line)]


@pytest.mark.parametrize("name", sorted(COMPOSE["services"]))
def test_every_service_has_a_health_check_a_restart_policy_and_known_volumes(name: str) -> None:
    service = COMPOSE["services"][name]
    assert service["restart"] == "unless-stopped"
    assert "healthcheck" in service or "HEALTHCHECK" in (ROOT / "Dockerfile").read_text()
    for other, wanted in service.get("depends_on", {}).items():
        assert other in COMPOSE["services"]
        assert wanted == {"condition": "service_healthy"}
    for volume in service.get("volumes", ()):
        source = volume.partition(":")[0]
        assert source in COMPOSE["volumes"] or (ROOT / source).is_file()


@pytest.mark.servers
def test_the_redis_of_the_compose_file_keeps_its_data_over_a_restart() -> None:
    service = COMPOSE["services"]["redis"]
    assert "redis:/data" in service["volumes"]  # where the image's server writes its files
    program, *options = service["command"]
    assert program == "redis-server"
    with Redis(options=options) as server:
        RedisStore(RedisServer(server.url)).put("turn", "of yesterday", 60)
        server.stop()
        server.start()
        assert RedisStore(RedisServer(server.url)).get("turn") == "of yesterday"


def test_postgres_is_not_healthy_while_its_image_still_makes_the_database() -> None:
    """Until then a server answers at the socket only and is stopped again: a Letta that starts then would lose it."""
    assert "-h 127.0.0.1" in " ".join(COMPOSE["services"]["postgres"]["healthcheck"]["test"])


def test_only_the_bridge_can_be_reached_and_only_from_the_same_machine() -> None:
    published = {name: service["ports"] for name, service in COMPOSE["services"].items() if "ports" in service}
    assert published == {"bridge": ["${BRIDGE_PUBLISH:-127.0.0.1:8080}:8080"]}


def test_the_image_has_all_files_of_the_service() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    copied = {name for line in lines if line.startswith("COPY") for name in line.split()[1:-1]}
    assert {"app.py", "gunicorn.conf.py", "letta-bridge", "bridge", "templates", "requirements.txt"} <= copied
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert let_in == copied
    assert all((ROOT / name).exists() for name in copied)
    assert "USER 10001" in lines


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt", "bench/requirements.txt"])
def test_every_requirement_has_a_version_and_hashes(name: str) -> None:
    text = (ROOT / name).read_text().replace("\\\n", "")
    lines = [line for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]
    assert lines
    assert [line for line in lines if not re.match(r"[\w.-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", line)] == []


@pytest.mark.parametrize("name", ["Makefile", "Dockerfile", "docs/deploy.md"])
def test_packages_are_installed_only_if_their_hashes_are_right(name: str) -> None:
    installs = [line for line in (ROOT / name).read_text().splitlines() if "pip install" in line]
    assert installs
    assert [line for line in installs if "--require-hashes" not in line] == []


def test_all_platforms_run_the_python_that_the_tests_run() -> None:
    version = ".".join(map(str, PYTHON))
    assert (ROOT / ".python-version").read_text().strip() == version
    assert f"FROM python:{version}-slim" in (ROOT / "Dockerfile").read_text()


def test_every_platform_starts_what_the_procfile_starts() -> None:
    (web,) = [line for line in (ROOT / "Procfile").read_text().splitlines() if line.startswith("web: ")]
    command = web.removeprefix("web: ")
    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(ROOT / "docs" / "letta-tool-bridge.service")
    assert unit["Service"]["ExecStart"].endswith(f"/bin/{command}")
    last = (ROOT / "Dockerfile").read_text().strip().splitlines()[-1]
    assert json.loads(last.removeprefix("CMD ")) == ["gunicorn", "app:create_app()"]


def test_every_platform_waits_for_the_drain() -> None:
    drain = next(float(row["default"]) for row in variable_rows() if row["variable"] == "BRIDGE_DRAIN")
    assert COMPOSE["services"]["bridge"]["stop_grace_period"] == f"{drain + 10:.0f}s"
    assert f"TimeoutStopSec={drain + 10:.0f}" in (ROOT / "docs" / "letta-tool-bridge.service").read_text()


@pytest.mark.parametrize("page", ["deploy.md", "scale.md", "watch.md"])
def test_the_pages_for_operators_name_settings_that_exist(page: str) -> None:
    named = set(re.findall(r"\bBRIDGE_[A-Z_]+\b", (ROOT / "docs" / page).read_text()))
    assert named
    assert named <= SETTINGS
