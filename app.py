"""Makes the parts of the service and connects them: the Flask app, and what the commands need."""

from __future__ import annotations

import os
from pathlib import Path

from flask import Flask

from bridge.chats.chats import Chats
from bridge.cli.group import is_flask_command_line, make_command_group
from bridge.config import Settings, complete_environment, read_settings
from bridge.conversation import Conversation
from bridge.dialects.base import RequestRules
from bridge.dialects.letta.trial import try_tool
from bridge.dialects.openai.call_ids import CALL_IDS
from bridge.directory import Directory
from bridge.folders import make_private_folder
from bridge.history.activity import Activity
from bridge.history.log_line import log_turn
from bridge.history.recorder import Recorder
from bridge.journal.kept import KeptResponses
from bridge.large_offers import LargeOffers
from bridge.lasting_thread import check_threads
from bridge.letta.client import LettaServer
from bridge.letta.connection import Observer
from bridge.letta.gateway import Gateway
from bridge.letta.identity import ServerIdentity
from bridge.limits.allowance import Allowance
from bridge.offering import Offering
from bridge.operation.actions import Operator
from bridge.operation.background import BackgroundWork
from bridge.operation.codex_names import warn_of_name
from bridge.operation.interval import OnceAnInterval
from bridge.operation.parts import Parts
from bridge.operation.probe import Probe
from bridge.operation.snapshots import Snapshots
from bridge.passthrough.guard import Guard
from bridge.passthrough.rights import serves_letta
from bridge.passthrough.views import Views
from bridge.running import complete_from_running, find_running
from bridge.shared import make_shared_parts
from bridge.stubs.cache import StubCache
from bridge.stubs.checks import schema_limits
from bridge.sync.cleanup import sweep_server
from bridge.sync.made_stubs import MadeStubs
from bridge.sync.registry import Registry
from bridge.sync.reserved_names import ReservedNames
from bridge.turns.admission import Admission
from bridge.turns.attempts import Attempts
from bridge.turns.identity import Identities
from bridge.turns.turns import Turns
from bridge.web.admin.site import admin_routes
from bridge.web.answer import Answers
from bridge.web.bodies import Bodies
from bridge.web.body_limits import BODY_LIMITS, BodyLimits
from bridge.web.cors import allow_origins
from bridge.web.faults import add_error_handlers
from bridge.web.health import Readiness, health_routes
from bridge.web.hosts import accept_only_hosts, accepted_hosts
from bridge.web.letta_api import letta_routes
from bridge.web.letta_requests import LettaParts
from bridge.web.metrics import Metrics, metrics_routes
from bridge.web.openai_api import openai_routes
from bridge.web.pages import home_routes
from bridge.web.prefix import serve_below_prefix
from bridge.web.room import ROOM, Room
from bridge.web.security import harden_app
from bridge.web.shutdown import EXTENSION, Shutdown
from bridge.web.tracing import trace_requests


def create_app(settings: Settings | None = None, gateway: Gateway | None = None) -> Flask:
    """Returns the Flask app of the service. By default, its settings come from the environment.
    When Flask's command line only looks for a command, the app has only the commands.
    """
    if settings is None and is_flask_command_line():
        return _app_with_commands_only()
    settings = settings or read_environment_settings(serving=True)
    metrics = Metrics(os.environ.get("PROMETHEUS_MULTIPROC_DIR", ""))
    parts = assemble_parts(settings, gateway, metrics.observe_letta_call)
    app = Flask(__name__)
    app.extensions["parts"] = parts
    app.config["MAX_CONTENT_LENGTH"] = settings.max_body
    app.extensions[EXTENSION] = Shutdown(settings.drain)
    app.extensions[ROOM] = Room()
    app.extensions[BODY_LIMITS] = BodyLimits(settings, app.url_map)
    app.url_map.strict_slashes = False
    trace_requests(app, metrics)
    app.json.sort_keys = False  # type: ignore[attr-defined]
    allowance = Allowance(make_private_folder(settings.data_dir / "keys"))
    admission = Admission(settings, parts.directory, allowance, parts.stubs)
    attempts = Attempts(parts.store, settings.journal_keep, parts.heartbeat, settings.repeat_wait)
    removals = _make_removals(settings, parts)
    on_end = [log_turn, metrics.count_turn, warn_of_name, lambda _: removals.start_if_due()]
    turns = Turns(parts.conversation, attempts, parts.recorder, on_end)
    sweeps = _make_sweeps(settings, parts)
    identities = Identities(parts.directory, parts.server)
    bodies = Bodies(settings, app.extensions[ROOM])
    answers = Answers(settings, bodies, admission, identities, turns, app.extensions[EXTENSION], sweeps, app.logger)
    kept = KeptResponses(parts.store)
    rules = _request_rules(settings)
    app.register_blueprint(openai_routes(settings, parts.directory, answers, rules, kept))
    if serves_letta(settings):
        app.register_blueprint(letta_routes(_letta_parts(parts, answers, rules)))
    app.register_blueprint(admin_routes(app, parts))
    app.register_blueprint(health_routes(_readiness(parts)))
    app.register_blueprint(metrics_routes(metrics, settings.metrics_token, open_to_all=settings.allow_anonymous))
    app.register_blueprint(home_routes(letta_api=serves_letta(settings), needs_key=bool(settings.api_keys)))
    allow_origins(app, settings.cors_origins)
    app.cli.add_command(make_command_group(lambda: settings, lambda _: parts))
    app.before_request(parts.recorder.start)
    add_error_handlers(app)
    accept_only_hosts(app, accepted_hosts(settings))
    harden_app(app, settings.proxies)
    app.wsgi_app = serve_below_prefix(settings.url_prefix, app.wsgi_app)  # type: ignore[method-assign,assignment]
    return app


def _app_with_commands_only() -> Flask:
    """Returns an app for Flask's command line. Each command reads the settings: invalid ones give a message."""
    app = Flask(__name__)
    app.cli.add_command(make_command_group(lambda: read_environment_settings(serving=False), assemble_parts))
    return app


def read_environment_settings(*, serving: bool) -> Settings:
    """Returns the settings of the environment and `.env`. Without `serving`, as commands have it, no client's key is
    needed, and a bridge that `make run` started gives the settings that are not set.
    """
    environment = complete_environment(os.environ, Path.cwd())
    return read_settings(
        environment if serving else complete_from_running(environment, find_running()), serving=serving
    )


def assemble_parts(
    settings: Settings, gateway: Gateway | None = None, observe: Observer = lambda call, seconds: None
) -> Parts:
    """Returns the parts of the service that do not depend on Flask. No part connects to anything before it is used.
    `observe` gets the name of each call to Letta, and the seconds until its answer began.
    """
    gateway = gateway or LettaServer(settings, observe=observe)
    directory, server = Directory(gateway), ServerIdentity(gateway)
    shared = make_shared_parts(settings)
    stubs = StubCache(schema_limits(settings.max_depth, settings.max_schema))
    made_stubs = MadeStubs(settings.most_idle_stubs)
    registry = Registry(gateway, ReservedNames(shared.store, server), made_stubs)
    offering = Offering(gateway, registry, shared, stubs, settings)
    chats = Chats(shared.store, settings)
    activity = Activity(shared.store)
    snapshots = Snapshots(gateway, shared.store)
    recorder = Recorder(activity, shared.heartbeat, keeps_text=settings.keep_text)
    return Parts(
        settings=settings,
        gateway=gateway,
        server=server,
        shared=shared,
        store=shared.store,
        heartbeat=shared.heartbeat,
        directory=directory,
        stubs=stubs,
        made_stubs=made_stubs,
        offering=offering,
        chats=chats,
        conversation=Conversation(
            gateway, directory, offering, LargeOffers(shared.store, stubs, settings), chats, shared, settings
        ),
        activity=activity,
        recorder=recorder,
        snapshots=snapshots,
        letta_probe=Probe("letta", gateway.check_server),
        operator=Operator(gateway, offering, shared.locks.hold_outside_turn, snapshots, activity, settings),
        hold=shared.locks.hold_outside_turn,
        threads=(*shared.threads, recorder.thread),
        trials={"Letta's own API": try_tool} if serves_letta(settings) else {},
    )


def _letta_parts(parts: Parts, answers: Answers, rules: RequestRules) -> LettaParts:
    guard = Guard(parts.gateway, parts.offering, parts.chats, parts.shared)
    views = Views(parts.gateway, parts.chats, parts.shared.open_calls, parts.store, CALL_IDS)
    return LettaParts(parts.settings, parts.gateway, parts.directory, answers, guard, views, rules)


def _readiness(parts: Parts) -> Readiness:
    return Readiness(
        {
            "letta": parts.letta_probe,
            "store": Probe("store", parts.store.check_writable),
            "worker": Probe("worker", lambda: check_threads(parts.threads)),
        }
    )


def _request_rules(settings: Settings) -> RequestRules:
    return RequestRules(settings.max_tools, settings.max_result, settings.image_urls, settings.own_files.side_rules)


def _make_removals(settings: Settings, parts: Parts) -> BackgroundWork:
    """Returns the removal of stubs that refused turns made. Without sweeps, the bridge deletes nothing by itself."""
    refused = parts.offering.refused_stubs
    return BackgroundWork(
        "removal of refused tools", lambda: settings.sweep_interval > 0 and refused.are_waiting(), refused.remove
    )


def _make_sweeps(settings: Settings, parts: Parts) -> BackgroundWork:
    """Returns the removal of unused stubs, once in `sweep_interval` seconds (0: never) for all workers together, and as
    soon as a key has made many stubs.
    """
    due = OnceAnInterval(settings.data_dir / "last-sweep", settings.sweep_interval)
    return BackgroundWork(
        "sweep",
        lambda: due.is_due() or (settings.sweep_interval > 0 and parts.made_stubs.are_many()),
        lambda: sweep_server(parts.gateway, settings.stub_idle, settings.most_idle_stubs),
    )
