"""How gunicorn serves the app: every number comes from the settings or has its reason here."""

import os
import sys
from pathlib import Path

from bridge.config import environment_with_dotenv, make_data_folder, read_settings
from bridge.errors import SettingsError
from bridge.logs import log_config

try:
    settings = read_settings(environment_with_dotenv(os.environ, Path.cwd()))
    make_data_folder(settings)
except SettingsError as faults:
    sys.exit(f"The bridge can't start:\n{faults}")

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
