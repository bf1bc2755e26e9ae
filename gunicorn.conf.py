"""How gunicorn serves the app: every number comes from the settings or has its reason here."""

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from bridge.config import environment_with_dotenv, make_data_folder, read_settings
from bridge.errors import SettingsError
from bridge.logs import log_config

try:
    settings = read_settings(environment_with_dotenv(os.environ, Path.cwd()))
    make_data_folder(settings)
except SettingsError as faults:
    sys.exit(f"The bridge can't start:\n{faults}")

# The workers count in files of this folder. It is named before prometheus_client is imported, which looks for it once.
_COUNTS = "letta-tool-bridge-counts-"
counts = os.environ.get("PROMETHEUS_MULTIPROC_DIR") or tempfile.mkdtemp(prefix=_COUNTS)
os.environ["PROMETHEUS_MULTIPROC_DIR"] = counts


def child_exit(server: object, worker: Any) -> None:
    """What a dead worker had counted stays; what it had open is open no more."""
    from prometheus_client import multiprocess

    multiprocess.mark_process_dead(worker.pid)


def on_exit(server: object) -> None:
    if Path(counts).name.startswith(_COUNTS):
        shutil.rmtree(counts, ignore_errors=True)


bind = f"{settings.host}:{settings.port}"
workers = settings.workers
worker_class = "gthread"
threads = settings.threads
# A stream holds its thread, and a worker must not accept what it has no thread for.
worker_connections = settings.threads + 1
# Only a worker that stops to answer its heartbeat is killed; how long a turn may take is the settings' matter.
timeout = 60
graceful_timeout = 25
# Longer than the 90 s that Heroku's router keeps an idle connection.
keepalive = 95
# Workers share the code's memory, and a wrong setup fails before the first worker starts.
preload_app = True
control_socket_disable = True
accesslog = None
logconfig_dict = log_config(settings.log_format, settings.log_level, settings.secrets())
