"""The parts that the workers share: in Redis if REDIS_URL names a server, otherwise in the folder BRIDGE_DATA_DIR."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bridge.config import Settings
from bridge.errors import SettingsError
from bridge.journal.lingering import LingeringTurns
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


def make_shared_parts(settings: Settings) -> SharedParts:
    """Makes the parts and the folder BRIDGE_DATA_DIR, but opens no file and no connection."""
    folder = _make_folder(settings.data_dir)
    if settings.redis_url:
        server = RedisServer(settings.redis_url)
        return _connect_parts(RedisStore(server), LeaseLocker(server), settings)
    return _connect_parts(LocalStore(folder / "shared.db"), FileLocker(_make_folder(folder / "locks")), settings)


def _connect_parts(store: Store, locker: Locker, settings: Settings) -> SharedParts:
    open_calls = OpenCalls(store, settings.tool_wait, settings.final_tools)
    lingering = LingeringTurns(store, settings.repeat_wait)
    return SharedParts(store, AgentLocks(locker, settings.wait), open_calls, lingering, Heartbeat(store))


def _make_folder(path: Path) -> Path:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise SettingsError(f"BRIDGE_DATA_DIR: {path} can't be made ({fault.strerror})") from None
    return path
