"""The parts that the workers share: in Redis if REDIS_URL names a server, otherwise in the folder BRIDGE_DATA_DIR."""

from __future__ import annotations

from dataclasses import dataclass

from bridge.config import Settings
from bridge.folders import OWN_FILES, make_private_folder
from bridge.journal.lingering import LingeringTurns
from bridge.lasting_thread import LastingThread
from bridge.locks.agents import AgentLocks, Locker
from bridge.locks.files import FileLocker
from bridge.locks.leases import LeaseLocker
from bridge.locks.open_calls import OpenCalls
from bridge.store.heartbeat import Heartbeat
from bridge.store.port import Store
from bridge.store.redis import RedisServer, RedisStore
from bridge.store.sqlite import LocalStore


@dataclass(frozen=True, slots=True)
class SharedParts:
    store: Store
    locks: AgentLocks
    open_calls: OpenCalls
    lingering: LingeringTurns
    heartbeat: Heartbeat
    threads: tuple[LastingThread, ...]


def make_shared_parts(settings: Settings) -> SharedParts:
    """Makes the parts and the folder BRIDGE_DATA_DIR, but opens no file and no connection."""
    folder = make_private_folder(settings.data_dir, OWN_FILES)
    if settings.redis_url:
        server = RedisServer(settings.redis_url)
        leases = LeaseLocker(server)
        return _connect_parts(RedisStore(server), leases, settings, leases.thread)
    store = LocalStore(folder / "shared.db")
    return _connect_parts(store, FileLocker(make_private_folder(folder / "locks"), store), settings)


def _connect_parts(store: Store, locker: Locker, settings: Settings, *threads: LastingThread) -> SharedParts:
    open_calls = OpenCalls(store, settings.tool_wait, settings.final_tools)
    lingering = LingeringTurns(store, settings.repeat_wait)
    heartbeat = Heartbeat(store)
    locks = AgentLocks(locker, settings.wait)
    return SharedParts(store, locks, open_calls, lingering, heartbeat, (heartbeat.thread, *threads))
