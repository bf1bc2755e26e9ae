"""The only place where the parts meet."""

from __future__ import annotations

import os
from pathlib import Path

from flask import Flask, Response, request

from bridge.cli.group import commands, is_command_of_flask
from bridge.config import Settings, environment_with_dotenv, read_settings
from bridge.conversation import Conversation
from bridge.coordination.activity import Activity
from bridge.coordination.journal import Journal
from bridge.coordination.once import Background, OnceAnInterval
from bridge.coordination.recorder import Recorder
from bridge.coordination.shared import shared_by_workers
from bridge.directory import Directory
from bridge.letta.client import LettaServer
from bridge.letta.gateway import Gateway
from bridge.operation.actions import Operator
from bridge.operation.parts import Parts
from bridge.operation.snapshots import Snapshots
from bridge.sync.cleanup import sweep
from bridge.sync.registry import Registry
from bridge.web.admin.site import admin
from bridge.web.cors import allow_origins
from bridge.web.faults import answer_faults
from bridge.web.health import health
from bridge.web.openai_api import openai_api
from bridge.web.pages import pages
from bridge.web.prefix import below
from bridge.web.security import harden
from bridge.web.turns import Turns


def create_app(settings: Settings | None = None, gateway: Gateway | None = None) -> Flask:
    """The service. Without arguments the settings come from the environment and the gateway leads to their Letta."""
    settings = settings or environment_settings(serving=not is_command_of_flask())
    parts = assemble(settings, gateway)
    app = Flask(__name__)
    app.extensions["parts"] = parts
    app.config["MAX_CONTENT_LENGTH"] = settings.max_body
    app.url_map.strict_slashes = False
    app.json.sort_keys = False  # type: ignore[attr-defined]
    journal = Journal(parts.store, settings.journal_keep)
    turns = Turns(settings, parts.conversation, journal, parts.recorder, app.logger)
    app.register_blueprint(openai_api(settings, parts.directory, turns))
    app.register_blueprint(admin(app, parts))
    app.register_blueprint(health(parts.gateway, parts.store))
    app.register_blueprint(pages())
    allow_origins(app, settings.cors_origins)
    app.cli.add_command(commands(lambda: settings, lambda _: parts))
    app.before_request(parts.recorder.start)
    answer_faults(app)
    harden(app)
    _sweep_after_turns(app, settings, parts.gateway)
    app.wsgi_app = below(settings.url_prefix, app.wsgi_app)  # type: ignore[method-assign,assignment]
    return app


def environment_settings(*, serving: bool) -> Settings:
    return read_settings(environment_with_dotenv(os.environ, Path.cwd()), serving=serving)


def assemble(settings: Settings, gateway: Gateway | None = None) -> Parts:
    """All that is not about the web; nothing of it connects anywhere before it is used."""
    gateway = gateway or LettaServer(settings)
    directory = Directory(gateway)
    shared = shared_by_workers(settings)
    registry = Registry(gateway, lambda: shared.locks.hold("names-of-tools"))
    conversation = Conversation(gateway, directory, registry, shared, settings)
    activity = Activity(shared.store)
    snapshots = Snapshots(gateway, shared.store)
    return Parts(
        settings=settings,
        gateway=gateway,
        store=shared.store,
        directory=directory,
        conversation=conversation,
        activity=activity,
        recorder=Recorder(activity, keeps_text=settings.keep_text),
        snapshots=snapshots,
        operator=Operator(gateway, conversation, shared.locks.hold, snapshots, activity, settings),
        hold=shared.locks.hold,
    )


def _sweep_after_turns(app: Flask, settings: Settings, gateway: Gateway) -> None:
    due = OnceAnInterval(settings.data_dir / "last-sweep", settings.sweep_interval)
    sweeps = Background("sweep", due.is_due, lambda: sweep(gateway, settings.stub_idle))

    @app.after_request
    def sweep_when_sent(response: Response) -> Response:
        if request.endpoint == "openai.chat_completions":
            response.call_on_close(sweeps.start_if_due)
        return response
