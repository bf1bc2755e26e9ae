"""What the operator can do on the Letta server. Each action first says what it will do.

No action changes a tool, rule, block or setting that the bridge did not make. An action on an agent waits until the
agent's running turn has ended.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

from bridge.config import Settings
from bridge.errors import BridgeError, StoreUnavailable, UnknownPath
from bridge.history.activity import Activity
from bridge.history.records import ToolCard
from bridge.interception.close_held import held_request, own_calls
from bridge.interception.parallel_calls import is_switched_on, switched_back
from bridge.letta.gateway import Agent, AgentChange, Gateway, Tool
from bridge.offering import Offering
from bridge.operation.snapshots import Snapshots
from bridge.operation.wording import counted, in_brackets, listed
from bridge.sync import instructions
from bridge.sync.cleanup import sweep_server
from bridge.sync.inventory import OwnTool, list_own_tools
from bridge.sync.ownership import client_name_of, digest_of, is_ours
from bridge.sync.plan import OUR_RULES, plan_toolset
from bridge.turn import ToolSpec

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Intent:
    """What an action will do, for the operator to confirm. Without a `button` there is nothing to do."""

    title: str
    sentences: tuple[str, ...]
    button: str = ""


@dataclass(frozen=True, slots=True)
class Action:
    """`plan` changes nothing; `do` returns one sentence that says what was done."""

    plan: Callable[[str], Intent]
    do: Callable[[str], str]


class Operator:
    """The actions by name. `hold` locks an agent."""

    def __init__(
        self,
        gateway: Gateway,
        offering: Offering,
        hold: Callable[[str], AbstractContextManager[object]],
        snapshots: Snapshots,
        activity: Activity,
        settings: Settings,
    ) -> None:
        self._gateway = gateway
        self._offering = offering
        self._hold = hold
        self._snapshots = snapshots
        self._activity = activity
        self._settings = settings
        self._actions: Mapping[str, Action] = {
            "resync": Action(self._plan_resync, self._resync),
            "detach": Action(self._plan_detach, self._detach),
            "close": Action(self._plan_close, self._close),
            "delete": Action(self._plan_delete, self._delete),
            "sweep": Action(self._plan_sweep, self._sweep),
        }

    def plan(self, action: str, target: str) -> Intent:
        return self._find(action).plan(target)

    def do(self, action: str, target: str) -> str:
        """Does the action on what is there now, which may differ from what its plan saw."""
        try:
            done = self._find(action).do(target)
        except BridgeError as failure:
            log.warning("operator: %s %r failed: %s", action, target, failure.message)
            raise
        finally:
            self._snapshots.outdate()
        log.info("operator: %s %r: %s", action, target, done)
        try:
            self._activity.acted(time.time(), done)
        except StoreUnavailable as fault:
            log.warning("an action of the operator is missing in the history: %s", fault.message)
        return done

    def _find(self, action: str) -> Action:
        if action not in self._actions:
            raise UnknownPath(f"There is no action {action!r:.40}.")
        return self._actions[action]

    # --- an agent's toolset ---------------------------------------------------------------------------

    def _plan_resync(self, agent_id: str) -> Intent:
        agent = self._gateway.agent(agent_id)
        _, unknown = self._cards(agent)
        names = [client_name_of(tool) for tool in agent.tools if is_ours(tool)]
        sentences = [
            "The tools of clients that the agent has are compared with what they should be, and repaired: stubs that"
            " somebody changed or deleted by hand, and rules that were left behind.",
            f"It has {_of_clients(len(names))} now{in_brackets(names)}.",
        ]
        if unknown:
            sentences.append(
                f"What the client sent for {listed([client_name_of(tool) for tool in unknown])} is not known any more."
                " These are detached; the next request that offers them brings them back."
            )
        sentences.append("The agent's own tools and rules stay as they are.")
        return Intent(f"Resync {agent.name}", tuple(sentences), "Resync")

    def _resync(self, agent_id: str) -> str:
        agent = self._gateway.agent(agent_id)
        known, _ = self._cards(agent)
        specs = [ToolSpec(card.client_name, card.description, card.parameters, card.strict) for card in known]
        return f"Resynced {agent.name}: it has {_of_clients(self._offering.resync(agent_id, specs))}."

    def _cards(self, agent: Agent) -> tuple[list[ToolCard], list[Tool]]:
        """Returns what clients sent for the agent's stubs, and the stubs for which that is not known any more."""
        found = [(tool, self._activity.tool(digest_of(tool))) for tool in agent.tools if is_ours(tool)]
        return [card for _, card in found if card is not None], [tool for tool, card in found if card is None]

    def _plan_detach(self, agent_id: str) -> Intent:
        agent = self._gateway.agent(agent_id)
        title = f"Detach the bridge's tools from {agent.name}"
        names = [client_name_of(tool) for tool in agent.tools if is_ours(tool)]
        left = self._offering.detached_stub_names(agent)
        block = any(map(instructions.is_ours, agent.blocks))
        parallel = is_switched_on(agent)
        if not (names or left or block or parallel):
            return Intent(title, ("The agent has nothing of the bridge.",))
        sentences = [f"The agent loses {_of_clients(len(names))}{in_brackets(names)}, with their rules."]
        if left:
            sentences.append(f"Rules that earlier tools left behind go, too: {listed(sorted(left))}.")
        if block:
            sentences.append("It loses the memory block with the client's system prompt.")
        if parallel:
            sentences.append("Its model makes one call at a time again, as before the bridge let it make several.")
        sentences += [
            "The stubs stay on the server until a sweep finds that no agent has them.",
            "The next request that offers tools brings them back. The agent's own tools, rules and blocks stay.",
        ]
        return Intent(title, tuple(sentences), "Detach")

    def _detach(self, agent_id: str) -> str:
        self._gateway.agent(agent_id)  # an unknown id must not make a lock
        with self._hold(agent_id):
            agent = self._gateway.agent(agent_id)
            detach_all(self._gateway, agent, self._offering.detached_stub_names(agent))
        return f"Detached {_of_clients(sum(map(is_ours, agent.tools)))} from {agent.name}."

    # --- a pending call -------------------------------------------------------------------------------

    def _plan_close(self, agent_id: str) -> Intent:
        agent = self._gateway.agent(agent_id)
        title = f"Close the pending call of {agent.name}"
        request = held_request(self._gateway, agent)
        if request is None:
            return Intent(title, ("The agent does not wait for the result of any call.",))
        own = own_calls(agent, request)
        if own:
            sentence = f"The agent waits for somebody to approve its own tool {own[0]!r}. Decide about that in Letta."
            return Intent(title, (sentence,))
        sentences = (
            f"The agent waits for the client's result of {listed([call.name for call in request.calls])}.",
            "The call is closed without a result, and the agent takes messages again. No model is asked.",
            "A client that sends the result later gets an error: no call waits for it.",
        )
        return Intent(title, sentences, "Close the call")

    def _close(self, agent_id: str) -> str:
        agent = self._gateway.agent(agent_id)
        return f"Closed the call of {listed(self._offering.close_call(agent_id))} that held {agent.name}."

    # --- a stub ---------------------------------------------------------------------------------------

    def _plan_delete(self, key: str) -> Intent:
        own = self._stub(key)
        users = [agent.name for agent in (*own.agents, *own.ruled)]
        lose = f"{counted(len(users), 'agent')} lose it, with its rules{in_brackets(users)}."
        sentences = (
            f"The stub {own.tool.name!r} is deleted from the Letta server.",
            lose if users else "No agent has it.",
            "The next request that offers this tool creates it again.",
        )
        return Intent(f"Delete the stub of {client_name_of(own.tool)}", sentences, "Delete")

    def _delete(self, key: str) -> str:
        own = self._stub(key)
        for agent in (*own.agents, *own.ruled):
            with self._hold(agent.id):
                _detach_one(self._gateway, self._gateway.agent(agent.id), own.tool)
        self._gateway.delete_tool(own.tool.id)
        return f"Deleted the stub {own.tool.name} ({client_name_of(own.tool)})."

    def _stub(self, key: str) -> OwnTool:
        own = next((own for own in list_own_tools(self._gateway) if key in (digest_of(own.tool), own.tool.id)), None)
        if own is None:
            raise UnknownPath("No tool of a client with this key is on the Letta server.")
        return own

    # --- all stubs ------------------------------------------------------------------------------------

    def _plan_sweep(self, _: str) -> Intent:
        plan = sweep_server(self._gateway, self._settings.stub_idle, dry_run=True)
        parts = (
            ("Deleted, as no agent has had them for too long", plan.deleted),
            ("Marked as idle, as no agent has them now", plan.marked),
            ("Not marked as idle any more, as an agent has them again", plan.unmarked),
        )
        sentences = [f"{words}: {listed(list(map(client_name_of, tools)))}." for words, tools in parts if tools]
        unchanged = f"Unchanged: {_of_clients(len(plan.kept))}."
        if not sentences:
            return Intent("Sweep now", ("There is nothing to sweep.", unchanged))
        return Intent("Sweep now", (*sentences, unchanged, "Other tools are not touched."), "Sweep")

    def _sweep(self, _: str) -> str:
        done = sweep_server(self._gateway, self._settings.stub_idle)
        return (
            f"Swept: {len(done.deleted)} deleted, {len(done.marked)} marked as idle, {len(done.unmarked)} in use again."
        )


def detach_all(gateway: Gateway, agent: Agent, detached_names: set[str]) -> None:
    """Removes everything of the bridge from the agent: tools, rules, the system prompt's block, parallel calls."""
    change = plan_toolset(agent, (), (), detached_names)
    if change is not None:
        gateway.change_agent(agent.id, AgentChange(tool_ids=change.tool_ids, rules=change.rules))
    if is_switched_on(agent):
        gateway.change_agent(agent.id, switched_back(agent))
    instructions.apply_instructions(gateway, agent, instructions.plan_instructions(agent, ""))


def _detach_one(gateway: Gateway, agent: Agent, tool: Tool) -> None:
    """Removes one stub and the bridge's rules for it from the agent."""
    tool_ids = [one.id for one in agent.tools if one.id != tool.id]
    rules = [rule for rule in agent.rules if rule.get("type") not in OUR_RULES or rule.get("tool_name") != tool.name]
    gateway.change_agent(agent.id, AgentChange(tool_ids=tool_ids, rules=rules))


def _of_clients(number: int) -> str:
    return f"{counted(number, 'tool')} of clients"
