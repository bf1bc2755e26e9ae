"""Brings servers up by hand, which run until they are brought down."""

import signal
import time

from testbed.cache import Cache, Progress, is_locked, silent
from testbed.errors import StartFailed
from testbed.handle import Server
from testbed.owned import NO_MODEL, READY_SECONDS, STOP_SECONDS, Options, OwnServer, signal_group
from testbed.postgres import keeper_lock
from testbed.slots import UP, ServerState, Slot, taken
from testbed.versions import recipe


def bring_up(
    version: str,
    cache: Cache,
    *,
    model_url: str | None = None,
    password: str | None = None,
    fresh: bool = False,
    progress: Progress = silent,
) -> Server:
    """Starts a server that continues to run when this process ends, or returns one that is up already and fits."""
    recipe(version)
    slot = Slot(cache, version, UP)
    lock = slot.claim()
    if lock is None:
        return _await_other(slot, model_url, password, fresh, progress)
    server = OwnServer(slot, lock, Options(model_url or NO_MODEL, password=password, fresh=fresh), progress)
    server.begin()
    server.stay()
    return Server(slot, server.state)


def find_up(version: str, cache: Cache) -> Server | None:
    """Returns the server of a version that was brought up, if it answers."""
    slot = Slot(cache, version, UP)
    server = Server(slot, slot.read())
    return server if slot.is_taken() and server.is_healthy() else None


def bring_down(cache: Cache, version: str | None = None, progress: Progress = silent) -> int:
    """Ends the servers of a version, or all, also those that other processes started. Returns their number."""
    if version is not None:
        recipe(version)
    slots = list(taken(cache, version))
    for slot in slots:
        progress(f"stopping Letta {slot.version} ({slot.name})…")
        _end(slot)
    if version is None:
        _await_end_of_postgres(cache, progress)
    return len(slots)


def _await_other(slot: Slot, model_url: str | None, password: str | None, fresh: bool, progress: Progress) -> Server:
    """Returns the server that is up, or waits for another process that is bringing it up."""
    state = _await_ready(slot, progress)
    if password != state.password or fresh or model_url not in (None, state.model_url):
        raise StartFailed(
            f"Letta {slot.version} is up already at {state.base_url} with the model {state.model_url} and "
            f"{'a' if state.password else 'no'} password: to start it differently, run `down {slot.version}` first."
        )
    server = Server(slot, state)
    if not server.is_healthy():
        raise StartFailed(
            f"Letta {slot.version} is up at {state.base_url} but does not answer: see {slot.log}, or stop it with "
            f"`down {slot.version}`."
        )
    progress(f"Letta {slot.version} is up already at {state.base_url}")
    return server


def _await_ready(slot: Slot, progress: Progress) -> ServerState:
    deadline = time.monotonic() + READY_SECONDS
    state = slot.read()
    if not state.ready:
        progress(f"waiting for Letta {slot.version}, which another process is starting…")
    while not state.ready:
        if time.monotonic() > deadline or not slot.is_taken():
            raise StartFailed(f"Letta {slot.version} was being started by another process, which gave up.")
        time.sleep(0.2)
        state = slot.read()
    return state


def _end(slot: Slot) -> None:
    """Ends the server of a slot: with SIGTERM first, later with SIGKILL."""
    started = time.monotonic()
    signalled = 0
    while slot.is_taken():
        pid, waited = slot.read().pid, time.monotonic() - started
        if waited > 2 * STOP_SECONDS:
            raise StartFailed(
                f"Letta {slot.version} ({slot.name}) is being installed or prepared by another process: end that."
            )
        if pid and waited > STOP_SECONDS:
            signal_group(pid, signal.SIGKILL)
        elif pid not in (0, signalled):
            signal_group(pid, signal.SIGTERM)
            signalled = pid
        time.sleep(0.05)


def _await_end_of_postgres(cache: Cache, progress: Progress) -> None:
    """Waits until PostgreSQL has ended, which it does when its last user is gone."""
    deadline = time.monotonic() + STOP_SECONDS
    while is_locked(keeper_lock(cache)):
        if time.monotonic() > deadline:
            progress("PostgreSQL continues to run: another process of the testbed uses it")
            return
        time.sleep(0.05)
