"""The story of one turn."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace

from bridge.config import Settings
from bridge.dialects.openai.side_requests import side_rule, told_at_once
from bridge.dialects.openai.transcript import instructions_of, what_is_new
from bridge.directory import Directory
from bridge.errors import ClientGone, InvalidRequest, LettaError
from bridge.interception.choose import choose_method
from bridge.interception.close_held import close_held
from bridge.interception.delivered import without_delivered
from bridge.interception.ending import ended_by_call, ending_tool, nothing_to_do, without_endings
from bridge.interception.method import Interception, PreparedTurn
from bridge.interception.underway import wait_for_its_runs
from bridge.letta.capabilities import (
    agent_loop,
    features_for,
    schema_form,
    streams_tokens_faithfully,
)
from bridge.letta.fence import fenced
from bridge.letta.gateway import Agent, Gateway, Say
from bridge.locks.agents import AgentHold
from bridge.locks.open_calls import OpenCalls
from bridge.shared import Shared
from bridge.stubs.checks import limits_of
from bridge.stubs.remembered import RememberedStubs
from bridge.sync.instructions import apply_instructions, plan_instructions
from bridge.sync.ownership import is_ours
from bridge.sync.registry import Registry, beside_own_tools
from bridge.sync.toolset import sync_toolset
from bridge.toolsets import read_toolsets
from bridge.trace import counted_as_waiting, current
from bridge.turn import (
    Binding,
    MethodChosen,
    NewInput,
    SchemaForm,
    Stub,
    ToolChoice,
    ToolsOffered,
    ToolSpec,
    Turn,
    TurnEvent,
    Used,
)

log = logging.getLogger(__name__)


class Conversation:
    """Gives the agent what is new in the transcript and yields what happens."""

    def __init__(
        self, gateway: Gateway, directory: Directory, registry: Registry, shared: Shared, settings: Settings
    ) -> None:
        self._gateway = gateway
        self._locks = shared.locks
        self._open_calls = OpenCalls(shared.store, settings.meanwhile, settings.tool_wait)
        self._directory = directory
        self._registry = registry
        self._settings = settings
        limits = limits_of(settings.max_depth, settings.max_schema)
        self._toolsets = read_toolsets(settings.toolsets, settings.max_tools, limits)
        self.stubs = RememberedStubs(limits)

    def events(self, turn: Turn, gone: threading.Event) -> Iterator[TurnEvent]:
        """`gone` is set when nobody waits for the answer any more: a turn that has not begun then never begins."""
        rule = side_rule(turn, self._settings.side_rules)
        if turn.aside or rule:
            aside = self._aside(turn)
            # What a rule takes for a summary stays text, which is what the client wants: it would drop a call.
            yield from aside if rule else self._ended(turn, aside)
            return
        news = without_endings(what_is_new(turn))
        if not news.results and not news.said:
            yield from nothing_to_do()
            return
        deadline = self._locks.deadline()
        while not gone.is_set():
            agent_id = self._directory.locate(turn.model)
            with counted_as_waiting(self._locks.hold(agent_id, deadline, gone)) as lease:
                agent = self._directory.find(turn.model)
                others = self._open_calls.in_the_way(agent_id, turn)
                if agent.id == agent_id and not others and not gone.is_set():
                    events = self._with_agent(turn, news, agent, lease, gone)
                    yield from self._ended(turn, self._open_calls.noting(agent_id, turn, events))
                    return
                lease.pass_on()
            if others:
                self._open_calls.wait(agent_id, others, deadline, gone)
        raise ClientGone.before_its_turn()  # no end: it may come back for one

    def cancel(self, turn: Turn, run_id: str) -> None:
        """End the run of a turn that has begun and that nobody waits for, where the server can.

        Without a name it is any run of the agent, and one aside is not the agent's: the conversation may have another.
        """
        if not self._gateway.features().cancels_runs:
            return
        if run_id or not (turn.aside or side_rule(turn, self._settings.side_rules)):
            self._gateway.cancel(self._directory.locate(turn.model), run_id)

    def _with_agent(
        self, turn: Turn, news: NewInput, agent: Agent, lease: AgentHold, gone: threading.Event
    ) -> Iterator[TurnEvent]:
        """The turn, once a run that a broken-off turn left behind has ended."""
        gateway = fenced(self._gateway, lease.check)
        if not lease.previous_turn_ended:
            wait_for_its_runs(gateway, agent.id, gone)
            if gone.is_set():
                raise ClientGone.before_its_turn()
            agent = gateway.agent(agent.id)  # a run may have ended after the agent was read, before it was asked for
        turn = self._toolsets.added(turn, (agent.id, agent.name), self._settings.max_tools)
        yield from self._turn(gateway, turn, news, agent, lease.previous_turn_ended)

    def _ended(self, turn: Turn, events: Iterator[TurnEvent]) -> Iterator[TurnEvent]:
        tool = ending_tool(turn.tools, self._settings.final_tools)
        return ended_by_call(events, tool) if tool else events

    def _aside(self, turn: Turn) -> Iterator[TurnEvent]:
        """A request that must not reach the agent: answered by its model through an agent made for this one request."""
        news = told_at_once(turn)
        helper = self._gateway.make_helper(self._directory.find(turn.model).id, instructions_of(turn))
        try:
            yield from self._turn(self._gateway, turn, news, helper, True)
        finally:
            self._remove(helper)

    def _remove(self, helper: Agent) -> None:
        try:
            self._gateway.delete_agent(helper.id)
        except LettaError as fault:  # the sweep finds it
            log.warning("a helper agent could not be removed: %s", fault.message)

    def _turn(
        self, gateway: Gateway, turn: Turn, news: NewInput, agent: Agent, previous_turn_ended: bool
    ) -> Iterator[TurnEvent]:
        current().set_agent(agent.id, agent.name, agent.type)
        features = features_for(gateway.features(), sleeptime=agent.sleeptime)
        if any(said.images for said in news.said) and not features.takes_images:
            raise InvalidRequest(f"Letta {features.version_text} takes no pictures in messages.", param="messages")
        loop = agent_loop(features.version, agent.type)
        wanted = self._settings.methods.of(agent.id, agent.name)
        method = choose_method(features, loop, wanted, turn.tool_choice, turn.methods)
        yield MethodChosen(method.name)
        form = schema_form(features, loop, agent.model, runs_stubs=method.runs_stubs)
        stubs = self._stubs_of(turn, form, method)
        self._keep_instructions(gateway, agent, news)
        unsettled = None if previous_turn_ended else tuple(tool.name for tool in agent.tools if is_ours(tool))
        agent, bindings = self._offer(gateway, agent, stubs, method, turn)
        yield ToolsOffered(agent.id, agent.name, tuple(bindings), news.results)
        scene = PreparedTurn(
            gateway=gateway,
            agent=agent,
            features=features,
            loop=loop,
            bindings=bindings,
            news=news,
            opening=self._opening(turn, news),
            by_token=turn.stream and streams_tokens_faithfully(loop),
            parallel=turn.parallel_tool_calls,
            unsettled=unsettled,
            turn_id=turn.id,
        )
        for event in method.run(without_delivered(scene) if turn.repeated else scene):
            yield self._last_step(event) if isinstance(event, Used) else event

    def _stubs_of(self, turn: Turn, form: SchemaForm, method: Interception) -> list[Stub]:
        return [
            self.stubs.stub(spec, form, method.stub_kind, f"tools[{index}].function")
            for index, spec in enumerate(turn.tools)
        ]

    def _keep_instructions(self, gateway: Gateway, agent: Agent, news: NewInput) -> None:
        wanted = news.instructions if self._settings.system_prompt == "block" else ""
        apply_instructions(gateway, agent, plan_instructions(agent, wanted))

    def _offer(
        self, gateway: Gateway, agent: Agent, stubs: Sequence[Stub], method: Interception, turn: Turn
    ) -> tuple[Agent, Sequence[Binding]]:
        """The agent's toolset becomes the request's; where tools go with the message, stubs of before still leave."""
        attached = stubs if method.offers_stubs else ()
        agent, bindings = sync_toolset(
            gateway, self._registry, agent, attached, lambda placed: method.rules(placed, turn.tool_choice)
        )
        return agent, bindings if method.offers_stubs else beside_own_tools(agent, stubs)

    def _opening(self, turn: Turn, news: NewInput) -> Sequence[Say]:
        """Instructions where no block has them. The form of the reply is asked for in every turn that wants one."""
        if self._settings.system_prompt == "block" or not news.instructions:
            return ()
        opens = self._settings.system_prompt == "message" and news.opens_conversation
        told = news.instructions if opens else turn.reply_format
        return (Say("system", told),) if told else ()

    def _last_step(self, used: Used) -> Used:
        """Usage as a client needs it to judge how full the context is: the prompt of the last step, not the sum.

        Where a server does not know the step, or notes with it the sum so far (0.12 to 0.15), it is the mean of the
        steps, which is near enough to compact in time.
        """
        if used.steps <= 1:
            return used
        try:
            last = self._gateway.step_prompt_tokens(used.last_step_id) if used.last_step_id else None
        except LettaError:
            last = None
        if last is None or last >= used.prompt_tokens:
            last = used.prompt_tokens // used.steps
        return replace(used, prompt_tokens=last)

    def resync(self, agent_id: str, specs: Sequence[ToolSpec]) -> int:
        """Outside of a turn: the agent has exactly these tools of ours, as they should be; how many."""
        with self._locks.borrow(agent_id):
            agent = self._gateway.agent(agent_id)
            features = features_for(self._gateway.features(), sleeptime=agent.sleeptime)
            loop = agent_loop(features.version, agent.type)
            method = choose_method(features, loop, self._settings.methods.of(agent.id, agent.name), ToolChoice())
            turn = Turn(agent_id, (), tuple(specs))
            form = schema_form(features, loop, agent.model, runs_stubs=method.runs_stubs)
            stubs = self._stubs_of(turn, form, method)
            self._registry.forget(stubs)
            _, bindings = self._offer(self._gateway, agent, stubs, method, turn)
            return len(bindings) if method.offers_stubs else 0

    def close_call(self, agent_id: str) -> list[str]:
        """Outside of a turn: free the agent from the client's calls that it waits at; their names."""
        with self._locks.borrow(agent_id):
            agent = self._gateway.agent(agent_id)
            names = close_held(self._gateway, agent)
            self._open_calls.forget(agent_id)
            return names

    def left_behind(self, agent: Agent) -> set[str]:
        """Names of stubs that the agent has no more, though their rules are still there."""
        return self._registry.left_behind(agent)
