"""The story of one turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bridge.config import Settings
from bridge.directory import Directory
from bridge.errors import LettaError
from bridge.letta.capabilities import agent_loop, streams_tokens_faithfully
from bridge.letta.gateway import Gateway, Outgoing
from bridge.openai.transcript import what_is_new
from bridge.sync.instructions import apply_instructions, plan_instructions
from bridge.turn import Event, News, Turn, Used


class Conversation:
    """Gives the agent what is new in the transcript and yields what happens."""

    def __init__(self, gateway: Gateway, directory: Directory, settings: Settings) -> None:
        self._gateway = gateway
        self._directory = directory
        self._system_prompt = settings.system_prompt

    def events(self, turn: Turn) -> Iterator[Event]:
        news = what_is_new(turn)
        agent = self._directory.find(turn.model)
        loop = agent_loop(self._gateway.features().version, agent.type)
        if self._system_prompt != "message":
            wanted = news.instructions if self._system_prompt == "block" else ""
            apply_instructions(self._gateway, agent, plan_instructions(agent, wanted))
        by_token = turn.stream and streams_tokens_faithfully(loop)
        for event in self._gateway.send(agent.id, self._outgoing(news), by_token=by_token):
            yield self._last_step(event) if isinstance(event, Used) else event

    def _outgoing(self, news: News) -> list[Outgoing]:
        says = [Outgoing("user", text) for text in news.user_texts]
        if self._system_prompt == "message" and news.instructions and news.opens_conversation:
            return [Outgoing("system", news.instructions), *says]
        return says

    def _last_step(self, used: Used) -> Used:
        """Usage as a client needs it to judge how full the context is: the prompt of the last step, not the sum.

        A server that does not know the step gets the mean of the steps, which is near enough to compact in time.
        """
        if used.steps <= 1:
            return used
        try:
            last = self._gateway.step_prompt_tokens(used.last_step_id) if used.last_step_id else None
        except LettaError:
            last = None
        return replace(used, prompt_tokens=last if last is not None else used.prompt_tokens // used.steps)
