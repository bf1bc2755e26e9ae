"""What became of an attempt at this turn whose end nobody saw: its answer was lost, or its bridge was killed."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

from bridge.interception.method import Scene
from bridge.interception.past import Past
from bridge.interception.underway import agent_at_rest, wait_for_its_runs
from bridge.letta.capabilities import keeps_context_by_step
from bridge.letta.gateway import StoredMessage


def as_it_stands(scene: Scene) -> Scene:
    """The scene without messages that have reached the agent: they are not sent again.

    Results are recognised by their calls, so nothing has to be done about them, unless they are messages themselves.
    All messages of a turn go out in one request, so one that arrived stands for all.
    """
    tells_runs = scene.features.tells_runs
    if not tells_runs:
        scene = replace(scene, agent=agent_at_rest(scene.gateway, scene.agent.id))
    past = Past(scene)
    if tells_runs and _brought(scene, past.stored):  # it may have arrived late, after the agent was last looked at
        wait_for_its_runs(scene.gateway, scene.agent.id, threading.Event())
        scene = replace(scene, agent=scene.gateway.agent(scene.agent.id))
        past = Past(scene)
    # Where the context is kept by the run, one that fails, or loses its client before 0.11, may leave its messages out.
    by_step = keeps_context_by_step(scene.features.version, scene.loop)
    if not _brought(scene, past.stored if by_step else past.rows):
        return scene
    return replace(scene, news=replace(scene.news, said=()), opening=(), arrived=True)


def _brought(scene: Scene, rows: Sequence[StoredMessage]) -> bool:
    return any(scene.is_ours(row.otid) for row in rows)
