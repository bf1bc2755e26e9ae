"""Keeps PostgreSQL running as long as a process uses it: `python -m testbed.keeper FOLDER`."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from testbed import tool
from testbed.cache import Cache, open_lock, try_lock
from testbed.install import binaries
from testbed.network import free_port
from testbed.postgres import as_ordinary_user, data_folder, keeper_lock, log_file, state_file, users_lock

LOOK_SECONDS = 0.5
GIVE_UP_SECONDS = 30.0
START_SECONDS = 60.0

# The data is not needed after a crash of the machine, so writes need not be forced to the disk.
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "400",
    "shared_buffers": "64MB",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_wal_size": "256MB",
    "max_parallel_workers_per_gather": "0",
    "log_min_messages": "warning",
    "log_min_error_statement": "panic",
}


def main() -> None:
    """Goes into the background when the server accepts connections, or fails."""
    cache = Cache(Path(sys.argv[1]))
    started, tell = os.pipe()
    if os.fork():
        os.close(tell)
        sys.exit(0 if os.read(started, 1) else 1)
    os.close(started)
    os.setsid()
    keep(cache, tell)


def keep(cache: Cache, tell: int) -> None:
    """Starts PostgreSQL, and stops it when its last user is gone or after SIGTERM."""
    become_the_only_one(cache)
    remove_remains(cache)
    port = free_port()
    server = start(cache, port)
    signal.signal(signal.SIGTERM, lambda *_: server.send_signal(signal.SIGINT))
    announce(cache, server, port)
    os.write(tell, b"!")
    os.close(tell)
    users = open_lock(users_lock(cache))
    while server.poll() is None:
        if try_lock(users):
            state_file(cache).unlink(missing_ok=True)
            stop(server)
        time.sleep(LOOK_SECONDS)
    state_file(cache).unlink(missing_ok=True)


def become_the_only_one(cache: Cache) -> None:
    """Waits for the end of an earlier keeper: two keepers would start two servers on the same files."""
    lock = open_lock(keeper_lock(cache))
    deadline = time.monotonic() + GIVE_UP_SECONDS
    while not try_lock(lock):
        if time.monotonic() > deadline:
            sys.exit("another keeper of this PostgreSQL is running and does not end")
        time.sleep(0.05)


def remove_remains(cache: Cache) -> None:
    """Ends a server whose keeper was killed, if the system did not end it."""
    if (data_folder(cache) / "postmaster.pid").exists():
        stop_it = [str(binaries(cache) / "pg_ctl"), "stop", "-D", str(data_folder(cache)), "-m", "immediate"]
        # It fails if only the file was left, which PostgreSQL ignores.
        subprocess.run(as_ordinary_user(stop_it), env=tool.environment(), stdin=subprocess.DEVNULL, check=False)


def start(cache: Cache, port: int) -> "subprocess.Popen[bytes]":
    """Starts PostgreSQL on a port."""
    settings = [f"--{name}={value}" for name, value in SETTINGS.items()]
    return subprocess.Popen(
        as_ordinary_user(
            [str(binaries(cache) / "postgres"), "-D", str(data_folder(cache)), "-p", str(port), *settings]
        ),
        env=tool.environment(),
        stdin=subprocess.DEVNULL,
    )


def announce(cache: Cache, server: "subprocess.Popen[bytes]", port: int) -> None:
    """Publishes the port when the server accepts connections."""
    deadline = time.monotonic() + START_SECONDS
    pid_file = data_folder(cache) / "postmaster.pid"
    while server.poll() is None:
        # The eighth line says so, padded with blanks.
        lines = pid_file.read_text().splitlines() if pid_file.exists() else []
        if len(lines) > 7 and lines[0] == str(server.pid) and lines[7].strip() == "ready":
            break
        if time.monotonic() > deadline:
            stop(server)
        time.sleep(0.02)
    else:
        sys.exit(f"PostgreSQL ended with exit code {server.returncode}; see {log_file(cache)}")
    unfinished = state_file(cache).with_suffix(".part")
    unfinished.write_text(json.dumps({"port": port, "pid": server.pid, "keeper": os.getpid()}))
    unfinished.replace(state_file(cache))


def stop(server: "subprocess.Popen[bytes]") -> None:
    """Ends the sessions and the server, immediately if that takes long."""
    server.send_signal(signal.SIGINT)
    try:
        server.wait(10)
    except subprocess.TimeoutExpired:
        server.send_signal(signal.SIGQUIT)
        server.wait(10)


if __name__ == "__main__":
    main()
