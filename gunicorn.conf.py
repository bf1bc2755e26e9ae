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
    for sentence in settings.ignored_variables:
        server.log.warning(sentence)


def child_exit(server: object, worker: Any) -> None:
    """Keeps the counters of a dead worker, and removes its gauges."""
    from prometheus_client import multiprocess

    multiprocess.mark_process_dead(worker.pid)


def when_ready(server: Any) -> None:
    """Connections inherit these timeouts: a client that reads no reply, or stops in a TLS request, frees its thread."""
    for listener in server.LISTENERS:
        listener.sock.setsockopt(
            socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", int(settings.read_timeout), 0)
        )
        listener.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", WRITE_SECONDS, 0))
    # Objects loaded by now are not garbage. Collections would write to their pages, which the workers share.
    gc.collect()
    gc.freeze()


def post_worker_init(worker: Any) -> None:
    """Ends turns that outlast the drain with an error, not in the middle of a word."""
    shutdown = worker.wsgi.extensions[EXTENSION]
    stop = signal.getsignal(signal.SIGTERM)

    def drain(number: int, frame: Any) -> None:
        shutdown.begin()
        if callable(stop):
            stop(number, frame)

    signal.signal(signal.SIGTERM, drain)


def _remove_counts_folder(owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(counts, ignore_errors=True)


if Path(counts).name.startswith(_COUNTS):
    atexit.register(_remove_counts_folder, os.getpid())

host = f"[{settings.host.strip('[]')}]" if ":" in settings.host else settings.host
bind = f"{host}:{settings.port}"
workers = settings.workers
worker_class = "bridge.web.worker.Worker"
threads = settings.threads
# A stream holds its thread, so a worker must not accept many more connections than it has threads. But idle and silent
# connections count too, and they hold no thread.
worker_connections = settings.threads * 4
# Only a worker without a heartbeat is killed. How long a turn may take is a matter of the settings.
timeout = 60
# Five seconds more, in which the last turns answer their clients and end.
graceful_timeout = int(settings.drain) + 5
# Longer than the 90 s that Heroku's router keeps an idle connection.
keepalive = 95
# Workers share the code's memory, and a wrong setup fails before the first worker starts.
preload_app = True
control_socket_disable = True
# Only the app reads the headers of proxies, as far as BRIDGE_PROXIES allows.
forwarded_allow_ips = ""
accesslog = None
logconfig_dict = log_config(settings.log_level, settings.secrets())
