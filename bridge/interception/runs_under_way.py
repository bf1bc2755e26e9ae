"""Runs that go on in Letta although the bridge that began them has gone. The agent is not free before they end."""

from __future__ import annotations

import logging
import threading
import time

from bridge.letta.gateway import Agent, Gateway

log = logging.getLogger(__name__)

PATIENCE = 30.0
PAUSE = 0.3
REST = 1.0


def wait_for_runs(gateway: Gateway, agent_id: str, gone: threading.Event) -> bool:
    """Waits until the agent has no run any more. Returns whether it had one.

    A run that does not end in time is cancelled: it was lost when its server died. `gone` ends the wait.
    """
    deadline = time.monotonic() + PATIENCE
    had = False
    while runs := gateway.runs_under_way(agent_id):
        had = True
        if time.monotonic() > deadline:
            log.warning("%s: cancelling %d runs that did not end", agent_id, len(runs))
            for run_id in runs:
                gateway.cancel_runs(agent_id, run_id)
            break
        if gone.wait(PAUSE):
            break
    return had


def wait_for_unchanged_context(gateway: Gateway, agent_id: str) -> Agent:
    """The agent once its context does not change any more, for servers that do not say which runs are under way."""
    deadline = time.monotonic() + PATIENCE
    agent = gateway.agent(agent_id)
    while time.monotonic() < deadline:
        time.sleep(REST)
        later = gateway.agent(agent_id)
        if later.message_ids == agent.message_ids:
            return later
        agent = later
    return agent
