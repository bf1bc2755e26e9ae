"""Configures gunicorn. Every number comes from the settings or has its reason here."""

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

from bridge.config import complete_environment, read_settings
from bridge.errors import SettingsError
from bridge.folders import make_data_folder
from bridge.logs import log_config
from bridge.web.reply_socket import WRITE_SECONDS
from bridge.web.room import return_large_blocks
from bridge.web.shutdown import EXTENSION

try:
    settings = read_settings(complete_environment(os.environ, Path.cwd()))
    make_data_folder(settings.data_dir)
except SettingsError as faults:
    sys.exit(f"The bridge can't start:\n{faults}")

# The workers keep the counts of the metrics in files of this folder. prometheus_client reads the variable only when it
# is imported.
_COUNTS = "letta-tool-bridge-counts-"
counts = os.environ.get("PROMETHEUS_MULTIPROC_DIR") or tempfile.mkdtemp(prefix=_COUNTS)
os.environ["PROMETHEUS_MULTIPROC_DIR"] = counts


def on_starting(server: Any) -> None:
    for sentence in settings.ignored_variables:
        server.log.warning(sentence)


def child_exit(server: object, worker: Any) -> None:
    """Removes the gauges of a worker that ended from the metrics, and keeps its counters. Runs in the main process."""
    from prometheus_client import multiprocess

    multiprocess.mark_process_dead(worker.pid)


def when_ready(server: Any) -> None:
    """Sets the timeouts of sockets, and keeps the loaded objects out of garbage collections.
    Connections inherit the timeouts from the listening sockets. So a client that does not read its reply, or that stops
    in the middle of a request over TLS, does not keep its thread.
    """
    for listener in server.LISTENERS:
        listener.sock.setsockopt(
            socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", int(settings.read_timeout), 0)
        )
        listener.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", WRITE_SECONDS, 0))
    # A collection writes to the memory of each object that it looks at. The workers can't share that memory then.
    gc.collect()
    gc.freeze()


def post_worker_init(worker: Any) -> None:
    """Lets the app know by SIGTERM when this worker has to end. Turns that then take longer than BRIDGE_DRAIN fail.
    Starts the heartbeat: only a worker that wrote to the store before can notice that the store lost its data.
    The first worker checks Letta, so that the log says at the start what is wrong with it.
    """
    return_large_blocks()
    parts = worker.wsgi.extensions["parts"]
    parts.recorder.start()
    if worker.age == 1:
        parts.letta_probe.start_check()
    shutdown = worker.wsgi.extensions[EXTENSION]
    stop = signal.getsignal(signal.SIGTERM)

    def drain(number: int, frame: Any) -> None:
        shutdown.begin()
        if callable(stop):
            stop(number, frame)

    signal.signal(signal.SIGTERM, drain)


def _remove_counts_folder(owner: int) -> None:
    """Removes the folder of the metrics at the end of the main process, `owner`. Python also calls it in workers."""
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
# Seconds without a sign of life after which gunicorn kills a worker. The main thread gives the signs, so turns may take
# longer.
timeout = 60
# Five seconds more than turns have, so that the last turns can answer their clients.
graceful_timeout = int(settings.drain) + 5
# Seconds that an idle connection is kept. Heroku's router keeps it for 90 s, and must be the first to close it.
keepalive = 95
# Workers share the code's memory, and a wrong setup fails before the first worker starts.
preload_app = True
# sendfile() would make a thread wait for a client that does not read.
sendfile = False
control_socket_disable = True
# gunicorn ignores the headers of proxies. The app reads as many of them as BRIDGE_PROXIES says.
forwarded_allow_ips = ""
accesslog = None
logger_class = "bridge.web.gunicorn_log.RequestlessLogger"
logconfig_dict = log_config(settings.log_level, settings.secrets())
