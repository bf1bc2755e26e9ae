"""What the operator can do to the Letta server. Each action first says what it will do, and touches only what is ours.

What is about an agent waits for the agent's turn, so no action comes in the middle of one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from bridge.config import Settings
from bridge.errors import BridgeError, StoreUnavailable, UnknownPath
from bridge.history.activity import Activity
from bridge.history.records import ToolCard
from bridge.interception.close_held import held_request, own_calls
from bridge.interception.parallel_calls import is_switched_on, switched_back
from bridge.letta.gateway import Agent, AgentChange, Gateway, Tool
from bridge.operation.snapshots import Snapshots
from bridge.operation.wording import counted, in_brackets, listed
from bridge.sync import instructions
from bridge.sync.cleanup import sweep
from bridge.sync.inventory import OwnTool, inventory
from bridge.sync.ownership import client_name_of, digest_of, is_ours
from bridge.sync.plan import OUR_RULES, plan_toolset
from bridge.turn import ToolSpec

log = logging.getLogger(__name__)


class Offering(Protocol):
    """What makes an agent's toolset: the conversation."""

    def resync(self, agent_id: str, specs: Sequence[ToolSpec]) -> int:
        """The agent has exactly these tools of ours, as they should be; how many."""

    def close_call(self, agent_id: str) -> list[str]:
        """Free the agent from the client's calls that it waits at; their names."""

    def left_behind(self, agent: Agent) -> set[str]:
        """Names of stubs that the agent has no more, though their rules are still there."""


@dataclass(frozen=True, slots=True)
class Intent:
    """What an action will do, for the one who has to confirm it. Without `button` there is nothing to do."""

    title: str
    sentences: tuple[str, ...]
    button: str = ""
    back: tuple[str, str] = ("tools", "")


@dataclass(frozen=True, slots=True)
class Action:
    """`plan` changes nothing; `do` answers with one sentence that says what was done."""

    plan: Callable[[str], Intent]
    do: Callable[[str], str]


class Operator:
    """The actions by name. `hold` gives an agent to the one who holds it alone."""

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
        return self._found(action).plan(target)

    def do(self, action: str, target: str) -> str:
        """Do it, whatever was planned before: by what is there now."""
        try:
            done = self._found(action).do(target)
        except BridgeError as failure:
            log.warning("operator: %s %r failed: %s", action, target, failure.message)
            raise
        finally:
            self._snapshots.outdate()
        log.info("operator: %s %r: %s", action, target, done)
        try:
            self._activity.acted(time.time(), done)
        except StoreUnavailable as fault:
            log.warning("an action of the operator could not be written down: %s", fault.message)
        return done

    def _found(self, action: str) -> Action:
        if action not in self._actions:
            raise UnknownPath(f"There is no action {action!r:.40}.")
        return self._actions[action]

    # --- an agent's toolset ---------------------------------------------------------------------------

    def _plan_resync(self, agent_id: str) -> Intent:
        agent = self._gateway.agent(agent_id)
        known, unknown = self._cards(agent)
        names = [client_name_of(tool) for tool in agent.tools if is_ours(tool)]
        sentences = [
            "The tools of clients that the agent has are compared with what they should be, and put right: stubs that"
            " somebody changed or deleted by hand, and rules that were left behind.",
            f"It has {counted(len(known) + len(unknown), 'tool')} of ours now{in_brackets(names)}.",
        ]
        if unknown:
            sentences.append(
                f"What the client sent for {listed([client_name_of(tool) for tool in unknown])} is not known any more."
                " These are detached; the next request that offers them brings them back."
            )
        sentences.append("The agent's own tools and rules stay as they are.")
        return Intent(f"Resync {agent.name}", tuple(sentences), "Resync", ("agents", agent_id))

    def _resync(self, agent_id: str) -> str:
        agent = self._gateway.agent(agent_id)
        known, _ = self._cards(agent)
        specs = [ToolSpec(card.client_name, card.description, card.parameters, card.strict) for card in known]
        count = self._offering.resync(agent_id, specs)
        return f"Resynced {agent.name}: it has {counted(count, 'tool')} of ours."

    def _cards(self, agent: Agent) -> tuple[list[ToolCard], list[Tool]]:
        """Of the agent's tools that are ours those whose client's form is known, and the others."""
        ours = [(tool, self._activity.tool(digest_of(tool))) for tool in agent.tools if is_ours(tool)]
        return [card for _, card in ours if card is not None], [tool for tool, card in ours if card is None]

    def _plan_detach(self, agent_id: str) -> Intent:
        agent = self._gateway.agent(agent_id)
        ours = [client_name_of(tool) for tool in agent.tools if is_ours(tool)]
        left = self._offering.left_behind(agent)
        block = any(map(instructions.is_ours, agent.blocks))
        parallel = is_switched_on(agent)
        if not (ours or left or block or parallel):
            return Intent(
                f"Detach ours from {agent.name}", ("The agent has nothing of ours.",), "", ("agents", agent_id)
            )
        sentences = [f"The agent loses {counted(len(ours), 'tool')} of clients{in_brackets(ours)}, with their rules."]
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
        return Intent(f"Detach ours from {agent.name}", tuple(sentences), "Detach", ("agents", agent_id))

    def _detach(self, agent_id: str) -> str:
        self._gateway.agent(agent_id)  # only what is an agent can be held
        with self._hold(agent_id):
            agent = self._gateway.agent(agent_id)
            count = sum(map(is_ours, agent.tools))
            detach_all(self._gateway, agent, self._offering.left_behind(agent))
        return f"Detached {counted(count, 'tool')} of ours from {agent.name}."

    # --- a call that waits ----------------------------------------------------------------------------

    def _plan_close(self, agent_id: str) -> Intent:
        agent = self._gateway.agent(agent_id)
        title, back = f"Close the pending call of {agent.name}", ("agents", agent_id)
        request = held_request(self._gateway, agent)
        if request is None:
            return Intent(title, ("The agent does not wait for the result of any call.",), "", back)
        own = own_calls(agent, request)
        if own:
            words = f"The agent waits for somebody to approve its own tool {own[0]!r}: that is to be decided in Letta."
            return Intent(title, (words,), "", back)
        sentences = (
            f"The agent waits for the client's result of {listed([call.name for call in request.calls])}.",
            "It is told that there is none, and takes messages again. No model is asked.",
            "A client that sends the result later is told that no call waits for it.",
        )
        return Intent(title, sentences, "Close the call", back)

    def _close(self, agent_id: str) -> str:
        agent = self._gateway.agent(agent_id)
        return f"Closed the call of {listed(self._offering.close_call(agent_id))} that held {agent.name}."

    # --- a stub ---------------------------------------------------------------------------------------

    def _plan_delete(self, key: str) -> Intent:
        own = self._stub(key)
        name, users = client_name_of(own.tool), [agent.name for agent in (*own.agents, *own.ruled)]
        taken = (
            f"{counted(len(users), 'agent')} lose it, with its rules{in_brackets(users)}."
            if users
            else "No agent has it."
        )
        sentences = (
            f"The stub {own.tool.name!r} is deleted from the Letta server.",
            taken,
            "The next request that offers this tool makes it anew.",
        )
        return Intent(f"Delete the stub of {name}", sentences, "Delete", ("tools", key))

    def _delete(self, key: str) -> str:
        own = self._stub(key)
        for agent in (*own.agents, *own.ruled):
            with self._hold(agent.id):
                _take_away(self._gateway, self._gateway.agent(agent.id), own.tool)
        self._gateway.delete_tool(own.tool.id)
        return f"Deleted the stub {own.tool.name} ({client_name_of(own.tool)})."

    def _stub(self, key: str) -> OwnTool:
        found = (own for own in inventory(self._gateway) if key in (digest_of(own.tool), own.tool.id))
        own = next(found, None)
        if own is None:
            raise UnknownPath("No tool of ours with this key is on the Letta server.")
        return own

    # --- all stubs ------------------------------------------------------------------------------------

    def _plan_sweep(self, _: str) -> Intent:
        plan = sweep(self._gateway, self._settings.stub_idle, dry_run=True)
        parts = (
            ("Deleted, as no agent has had them for too long", plan.deleted),
            ("Marked as idle, as no agent has them now", plan.marked),
            ("Freed of that mark, as an agent has them again", plan.unmarked),
        )
        sentences = [f"{words}: {listed(list(map(client_name_of, tools)))}." for words, tools in parts if tools]
        kept = f"{counted(len(plan.kept), 'tool')} of ours stay as they are."
        if not sentences:
            return Intent("Sweep now", ("There is nothing to sweep.", kept))
        return Intent("Sweep now", (*sentences, kept, "Tools of others are not looked at."), "Sweep")

    def _sweep(self, _: str) -> str:
        done = sweep(self._gateway, self._settings.stub_idle)
        return (
            f"Swept: {len(done.deleted)} deleted, {len(done.marked)} marked as idle, {len(done.unmarked)} in use again."
        )


def detach_all(gateway: Gateway, agent: Agent, left_behind: set[str]) -> None:
    """The agent without anything of ours."""
    change = plan_toolset(agent, (), (), left_behind)
    if change is not None:
        gateway.change_agent(agent.id, AgentChange(tool_ids=change.tool_ids, rules=change.rules))
    if is_switched_on(agent):
        gateway.change_agent(agent.id, switched_back(agent))
    instructions.apply_instructions(gateway, agent, instructions.plan_instructions(agent, ""))


def _take_away(gateway: Gateway, agent: Agent, tool: Tool) -> None:
    """One tool of ours and our rules for it."""
    tool_ids = [one.id for one in agent.tools if one.id != tool.id]
    rules = [rule for rule in agent.rules if rule.get("type") not in OUR_RULES or rule.get("tool_name") != tool.name]
    gateway.change_agent(agent.id, AgentChange(tool_ids=tool_ids, rules=rules))
