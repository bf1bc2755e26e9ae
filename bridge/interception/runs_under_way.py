"""Waits for Letta runs that go on although the worker that began them has ended. Until then the agent is not free."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Generator

from bridge.letta.gateway import Agent, Gateway
from bridge.trace import current_trace
from bridge.turn import Notice, WaitCause, waiting_notice

log = logging.getLogger(__name__)

# The longest wait for runs to end, in seconds.
PATIENCE = 30.0
# Seconds between two looks at the runs.
PAUSE = 0.3
# Seconds between two looks at the context.
REST = 1.0
_CAUSE: WaitCause = "a run under way"


def wait_for_runs(gateway: Gateway, agent_id: str, gone: threading.Event) -> Generator[Notice, None, bool]:
    """Waits until no Letta run of the agent is under way, or `gone` is set. Returns whether any run was under way.
    Cancels runs that do not end within PATIENCE seconds: they were lost when their Letta server died.
    """
    deadline = time.monotonic() + PATIENCE
    had = False
    while runs := gateway.runs_under_way(agent_id):
        if not had:
            yield waiting_notice(_CAUSE)
        had = True
        if time.monotonic() > deadline:
            log.warning("%s: cancelling %d runs that did not end", agent_id, len(runs))
            for run_id in runs:
                gateway.cancel_runs(agent_id, run_id)
            break
        with current_trace().measure_waiting(_CAUSE):
            if gone.wait(PAUSE):
                break
    return had


def wait_for_unseen_runs(gateway: Gateway, agent: Agent) -> Generator[Notice, None, Agent]:
    """Waits for runs of a turn that was broken off, on servers that do not say which are under way. Returns the agent
    as it is then.
    """
    if gateway.features().lists_active_runs:
        return agent
    return (yield from wait_for_unchanged_context(gateway, agent.id))


def wait_for_unchanged_context(gateway: Gateway, agent_id: str) -> Generator[Notice, None, Agent]:
    """Waits until the context stays the same for REST seconds: for servers that do not say which runs are under way.
    Returns the agent as it is then.
    """
    yield waiting_notice(_CAUSE)
    deadline = time.monotonic() + PATIENCE
    agent = gateway.agent(agent_id)
    while time.monotonic() < deadline:
        with current_trace().measure_waiting(_CAUSE):
            time.sleep(REST)
        later = gateway.agent(agent_id)
        if later.message_ids == agent.message_ids:
            return later
        agent = later
    return agent
