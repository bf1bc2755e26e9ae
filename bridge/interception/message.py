"""Any agent: the stub returns its fixed text, and the result comes as a message that quotes it."""

from __future__ import annotations

from bridge.interception.method import Scene, refuse_stale, results_for
from bridge.interception.quoting import quoted
from bridge.interception.rewrite import Given, Rewrite
from bridge.turn import Method


class Message(Rewrite):
    """As `rewrite`, but for the way back."""

    name: Method = "message"

    def _give_results(self, scene: Scene) -> Given:
        given = results_for(scene, scene.last_message_id)
        if scene.news.results and not given:
            refuse_stale(scene)
        return Given(quoted=tuple(quoted(result) for result in given.values()))
