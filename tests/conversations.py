"""The conversation with the agents of the in-memory Letta, without the web around it."""

from __future__ import annotations

from bridge.config import Settings
from bridge.conversation import Conversation
from bridge.directory import Directory
from bridge.offering import Offering
from bridge.shared import shared_by_workers
from bridge.stubs.checks import limits_of
from bridge.stubs.remembered import RememberedStubs
from bridge.sync.registry import Registry
from tests.fakes import FakeGateway


def conversation_with(letta: FakeGateway, settings: Settings) -> Conversation:
    shared = shared_by_workers(settings)
    stubs = RememberedStubs(limits_of(settings.max_depth, settings.max_schema))
    offering = Offering(letta, Registry(letta), shared, stubs, settings)
    return Conversation(letta, Directory(letta), offering, shared, settings)
