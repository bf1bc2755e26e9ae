"""The only place where the parts meet."""

from __future__ import annotations

import os
from pathlib import Path

from flask import Flask, Response, request

from bridge.cli import commands
from bridge.config import Settings, environment_with_dotenv, read_settings
from bridge.conversation import Conversation
from bridge.coordination.allowance import Allowance
from bridge.coordination.locks import AgentLocks
from bridge.coordination.once import Background, OnceAnInterval
from bridge.directory import Directory
from bridge.errors import SettingsError
from bridge.letta.client import LettaServer
from bridge.letta.gateway import Gateway
from bridge.sync.cleanup import sweep
from bridge.sync.registry import Registry
from bridge.web.account import log_turn
from bridge.web.admin import admin
from bridge.web.admission import Admission
from bridge.web.closing import EXTENSION, Closing
from bridge.web.cors import allow_origins
from bridge.web.faults import answer_faults
from bridge.web.health import Readiness, health
from bridge.web.metrics import Metrics, metrics_page
from bridge.web.openai_api import openai_api
from bridge.web.pages import pages
from bridge.web.security import harden
from bridge.web.tracing import follow_requests


def create_app(settings: Settings | None = None, gateway: Gateway | None = None) -> Flask:
    """The service. Without arguments the settings come from the environment and the gateway leads to their Letta."""
    settings = settings or read_settings(environment_with_dotenv(os.environ, Path.cwd()))
    metrics = Metrics(os.environ.get("PROMETHEUS_MULTIPROC_DIR", ""))
    gateway = gateway or LettaServer(settings, observe=metrics.letta_called)
    directory = Directory(gateway)
    locks = AgentLocks(_folder(settings.data_dir / "locks"), settings.wait)
    registry = Registry(gateway, lambda: locks.hold("names-of-tools"))
    conversation = Conversation(gateway, directory, registry, locks, settings)
    admission = Admission(settings, directory, Allowance(settings.data_dir / "keys"))
    app = Flask(__name__)
    app.config["MAX_CONTENT_LENGTH"] = settings.max_body
    app.extensions[EXTENSION] = Closing(settings.drain)
    app.url_map.strict_slashes = False
    follow_requests(app, metrics)
    app.json.sort_keys = False  # type: ignore[attr-defined]
    app.register_blueprint(openai_api(settings, directory, conversation, admission, [log_turn, metrics.turn_ended]))
    app.register_blueprint(admin(settings, gateway))
    app.register_blueprint(health(Readiness({"letta": gateway.check})))
    app.register_blueprint(metrics_page(metrics, settings.metrics_token, open_to_all=settings.allow_anonymous))
    app.register_blueprint(pages())
    allow_origins(app, settings.cors_origins)
    app.cli.add_command(commands(settings, gateway))
    answer_faults(app)
    harden(app, settings.trusted_hosts, settings.proxies)
    _sweep_after_turns(app, settings, gateway)
    return app


def _sweep_after_turns(app: Flask, settings: Settings, gateway: Gateway) -> None:
    due = OnceAnInterval(settings.data_dir / "last-sweep", settings.sweep_interval)
    sweeps = Background("sweep", due.is_due, lambda: sweep(gateway, settings.stub_idle))

    @app.after_request
    def sweep_when_sent(response: Response) -> Response:
        if request.endpoint == "openai.chat_completions":
            response.call_on_close(sweeps.start_if_due)
        return response


def _folder(path: Path) -> Path:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise SettingsError(f"BRIDGE_DATA_DIR: {path} can't be made ({fault.strerror})") from None
    return path
