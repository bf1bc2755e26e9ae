"""Gives an agent the tools and instructions of a request. Used by turns, and by the operator outside of turns."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from bridge.config import Settings
from bridge.errors import BridgeError
from bridge.interception.choose import choose_method
from bridge.interception.close_held import close_held_calls
from bridge.interception.detach import detach_stubs
from bridge.interception.method import Interception
from bridge.letta.capabilities import AgentModel, Loop, ServerFeatures, agent_loop, features_for_agent, schema_form
from bridge.letta.gateway import HELPER_PREFIX, Agent, Gateway
from bridge.shared import SharedParts
from bridge.stubs.cache import StubCache
from bridge.sync.instructions import apply_instructions, plan_instructions
from bridge.sync.new_stubs import NewStubs
from bridge.sync.refused_stubs import RefusedStubs
from bridge.sync.registry import Registry, bindings_beside_own_tools
from bridge.sync.toolset import sync_toolset
from bridge.turn import Binding, Method, NewInput, Stub, ToolChoice, ToolSpec, Turn

log = logging.getLogger(__name__)

AUTO = ToolChoice()


@dataclass(frozen=True, slots=True)
class MethodChoice:
    """The interception method of a turn, with what it depends on. `loop` is the code in Letta that runs the agent."""

    features: ServerFeatures
    loop: Loop
    method: Interception


class Offering:
    def __init__(
        self, gateway: Gateway, registry: Registry, shared: SharedParts, stubs: StubCache, settings: Settings
    ) -> None:
        self._gateway = gateway
        self._registry = registry
        self._locks = shared.locks
        self._open_calls = shared.open_calls
        self._stubs = stubs
        self._settings = settings
        self.refused_stubs = RefusedStubs(gateway)

    def choose_method(
        self, agent: Agent, choice: ToolChoice = AUTO, allowed: frozenset[Method] = frozenset()
    ) -> MethodChoice:
        """Chooses the method that catches the agent's calls. `allowed`: the methods of the client's key; empty: all."""
        features = features_for_agent(self._gateway.features(), sleeptime=agent.sleeptime)
        loop = agent_loop(features.version, agent.type)
        wanted = self._settings.methods.for_agent(agent.id, agent.name)
        return MethodChoice(features, loop, choose_method(features, loop, wanted, choice, allowed))

    def make_stubs(self, agent: Agent, chosen: MethodChoice, specs: Sequence[ToolSpec]) -> Sequence[Stub]:
        """Returns a stub for each tool, in the form that the Letta server and the agent's model need."""
        method = chosen.method
        form = schema_form(chosen.features, chosen.loop, agent.model, runs_stubs=method.runs_stubs)
        return self._stubs.stubs(specs, form, method.stub_kind)

    def offer_stubs(
        self,
        gateway: Gateway,
        agent: Agent,
        stubs: Sequence[Stub],
        method: Interception,
        choice: ToolChoice,
        new: NewStubs,
    ) -> tuple[Agent, Sequence[Binding]]:
        """Attaches exactly these stubs to the agent, or none if the method sends the tools with each message, and sets
        the tool rules. Returns the changed agent, and in both cases the bindings of `stubs`. Missing stubs are made,
        and added to `new`.
        """
        attached = stubs if method.offers_stubs else ()
        agent, bindings = sync_toolset(
            gateway, self._registry, agent, attached, lambda placed: method.tool_rules(placed, choice), new
        )
        return agent, bindings if method.offers_stubs else bindings_beside_own_tools(agent, stubs)

    def names_for_new_agent(
        self, agent_type: str, model: AgentModel, turn: Turn, new: NewStubs
    ) -> tuple[Method, dict[str, str]]:
        """Returns the method for an agent that will be made for this turn, and the names under which its model will see
        the client's tools, by the client's names. Missing stubs are made, and added to `new`.
        """
        agent = Agent("", HELPER_PREFIX, agent_type, model=model)
        chosen = self.choose_method(agent, turn.tool_choice, turn.methods)
        stubs = self.make_stubs(agent, chosen, turn.tools)
        bindings = bindings_beside_own_tools(agent, stubs)
        if chosen.method.offers_stubs:
            bindings, _ = self._registry.place_stubs(agent, stubs, new)
        return chosen.method.name, {binding.stub.spec.name: binding.stub.name for binding in bindings}

    @contextmanager
    def taking_back_if_refused(self, new: NewStubs, gateway: Gateway, agent_id: str = "") -> Iterator[None]:
        """If the block ends with an error that the same request would meet again, takes the stubs in `new` from the
        agent with this id, and has them removed from the server later, unless an agent has them by then. What fails
        here is left to the sweep of unused stubs.
        """
        try:
            yield
        except BridgeError as refusal:
            if new.bindings and not refusal.is_temporary:
                self._registry.forget_stubs(one.stub for one in new.bindings)
                self.refused_stubs.add(new)
                try:
                    if agent_id:
                        detach_stubs(gateway, agent_id, new.bindings)
                except BridgeError as fault:
                    log.warning("new tools of a refused request stay with the agent for now: %s", fault.message)
            raise

    def store_instructions(self, gateway: Gateway, agent: Agent, new_input: NewInput) -> None:
        """Writes the system prompt to a memory block, or removes the block. Calls Letta only if something changes."""
        wanted = new_input.instructions if self._settings.system_prompt == "block" else ""
        apply_instructions(gateway, agent, plan_instructions(agent, wanted))

    # --- outside of a turn ----------------------------------------------------------------------------

    def resync_tools(self, agent_id: str, specs: Sequence[ToolSpec]) -> int:
        """Makes the stubs of these tools again and attaches exactly them. Returns the number of attached stubs."""
        with self._locks.hold_outside_turn(agent_id):
            agent = self._gateway.agent(agent_id)
            chosen = self.choose_method(agent)
            stubs = self.make_stubs(agent, chosen, specs)
            self._registry.forget_stubs(stubs)
            _, bindings = self.offer_stubs(self._gateway, agent, stubs, chosen.method, AUTO, NewStubs())
            return len(bindings) if chosen.method.offers_stubs else 0

    def close_held_calls(self, agent_id: str) -> list[str]:
        """Closes the clients' calls that hold the agent, and returns the names of their stubs. Raises LettaConflict if
        nothing holds the agent, or a call of its own tool.
        """
        with self._locks.hold_outside_turn(agent_id):
            names = close_held_calls(self._gateway, self._gateway.agent(agent_id))
            self._open_calls.forget(agent_id)
            return names

    def detached_stub_names(self, agent: Agent) -> set[str]:
        """Returns the names of stubs that are detached although their tool rules remain: somebody did it by hand."""
        return self._registry.detached_stub_names(agent)
