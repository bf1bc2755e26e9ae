"""The parts of the bridge that both the web service and the commands use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

from bridge.chats.chats import Chats
from bridge.config import Settings
from bridge.conversation import Conversation
from bridge.directory import Directory
from bridge.history.activity import Activity
from bridge.history.recorder import Recorder
from bridge.lasting_thread import LastingThread
from bridge.letta.gateway import Gateway
from bridge.letta.identity import ServerIdentity
from bridge.offering import Offering
from bridge.operation.actions import Operator
from bridge.operation.probe import Probe
from bridge.operation.snapshots import Snapshots
from bridge.shared import SharedParts
from bridge.store.heartbeat import Heartbeat
from bridge.store.port import Store
from bridge.stubs.cache import StubCache
from bridge.sync.made_stubs import MadeStubs
from bridge.turn import AgentEvent, ToolSpec, Turn

# Tries a tool round trip with an agent in the words of one API: gets the agent's id, a tool, a question, the tool's
# result, and what runs a turn. Returns what the agent says at the end, "" if the trial failed.
Trial = Callable[[str, ToolSpec, str, str, Callable[[Turn], Iterable[AgentEvent]]], str]


@dataclass(frozen=True, slots=True)
class Parts:
    """The objects that the bridge is made of. `hold` returns a context manager that locks the agent with this id.
    `threads` are those that live as long as the worker. `trials` are by the names of APIs that are on by a setting.
    """

    settings: Settings
    gateway: Gateway
    server: ServerIdentity
    shared: SharedParts
    store: Store
    heartbeat: Heartbeat
    directory: Directory
    stubs: StubCache
    made_stubs: MadeStubs
    offering: Offering
    chats: Chats
    conversation: Conversation
    activity: Activity
    recorder: Recorder
    snapshots: Snapshots
    letta_probe: Probe
    operator: Operator
    hold: Callable[[str], AbstractContextManager[object]]
    threads: tuple[LastingThread, ...]
    trials: Mapping[str, Trial]
