"""A stand-in for an installed Letta version. It starts at once, answers the health check, and writes its environment
to a file in its working folder."""

import sys
from pathlib import Path

from testbed.cache import Cache
from testbed.install import ENCODINGS, recipe_digest
from testbed.versions import recipe

ANSWERING = """
import http.server, json, os, sys

class Health(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({{"version": "{version}", "status": "ok"}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

def app():
    with open("environment.json", "w") as file:
        json.dump({{"arguments": sys.argv, **os.environ}}, file)
    port = int(sys.argv[sys.argv.index("--port") + 1])
    http.server.ThreadingHTTPServer(("127.0.0.1", port), Health).serve_forever()
"""

DYING = """
import sys

def app():
    print("the disk is full")
    sys.exit(7)
"""


def install_fake(cache: Cache, version: str, server: str = ANSWERING) -> None:
    """Makes a folder that the testbed takes for an installation of this version."""
    folder = cache.letta(version)
    package = folder / "package" / "letta"
    package.mkdir(parents=True)
    (package / "main.py").write_text(server.format(version=version))
    python = folder / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{package.parent}" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    (folder / "complete").write_text(recipe_digest(recipe(version)))
    cache.encodings.mkdir(parents=True, exist_ok=True)
    (cache.encodings / "complete").write_text(ENCODINGS)


def cache_with(folder: Path, *versions: str) -> Cache:
    """Makes a cache in which these versions are installed."""
    cache = Cache(folder)
    for version in versions:
        install_fake(cache, version)
    return cache
