"""Locks an agent for requests of Letta's own API that are passed on, so that it has one turn at a time."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from bridge.chats.chats import Chats
from bridge.errors import BridgeError, ClientGone, LettaNotFound
from bridge.interception.close_held import close_request, find_held_request, names_of_own_tools
from bridge.interception.parallel_calls import change_to_switch_back, is_switched_on_by_bridge
from bridge.interception.runs_under_way import wait_for_earlier_runs, wait_silently
from bridge.letta.gateway import Agent, ForeignCall, Gateway
from bridge.letta.gateway_while_held import gateway_while_held
from bridge.locks.agents import AgentHold
from bridge.offering import Offering
from bridge.shared import SharedParts
from bridge.sync.new_stubs import NewStubs
from bridge.sync.ownership import is_ours
from bridge.turn import NewInput, ToolChoice, Turn

log = logging.getLogger(__name__)


class Guard:
    """Gives requests an agent to themselves. `held` in the docstrings: until the `with` block ends."""

    def __init__(self, gateway: Gateway, offering: Offering, chats: Chats, shared: SharedParts) -> None:
        self._gateway = gateway
        self._offering = offering
        self._chats = chats
        self._locks = shared.locks
        self._open_calls = shared.open_calls

    @contextmanager
    def for_change(self, agent_id: str, gone: threading.Event) -> Iterator[None]:
        """Holds the agent for a change of it that makes it say nothing, with its main chat in the context, which the
        change may be about. Raises ClientGone if `gone` is set before.
        """
        with self._locks.hold(agent_id, gone=gone) as hold:
            hold.keep_unfinished_mark()
            with suppress(LettaNotFound):
                self._enter_main(agent_id, hold, gone)
            yield

    def forget_deleted(self, agent_id: str) -> None:
        """Removes the lists of chats whose messages a reset has deleted. The agent must still be held. Only logs a
        failure.
        """
        try:
            self._chats.forget_deleted(self._gateway, self._gateway.agent(agent_id))
        except BridgeError as failure:
            log.warning("the chats of an agent without messages could not be forgotten: %s", failure.message)

    def _enter_main(self, agent_id: str, hold: AgentHold, gone: threading.Event) -> None:
        agent = self._gateway.agent(agent_id)
        if self._chats.has_main_in_context(agent):
            return
        agent = wait_silently(wait_for_earlier_runs(self._gateway, agent, hold, gone))
        self._chats.enter_main(self._gateway, agent, previous_turn_ended=hold.previous_turn_ended)

    @contextmanager
    def for_message(self, turn: Turn, gone: threading.Event) -> Iterator[AgentHold]:
        """Holds the agent for a message that Letta answers itself, without the tools and instructions of clients.
        `turn` says whose message it is. Waits for the open calls of other conversations as every turn does, and then
        closes them. The hold counts as unfinished until the caller says that Letta's answer was complete. Raises
        ClientGone if `gone` is set before: a client that has left may send its message again.
        """
        deadline = self._locks.deadline()
        while not gone.is_set():
            with self._locks.hold(turn.model, deadline, gone) as hold:
                agent = self._gateway.agent(turn.model)
                place = self._chats.place_of_calls(agent, turn)
                refusal = self._open_calls.find_refusal(place, turn)
                others = None if refusal else self._open_calls.find_calls_to_wait_for(place, turn)
                if not (refusal or others or gone.is_set()):
                    self._prepare(agent, turn, hold, gone)
                    hold.unfinished = True
                    yield hold
                    self._open_calls.forget(place)
                    if not hold.unfinished:
                        self._chats.leave(self._gateway, agent, turn)
                    return
                hold.keep_unfinished_mark()
            if refusal:
                raise refusal
            if others:
                self._open_calls.wait_until_closed(place, others, deadline, gone)
        raise ClientGone.before_its_turn()

    def end_runs(self, agent_id: str, conversation: str) -> None:
        """Cancels the run of a message whose client has left, where the server really ends a cancelled run. The agent
        must still be held. `conversation` is the path of a conversation of Letta's own, or any other name. Only logs a
        failure.
        """
        try:
            if not self._gateway.features().cancels_runs:
                return
            if conversation.startswith("/"):
                self._gateway.forward(ForeignCall("POST", f"{conversation}/cancel")).close()
            else:
                self._gateway.cancel_runs(agent_id, "")
        except BridgeError as failure:
            log.warning("the run of a client that left could not be cancelled: %s", failure.message)

    def waits_for_own_tool(self, agent_id: str) -> bool:
        """Returns whether the agent waits for somebody to approve a call of its own tools."""
        if not self._gateway.features().approvals:
            return False
        agent = self._gateway.agent(agent_id)
        request = find_held_request(self._gateway, agent)
        return request is not None and bool(names_of_own_tools(agent, request))

    def _prepare(self, agent: Agent, turn: Turn, hold: AgentHold, gone: threading.Event) -> None:
        """Puts the chat of the message into the context, detaches the stubs, closes calls of clients that hold the
        chat, and gives the agent back its owner's setting for parallel calls. First waits for the runs of a turn that
        was broken off.
        """
        agent_id = agent.id
        gateway = gateway_while_held(self._gateway, hold.before_call)
        agent = wait_silently(wait_for_earlier_runs(gateway, agent, hold, gone))
        agent = self._chats.enter(gateway, agent, turn, previous_turn_ended=hold.previous_turn_ended).agent
        request = find_held_request(gateway, agent) if gateway.features().approvals else None
        if request is not None and not names_of_own_tools(agent, request):
            close_request(gateway, agent, request)
            agent = gateway.agent(agent_id)
        self._offering.store_instructions(gateway, agent, NewInput(()))
        if any(is_ours(tool) for tool in agent.tools):
            method = self._offering.choose_method(agent).method
            self._offering.offer_stubs(gateway, agent, (), method, ToolChoice(), NewStubs())
        if is_switched_on_by_bridge(agent):
            gateway.change_agent(agent_id, change_to_switch_back(agent))
