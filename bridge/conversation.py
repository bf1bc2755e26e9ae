"""The story of one turn."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace

from bridge.config import Settings
from bridge.coordination.locks import AgentLocks
from bridge.directory import Directory
from bridge.errors import InvalidRequest, LettaError
from bridge.interception.choose import choose_method
from bridge.interception.ending import ended_by_call, ending_tool, nothing_to_do, without_endings
from bridge.interception.method import Interception, Scene
from bridge.letta.capabilities import (
    agent_loop,
    schema_dialect,
    streams_tokens_faithfully,
)
from bridge.letta.gateway import Agent, Gateway, Say
from bridge.openai.side_requests import side_rule, told_at_once
from bridge.openai.transcript import instructions_of, what_is_new
from bridge.stubs.checks import Limits, limits_of
from bridge.stubs.converter import make_stub
from bridge.sync.instructions import apply_instructions, plan_instructions
from bridge.sync.ownership import is_ours
from bridge.sync.registry import Registry, beside_own_tools
from bridge.sync.toolset import sync_toolset
from bridge.trace import current, waiting_for
from bridge.turn import Binding, Event, MethodChosen, News, SchemaDialect, Stub, Turn, Used


class Conversation:
    """Gives the agent what is new in the transcript and yields what happens."""

    def __init__(
        self, gateway: Gateway, directory: Directory, registry: Registry, locks: AgentLocks, settings: Settings
    ) -> None:
        self._gateway = gateway
        self._locks = locks
        self._directory = directory
        self._registry = registry
        self._settings = settings

    def events(self, turn: Turn, gone: threading.Event) -> Iterator[Event]:
        """`gone` is set when nobody waits for the answer any more: a turn that has not begun then never begins."""
        if turn.aside or side_rule(turn, self._settings.side_rules):
            yield from self._aside(turn)
            return
        news = without_endings(what_is_new(turn))
        if not news.results and not news.said:
            yield from nothing_to_do()
            return
        while not gone.is_set():
            agent_id = self._directory.locate(turn.model)
            with waiting_for(self._locks.hold(agent_id)) as settled:
                agent = self._directory.find(turn.model)
                if agent.id == agent_id and not gone.is_set():
                    yield from self._ended(turn, self._turn(turn, news, agent, settled))
                    return

    def cancel(self, turn: Turn, run_id: str) -> None:
        """End the run of a turn that has begun and that nobody waits for, where the server can."""
        if self._gateway.features().cancels_runs:
            self._gateway.cancel(self._directory.locate(turn.model), run_id)

    def _ended(self, turn: Turn, events: Iterator[Event]) -> Iterator[Event]:
        tool = ending_tool(turn.tools, self._settings.final_tools)
        return ended_by_call(events, tool) if tool else events

    def _aside(self, turn: Turn) -> Iterator[Event]:
        """A request that must not reach the agent: answered by its model through an agent made for this one request."""
        helper = self._gateway.make_helper(self._directory.locate(turn.model), instructions_of(turn))
        try:
            yield from self._turn(turn, told_at_once(turn), helper, True)
        finally:
            self._gateway.delete_agent(helper.id)

    def _turn(self, turn: Turn, news: News, agent: Agent, settled: bool) -> Iterator[Event]:
        current().meets(agent.id, agent.name, agent.type)
        features = self._gateway.features()
        if any(said.images for said in news.said) and not features.takes_images:
            raise InvalidRequest(f"Letta {features.version_text} takes no pictures in messages.", param="messages")
        loop = agent_loop(features.version, agent.type)
        wanted = self._settings.methods.of(agent.id, agent.name)
        method = choose_method(features, loop, wanted, turn.tool_choice, turn.methods)
        yield MethodChosen(method.name)
        dialect = schema_dialect(features, loop, agent.model, runs_stubs=method.runs_stubs)
        stubs = _stubs(turn, dialect, method, limits_of(self._settings.max_depth, self._settings.max_schema))
        self._keep_instructions(agent, news)
        unsettled = () if settled else tuple(tool.name for tool in agent.tools if is_ours(tool))
        agent, bindings = self._offer(agent, stubs, method, turn)
        scene = Scene(
            gateway=self._gateway,
            agent=agent,
            features=features,
            loop=loop,
            bindings=bindings,
            news=news,
            opening=self._opening(news),
            by_token=turn.stream and streams_tokens_faithfully(loop),
            parallel=turn.parallel_tool_calls,
            unsettled=unsettled,
        )
        for event in method.play(scene):
            yield self._last_step(event) if isinstance(event, Used) else event

    def _keep_instructions(self, agent: Agent, news: News) -> None:
        wanted = news.instructions if self._settings.system_prompt == "block" else ""
        apply_instructions(self._gateway, agent, plan_instructions(agent, wanted))

    def _offer(
        self, agent: Agent, stubs: Sequence[Stub], method: Interception, turn: Turn
    ) -> tuple[Agent, Sequence[Binding]]:
        """The agent's toolset becomes the request's; where tools go with the message, stubs of before still leave."""
        attached = stubs if method.offers_stubs else ()
        agent, bindings = sync_toolset(
            self._gateway, self._registry, agent, attached, lambda placed: method.rules(placed, turn.tool_choice)
        )
        return agent, bindings if method.offers_stubs else beside_own_tools(agent, stubs)

    def _opening(self, news: News) -> Sequence[Say]:
        as_message = self._settings.system_prompt == "message" and news.opens_conversation
        return (Say("system", news.instructions),) if as_message and news.instructions else ()

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


def _stubs(turn: Turn, dialect: SchemaDialect, method: Interception, limits: Limits) -> list[Stub]:
    return [
        make_stub(spec, dialect, kind=method.stub_kind, where=f"tools[{index}].function", limits=limits)
        for index, spec in enumerate(turn.tools)
    ]
