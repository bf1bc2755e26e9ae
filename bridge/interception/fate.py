"""What became of an attempt at this turn whose end nobody saw: its answer was lost, or its bridge was killed."""

from __future__ import annotations

import threading
from dataclasses import replace

from bridge.interception.method import Scene
from bridge.interception.past import Past
from bridge.interception.underway import agent_at_rest, wait_for_its_runs


def as_it_stands(scene: Scene) -> Scene:
    """The scene without messages that have reached the agent: they are not sent again.

    Results are recognised by their calls, so nothing has to be done about them, unless they are messages themselves.
    All messages of a turn go out in one request, so one that arrived stands for all.
    """
    tells_runs = scene.features.tells_runs
    if not tells_runs:
        scene = replace(scene, agent=agent_at_rest(scene.gateway, scene.agent.id))
    # Before 0.11 a run that loses its client may end with its messages stored and not in the agent's context.
    arrived = Past(scene).stored if tells_runs else Past(scene).rows
    if not any(scene.is_ours(row.otid) for row in arrived):
        return scene
    if tells_runs:  # it may have arrived late, after the agent was last looked at
        wait_for_its_runs(scene.gateway, scene.agent.id, threading.Event())
        scene = replace(scene, agent=scene.gateway.agent(scene.agent.id))
    return replace(scene, news=replace(scene.news, said=()), opening=(), arrived=True)
