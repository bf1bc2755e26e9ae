"""Runs one turn with its agent: locks the agent, offers it the tools, sends the messages and reads the answer."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import chain

from bridge.aside import make_helper
from bridge.catalogue.access import ToolAccess
from bridge.chats.chats import Chats, EnteredChat
from bridge.config import Settings
from bridge.directory import Directory
from bridge.errors import Busy, ClientGone, InvalidRequest, LettaError
from bridge.heard.hearing import Hearing
from bridge.interception.answered_calls import run_turn
from bridge.interception.correction import Corrections
from bridge.interception.delivered import has_arrived
from bridge.interception.ending import (
    end_with_call,
    ending_results,
    events_without_agent,
    find_ending_tool,
    without_ending_results,
)
from bridge.interception.method import PreparedTurn
from bridge.interception.runs_under_way import wait_for_earlier_runs
from bridge.journal.newest import NewestTurns
from bridge.large_offers import LargeOffers
from bridge.letta.capabilities import ServerFeatures, streams_tokens_faithfully
from bridge.letta.gateway import Agent, Gateway, Say
from bridge.letta.gateway_while_held import gateway_while_held
from bridge.locks.agents import AgentHold
from bridge.offering import Offering
from bridge.reply_format.checker import check_reply
from bridge.reply_format.final_text import with_checked_text
from bridge.shared import SharedParts
from bridge.stubs.checks import schema_limits
from bridge.sync.new_stubs import NewStubs
from bridge.sync.ownership import names_of_our_tools
from bridge.toolsets import read_toolsets
from bridge.trace import current_trace
from bridge.turn import (
    EndingResults,
    Message,
    MethodChosen,
    NewInput,
    Notice,
    ReplyFormat,
    ToolCall,
    ToolsOffered,
    Turn,
    TurnEvent,
    Used,
    UserMessage,
    waiting_notice,
)

log = logging.getLogger(__name__)

_NOTHING_KNOWN = MethodChosen("")
# What a turn says of its chat when the agent's context changes for it.
_CHANGES_OF_CHAT = {
    "new": "this chat begins with a context of its own",
    "back": "the context of this chat is back",
    "parted": "this chat goes on from where it parted from another one",
}


class Conversation:
    """Runs the turns of one worker: gives each agent what it has not heard yet, and yields what the agent does."""

    def __init__(
        self,
        gateway: Gateway,
        directory: Directory,
        offering: Offering,
        large_offers: LargeOffers,
        chats: Chats,
        shared: SharedParts,
        settings: Settings,
    ) -> None:
        self._gateway = gateway
        self._store = shared.store
        self._locks = shared.locks
        self._open_calls = shared.open_calls
        self._lingering = shared.lingering
        self._newest = NewestTurns(shared.store)
        self._chats = chats
        self._directory = directory
        self._offering = offering
        self._settings = settings
        self._large_offers = large_offers
        self._toolsets = read_toolsets(
            settings.own_files.tools, settings.max_tools, schema_limits(settings.max_depth, settings.max_schema)
        )

    def events(self, turn: Turn, gone: threading.Event) -> Iterator[TurnEvent]:
        """Returns the turn's events; the turn runs while they are read. `gone` is set when no client waits any more: if
        the turn still waits for its agent then, ClientGone is raised. A turn `aside` does not wait for its agent.
        """
        of_endings = () if turn.aside else ending_results(turn.new_input, turn.call_ids)
        turn = replace(turn, new_input=without_ending_results(turn.new_input, of_endings))
        kept = [EndingResults(of_endings)] if of_endings else []
        hearing = Hearing(self._store, turn, self._settings.history_limit)
        if turn.aside:
            return chain(kept, hearing.note(self._answer_aside(turn, hearing, gone)))
        if not turn.new_input.results and not turn.new_input.user_messages:
            return chain(kept, self._run_without_agent(turn))
        return chain(kept, self._run_when_agent_is_free(turn, hearing, gone))

    def cancel(self, turn: Turn, run_id: str) -> None:
        """Cancels the Letta run of a turn that no client waits for; if `run_id` is "", every run of the agent. Not for
        a turn `aside` without `run_id`: it has a helper agent, and the agent's own runs belong to other turns.
        """
        if not self._gateway.features().cancels_runs:
            return
        if run_id or not turn.aside:
            self._gateway.cancel_runs(self._directory.find_id(turn.model), run_id)

    def note_lingering(self, turn: Turn, token: str, began: float) -> None:
        """Lets later turns of the conversation end the turn's attempt with this token, which began at the Unix time
        `began` and lost its client. Not for a turn `aside`, which keeps no other turn waiting.
        """
        if not turn.aside:
            self._lingering.note(self._directory.find_id(turn.model), turn, token, began)

    def _run_without_agent(self, turn: Turn) -> Iterator[TurnEvent]:
        yield from events_without_agent()
        if not turn.is_named:
            return
        agent = self._directory.find(turn.model, turn.visible_agents)
        if self._chats.has_own_context(agent, turn):
            self._chats.note_without_agent(agent, turn)
        else:
            self._newest.note_without_agent(agent.id, turn)

    def _run_when_agent_is_free(self, turn: Turn, hearing: Hearing, gone: threading.Event) -> Iterator[TurnEvent]:
        """Waits until the agent has no other turn, and no open call of another conversation for which the settings tell
        this turn to wait. Then runs the turn under the lock on the agent. Under the lock, looks up the agent again,
        because the name may mean another agent by then, and at the end notes what the agent heard and which calls the
        turn leaves open: the next turn needs both.
        """
        deadline = self._locks.deadline()
        while not gone.is_set():
            agent_id = self._directory.find_id(turn.model, turn.visible_agents)
            end_earlier_turns = self._lingering.earlier_turns_ender(agent_id, turn)
            current_trace().set_agent(agent_id, "", "")  # pages list the turn with its agent while it waits
            with ExitStack() as held:
                hold = yield from self._hold_agent(held, agent_id, deadline, gone, end_earlier_turns)
                agent = self._directory.find(turn.model, turn.visible_agents)
                place = self._chats.place_of_calls(agent, turn)
                refusal = self._open_calls.find_refusal(place, turn)
                others = None if refusal else self._open_calls.find_calls_to_wait_for(place, turn)
                if agent.id == agent_id and not (refusal or others or gone.is_set()):
                    calls: list[ToolCall] = []
                    searches = False
                    events = self._with_ending_call(turn, self._run_while_held(turn, hearing, agent, hold, gone))
                    for event in hearing.note(events, hold.note_at_end):
                        if isinstance(event, ToolCall):
                            calls.append(event)
                        searches = searches or (isinstance(event, ToolsOffered) and event.behind_search > 0)
                        yield event
                    # A client that left does not run the calls. If it comes back, it gets them in a new attempt.
                    self._open_calls.note(place, turn, [] if gone.is_set() else calls, hold.note_at_end)
                    self._large_offers.note_calls(agent_id, calls if searches else (), hold.note_at_end)
                    if not self._chats.has_own_context(agent, turn):
                        self._newest.note(agent_id, turn, hold.note_at_end)
                    return
                hold.keep_unfinished_mark()
            if refusal:
                raise refusal
            if others:
                end_earlier_turns()
                yield waiting_notice("another client's tool result")
                with current_trace().measure_waiting("another client's tool result"):
                    self._open_calls.wait_until_closed(place, others, deadline, gone)
        raise ClientGone.before_its_turn()  # an error, so that a repeat of the request makes a new attempt

    def _hold_agent(
        self,
        held: ExitStack,
        agent_id: str,
        deadline: float,
        gone: threading.Event,
        while_waiting: Callable[[], None],
    ) -> Generator[Notice, None, AgentHold]:
        """Locks the agent until `held` is closed. If another turn has it, says so and waits until `deadline`."""
        try:
            return held.enter_context(self._locks.hold(agent_id, time.monotonic(), gone))
        except Busy:
            yield waiting_notice("another turn")
        return held.enter_context(self._locks.hold(agent_id, deadline, gone, while_waiting))

    def _run_while_held(
        self, turn: Turn, hearing: Hearing, agent: Agent, hold: AgentHold, gone: threading.Event
    ) -> Iterator[TurnEvent]:
        """Runs the turn with a locked agent, with the operator's tools added. If the agent's previous turn was broken
        off, first waits for its runs. If this worker loses the lock, the next call to Letta raises HoldLost.
        """
        if not self._chats.has_own_context(agent, turn):
            self._newest.check(agent.id, turn)
        gateway = gateway_while_held(self._gateway, hold.before_call)
        arrived = partial(has_arrived, gateway, agent, turn)
        agent = yield from wait_for_earlier_runs(gateway, agent, hold, gone, arrived)
        turn = self._toolsets.add_to_turn(turn, (agent.id, agent.name), self._settings.max_tools)
        turn, access = self._large_offers.reduce(turn, agent)
        chat = yield from self._enter_chat(gateway, turn, agent, hold)
        agent, ended = chat.agent, chat.previous_turn_ended
        new_input = hearing.read_new_input(gateway, agent, chat.heard, previous_turn_ended=ended)
        if chat.heard is not None and len(agent.message_ids) == 1:
            new_input = replace(new_input, opens_conversation=True)
        turn = replace(turn, new_input=self._without_results_of_others(turn, new_input))
        if hearing.told_messages:
            yield Notice(f"the agent is told {hearing.told_messages} older messages that it has not heard")
        new = NewStubs(turn.client)
        with self._offering.taking_back_if_refused(new, gateway, agent.id):
            about = MethodChosen("", hearing.told_messages, chat.change)
            yield from self._run_turn(gateway, turn, access, agent, new, ended, gone, about)
        self._chats.leave(gateway, agent, turn)

    def _enter_chat(
        self, gateway: Gateway, turn: Turn, agent: Agent, hold: AgentHold
    ) -> Generator[Notice, None, EnteredChat]:
        """Puts the turn's chat into the agent's context, unless the turn is refused in any case."""
        if self._chats.has_own_context(agent, turn):
            self._check_offer(turn, agent)
        chat = self._chats.enter(gateway, agent, turn, previous_turn_ended=hold.previous_turn_ended)
        if chat.change:
            yield Notice(_CHANGES_OF_CHAT[chat.change])
        return chat

    def _check_offer(self, turn: Turn, agent: Agent) -> None:
        """Raises the errors that the turn would meet anyway: its method, pictures or tools are not possible."""
        chosen = self._offering.choose_method(agent, turn.tool_choice, turn.methods)
        _check_images(turn.new_input.user_messages, chosen.features)
        self._offering.make_stubs(agent, chosen, turn.tools)

    def _without_results_of_others(self, turn: Turn, new_input: NewInput) -> NewInput:
        """Returns the new input without older results in the transcript that are for calls of another client."""
        newest = {result.call_id for result in turn.new_input.results}
        older = (result.call_id for result in new_input.results if result.call_id not in newest)
        others = self._open_calls.clients.calls_of_others(turn, older)
        left = tuple(result for result in new_input.results if result.call_id not in others)
        return replace(new_input, results=left) if others else new_input

    def _with_ending_call(self, turn: Turn, events: Iterator[TurnEvent]) -> Iterator[TurnEvent]:
        """Makes the agent's text a call of the ending tool (BRIDGE_FINAL_TOOLS), if the turn has such a tool."""
        tool = find_ending_tool(turn.tools, self._settings.final_tools)
        return end_with_call(events, tool, turn.call_ids) if tool else events

    def _answer_aside(self, turn: Turn, hearing: Hearing, gone: threading.Event) -> Iterator[TurnEvent]:
        """Runs a turn with a helper agent, deleted afterwards. No other turn uses that agent, so it needs no lock."""
        agent = self._directory.find(turn.model, turn.visible_agents)
        turn, access = self._large_offers.reduce(turn, agent)
        hearing.set_listener(agent.id, self._chats.chat_of_aside(agent, turn))
        _check_images(turn.transcript, self._gateway.features())
        new = NewStubs(turn.client)
        with self._offering.taking_back_if_refused(new, self._gateway):
            helper, turn = make_helper(self._gateway, self._offering, agent, turn, new)
            try:
                events = self._run_turn(self._gateway, turn, access, helper, new, True, gone)
                # The answer to a request that a SideRule recognised stays text, because its client ignores calls.
                yield from events if turn.side_rule else self._with_ending_call(turn, events)
            finally:
                self._remove_helper(helper)

    def _remove_helper(self, helper: Agent) -> None:
        try:
            self._gateway.delete_agent(helper.id)
        except LettaError as fault:  # the sweep of unused tools and agents removes it later
            log.warning("a helper agent could not be removed: %s", fault.message)

    def _run_turn(
        self,
        gateway: Gateway,
        turn: Turn,
        access: ToolAccess | None,
        agent: Agent,
        new: NewStubs,
        previous_turn_ended: bool,
        gone: threading.Event,
        about: MethodChosen = _NOTHING_KNOWN,
    ) -> Iterator[TurnEvent]:
        """Chooses the interception method, gives the agent the stubs and instructions, and runs the method. Missing
        stubs are made, and added to `new`. `access`: the tools by which the agent reaches those that it does not get.
        `about`: what is known of the turn before the method is chosen.
        """
        current_trace().set_agent(agent.id, agent.name, agent.type)
        offering, new_input = self._offering, turn.new_input
        chosen = offering.choose_method(agent, turn.tool_choice, turn.methods)
        features, method = chosen.features, chosen.method
        _check_images((*new_input.unheard, *new_input.user_messages), features)
        yield replace(about, method=method.name)
        stubs = offering.make_stubs(agent, chosen, turn.tools)
        offering.store_instructions(gateway, agent, new_input)
        unfinished = None if previous_turn_ended else names_of_our_tools(agent)
        agent, bindings = offering.offer_stubs(gateway, agent, stubs, method, turn.tool_choice, new)
        if access is not None:
            access = access.shown_as({binding.stub.spec.name: binding.stub.name for binding in bindings})
        clients = access.without_its_own(bindings) if access else tuple(bindings)
        hidden = len(access.catalogue) - len(clients) if access else 0
        yield ToolsOffered(agent.id, agent.name, clients, new_input.results, hidden)
        prepared = PreparedTurn(
            gateway=gateway,
            agent=agent,
            features=features,
            loop=chosen.loop,
            bindings=bindings,
            new_input=new_input,
            opening=self._opening_messages(turn, new_input),
            by_token=turn.stream and streams_tokens_faithfully(chosen.loop),
            call_ids=turn.call_ids,
            parallel=turn.parallel_tool_calls,
            unfinished_stubs=unfinished,
            turn_id=turn.id,
            made_with=agent.message_ids[-1] if turn.aside else "",
            access=access,
        )
        run = run_turn(method, prepared, gone, repeated=turn.repeated)
        corrections = Corrections(method, prepared, self._settings.format_retries, gone, repeated=turn.repeated)
        for event in _in_wanted_form(run, turn.reply_format, corrections):
            yield self._with_last_prompt(event) if isinstance(event, Used) else event

    def _opening_messages(self, turn: Turn, new_input: NewInput) -> Sequence[Say]:
        """Returns the system message to send first, if any. BRIDGE_SYSTEM_PROMPT=block: none, as a memory block has the
        instructions; "message": the instructions, to open a conversation. Otherwise only the form of the reply.
        """
        if self._settings.system_prompt == "block" or not new_input.instructions:
            return ()
        opens = self._settings.system_prompt == "message" and new_input.opens_conversation
        form = turn.reply_format.instruction if turn.reply_format else ""
        text = new_input.instructions if opens else form
        return (Say("system", text),) if text else ()

    def _with_last_prompt(self, used: Used) -> Used:
        """Returns the usage with the prompt tokens of the last step, not the sum, to show how full the context is. Some
        Letta servers do not know them, and Letta 0.12 to 0.15 gives the sum so far: then the mean of the steps is used,
        which is near enough for a client to compact its transcript in time.
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


def _check_images(sent: Iterable[Message | UserMessage], features: ServerFeatures) -> None:
    """Refuses pictures that the Letta server does not take."""
    if any(message.images for message in sent) and not features.takes_images:
        raise InvalidRequest(f"Letta {features.version_text} takes no pictures in messages.", param="messages")


def _in_wanted_form(
    run: Iterator[TurnEvent], form: ReplyFormat | None, corrections: Corrections
) -> Iterator[TurnEvent]:
    """Returns the events of a turn with the form of its final text checked. Asks again only while a client waits."""
    if form is None:
        return run
    return with_checked_text(run, lambda text: check_reply(text, form), corrections.ask_again)
