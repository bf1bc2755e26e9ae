"""The parts of the service, put together: for the web, and for commands."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from bridge.config import Settings
from bridge.conversation import Conversation
from bridge.directory import Directory
from bridge.history.activity import Activity
from bridge.history.recorder import Recorder
from bridge.letta.gateway import Gateway
from bridge.operation.actions import Operator
from bridge.operation.snapshots import Snapshots
from bridge.store.port import Store


@dataclass(frozen=True, slots=True)
class Parts:
    """`hold` gives an agent to the one who holds it alone."""

    settings: Settings
    gateway: Gateway
    store: Store
    directory: Directory
    conversation: Conversation
    activity: Activity
    recorder: Recorder
    snapshots: Snapshots
    operator: Operator
    hold: Callable[[str], AbstractContextManager[object]]
