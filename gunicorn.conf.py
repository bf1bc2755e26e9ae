"""How gunicorn serves the app: every number comes from the settings or has its reason here."""

import atexit
import gc
import os
import shutil
import signal
import socket
import struct
import sys
import tempfile
from pathlib import Path
from typing import Any

from bridge.config import environment_with_dotenv, make_data_folder, read_settings
from bridge.errors import SettingsError
from bridge.logs import log_config
from bridge.web.shutdown import EXTENSION

try:
    settings = read_settings(environment_with_dotenv(os.environ, Path.cwd()))
    make_data_folder(settings)
except SettingsError as faults:
    sys.exit(f"The bridge can't start:\n{faults}")

WRITE_SECONDS = 60

# The workers count in files of this folder. It is named before prometheus_client is imported, which looks for it once.
_COUNTS = "letta-tool-bridge-counts-"
counts = os.environ.get("PROMETHEUS_MULTIPROC_DIR") or tempfile.mkdtemp(prefix=_COUNTS)
os.environ["PROMETHEUS_MULTIPROC_DIR"] = counts


def on_starting(server: Any) -> None:
    for sentence in settings.ignored:
        server.log.warning(sentence)


def child_exit(server: object, worker: Any) -> None:
    """What a dead worker had counted stays; what it had open is open no more."""
    from prometheus_client import multiprocess

    multiprocess.mark_process_dead(worker.pid)


def when_ready(server: Any) -> None:
    """Connections inherit it: who reads no reply, or over TLS stops in a request, lets go of its thread."""
    for listener in server.LISTENERS:
        listener.sock.setsockopt(
            socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", int(settings.read_timeout), 0)
        )
        listener.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", WRITE_SECONDS, 0))
    # What is loaded by now is no garbage: collections would write to its pages, which the workers share.
    gc.collect()
    gc.freeze()


def post_worker_init(worker: Any) -> None:
    """Turns that outlast the drain end with an error, not in the middle of a word."""
    closing = worker.wsgi.extensions[EXTENSION]
    stop = signal.getsignal(signal.SIGTERM)

    def drain(number: int, frame: Any) -> None:
        closing.begin()
        if callable(stop):
            stop(number, frame)

    signal.signal(signal.SIGTERM, drain)


def _forget_counts(owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(counts, ignore_errors=True)


if Path(counts).name.startswith(_COUNTS):
    atexit.register(_forget_counts, os.getpid())

host = f"[{settings.host.strip('[]')}]" if ":" in settings.host else settings.host
bind = f"{host}:{settings.port}"
workers = settings.workers
worker_class = "bridge.web.worker.Worker"
threads = settings.threads
# A stream holds its thread, so a worker must not accept much more than it has threads for; but connections that are
# kept open or say nothing count, too, and they hold none.
worker_connections = settings.threads * 4
# Only a worker that stops to answer its heartbeat is killed; how long a turn may take is the settings' matter.
timeout = 60
# For the last turns to tell their clients and to be let go of.
graceful_timeout = int(settings.drain) + 5
# Longer than the 90 s that Heroku's router keeps an idle connection.
keepalive = 95
# Workers share the code's memory, and a wrong setup fails before the first worker starts.
preload_app = True
control_socket_disable = True
# What a client says of where it comes from is believed by the app alone, as far as BRIDGE_PROXIES allows.
forwarded_allow_ips = ""
accesslog = None
logconfig_dict = log_config(settings.log_level, settings.secrets())
