"""Waits for Letta runs that go on although the worker that began them has ended. Until then the agent is not free."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Generator

from bridge.errors import ClientGone
from bridge.letta.gateway import Agent, Gateway
from bridge.locks.agents import AgentHold
from bridge.trace import current_trace
from bridge.turn import Notice, WaitCause, waiting_notice

log = logging.getLogger(__name__)

# The longest wait for runs to end, in seconds. Where a cancelled run goes on, a longer one: at its end, it would write
# its own messages over those of the turns since.
PATIENCE = 30.0
LONGER_PATIENCE = 120.0
# Seconds between two looks at the runs.
PAUSE = 0.3
# Seconds between two looks at the context. So long it must stay the same, and so long if it has just changed.
REST = 1.0
REST_AFTER_CHANGE = 3.0
_CAUSE: WaitCause = "a run under way"


def wait_for_earlier_runs(
    gateway: Gateway,
    agent: Agent,
    hold: AgentHold,
    gone: threading.Event,
    has_arrived: Callable[[], bool] = lambda: False,
) -> Generator[Notice, None, Agent]:
    """Waits for what the turn before may have left running in Letta. The caller has the agent's `hold`. Returns the
    agent as it is then. Raises ClientGone if `gone` is set meanwhile. `has_arrived`: a message of that turn is stored,
    so its run has come to an end. It is asked only on servers that do not say which runs are under way.
    """
    if hold.previous_turn_ended:
        return agent
    if gateway.features().lists_active_runs:
        yield from wait_for_runs(gateway, agent.id, gone)
        agent = gateway.agent(agent.id)
    elif hold.previous == "lost":
        if not (gateway.features().ends_runs_with_connection or has_arrived()):
            yield from _wait_for_changed_context(gateway, agent, gone)
        if not gone.is_set():
            agent = yield from wait_for_unchanged_context(gateway, agent.id, REST_AFTER_CHANGE)
    elif hold.previous == "unknown" and agent.has_chats:  # what was noted of the turn before may be lost
        agent = yield from wait_for_unchanged_context(gateway, agent.id)
    else:
        agent = gateway.agent(agent.id)
    if gone.is_set():
        raise ClientGone.before_its_turn()
    hold.earlier_runs_ended = True
    return agent


def wait_silently(waiting: Generator[Notice, None, Agent]) -> Agent:
    """Waits where nobody can be told why. Returns the agent."""
    while True:
        try:
            next(waiting)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


def wait_for_runs(gateway: Gateway, agent_id: str, gone: threading.Event) -> Generator[Notice, None, None]:
    """Waits until no Letta run of the agent is under way, or `gone` is set. Cancels runs that do not end within
    PATIENCE seconds: they were lost when their Letta server died.
    """
    deadline: float | None = None
    while runs := gateway.runs_under_way(agent_id):
        if deadline is None:
            deadline = time.monotonic() + (PATIENCE if gateway.features().cancels_runs else LONGER_PATIENCE)
            yield waiting_notice(_CAUSE)
        if time.monotonic() > deadline:
            log.warning("%s: cancelling %d runs that did not end", agent_id, len(runs))
            for run_id in runs:
                gateway.cancel_runs(agent_id, run_id)
            break
        with current_trace().measure_waiting(_CAUSE):
            if gone.wait(PAUSE):
                break


def wait_for_unchanged_context(gateway: Gateway, agent_id: str, rest: float = REST) -> Generator[Notice, None, Agent]:
    """Waits until the context stays the same for `rest` seconds: for servers that do not say which runs
    are under way. Returns the agent as it is then.
    """
    yield waiting_notice(_CAUSE)
    deadline = time.monotonic() + PATIENCE
    agent = gateway.agent(agent_id)
    while time.monotonic() < deadline:
        with current_trace().measure_waiting(_CAUSE):
            time.sleep(rest)
        later = gateway.agent(agent_id)
        if later.message_ids == agent.message_ids:
            return later
        agent = later
    return agent


def _wait_for_changed_context(gateway: Gateway, agent: Agent, gone: threading.Event) -> Generator[Notice, None, None]:
    """Waits until the context has changed, PATIENCE seconds at most, or until `gone` is set."""
    yield waiting_notice(_CAUSE)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and gateway.agent(agent.id).message_ids == agent.message_ids:
        with current_trace().measure_waiting(_CAUSE):
            if gone.wait(REST):
                return
