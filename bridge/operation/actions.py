"""The actions by which the operator changes the Letta server. They change nothing that the bridge did not make."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from bridge.config import Settings
from bridge.errors import BridgeError, StoreUnavailable, UnknownPath
from bridge.history.activity import Activity
from bridge.history.records import ToolCard
from bridge.interception.close_held import find_held_request, names_of_own_tools
from bridge.interception.parallel_calls import change_to_switch_back, is_switched_on_by_bridge
from bridge.letta.gateway import Agent, AgentChange, Gateway, Tool
from bridge.offering import Offering
from bridge.operation.chat_removal import plan_chat_removal, remove_chat_lists
from bridge.operation.snapshots import Snapshots
from bridge.operation.wording import list_names, names_in_brackets, number_with_noun
from bridge.sync import instructions
from bridge.sync.cleanup import sweep_server
from bridge.sync.inventory import OwnTool, list_own_tools
from bridge.sync.ownership import client_name_of, digest_of, is_ours
from bridge.sync.plan import OUR_RULES, plan_toolset
from bridge.turn import ToolSpec

log = logging.getLogger(__name__)

CHATS_STAY = "Its chats stay: it waits for somebody to decide in Letta about a call of its own tool."


@dataclass(frozen=True, slots=True)
class Intent:
    """What a page tells the operator before an action. `button` is its text; "" if there is nothing to change."""

    title: str
    sentences: tuple[str, ...]
    button: str = ""


@dataclass(frozen=True, slots=True)
class Action:
    """One action on an agent's id or a stub's key. `plan` only says what `do` will change; `do` returns a sentence."""

    plan: Callable[[str], Intent]
    do: Callable[[str], str]


class Operator:
    """Plans and does the operator's actions, by name. `hold` locks an agent as soon as its running turn has ended."""

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
            "resync": Action(self._plan_resync_agent, self._resync_agent),
            "detach": Action(self._plan_detach_agent, self._detach_agent),
            "close": Action(self._plan_close_call, self._close_call),
            "delete": Action(self._plan_delete_stub, self._delete_stub),
            "sweep": Action(self._plan_sweep_stubs, self._sweep_stubs),
        }

    def plan(self, action: str, target: str) -> Intent:
        """Returns what the action will change. A sweep has no target."""
        return self._find_action(action).plan(target)

    def do(self, action: str, target: str) -> str:
        """Does the action and returns one sentence about it, also for the log and the history. Reads the server again,
        because it may have changed after `plan`. Also after a failure, all snapshots are out of date.
        """
        try:
            done = self._find_action(action).do(target)
        except BridgeError as failure:
            log.warning("operator: %s %r failed: %s", action, target, failure.message)
            raise
        finally:
            self._snapshots.outdate()
        log.info("operator: %s %r: %s", action, target, done)
        try:
            self._activity.note_action(time.time(), done)
        except StoreUnavailable as fault:
            log.warning("an action of the operator is missing in the history: %s", fault.message)
        return done

    def _find_action(self, action: str) -> Action:
        if action not in self._actions:
            raise UnknownPath(f"There is no action {action!r:.40}.")
        return self._actions[action]

    # --- an agent's toolset ---------------------------------------------------------------------------

    def _plan_resync_agent(self, agent_id: str) -> Intent:
        agent = self._gateway.agent(agent_id)
        _, unknown = self._tool_cards(agent)
        names = [client_name_of(tool) for tool in agent.tools if is_ours(tool)]
        sentences = [
            "The tools of clients that the agent has are compared with what they should be, and repaired: stubs that"
            " somebody changed or deleted by hand, and rules that were left behind.",
            f"It has {_number_of_client_tools(len(names))} now{names_in_brackets(names)}.",
        ]
        if unknown:
            names = [client_name_of(tool) for tool in unknown]
            sentences.append(
                f"What the client sent for {list_names(names)} is not known any more."
                " These are detached; the next request that offers them brings them back."
            )
        sentences.append("The agent's own tools and rules stay as they are.")
        return Intent(f"Resync {agent.name}", tuple(sentences), "Resync")

    def _resync_agent(self, agent_id: str) -> str:
        """Makes stubs that were changed by hand again from the history; detaches stubs not in the history."""
        agent = self._gateway.agent(agent_id)
        known, _ = self._tool_cards(agent)
        specs = [ToolSpec(card.client_name, card.description, card.parameters, card.strict) for card in known]
        return f"Resynced {agent.name}: it has {_number_of_client_tools(self._offering.resync_tools(agent_id, specs))}."

    def _tool_cards(self, agent: Agent) -> tuple[list[ToolCard], list[Tool]]:
        """Returns the agent's client tools from the history, and its stubs that the history does not have."""
        found = [(tool, self._activity.tool_card(digest_of(tool))) for tool in agent.tools if is_ours(tool)]
        return [card for _, card in found if card is not None], [tool for tool, card in found if card is None]

    def _plan_detach_agent(self, agent_id: str) -> Intent:
        agent = self._gateway.agent(agent_id)
        title = f"Detach the bridge's tools from {agent.name}"
        names = [client_name_of(tool) for tool in agent.tools if is_ours(tool)]
        left = self._offering.detached_stub_names(agent)
        block = any(map(instructions.is_ours, agent.blocks))
        parallel = is_switched_on_by_bridge(agent)
        chats = plan_chat_removal(self._gateway, agent)
        on_chats = chats.sentences if chats is not None else ()
        if not (names or left or block or parallel or (chats is not None and chats.changes)):
            return Intent(title, on_chats or ("The agent has nothing of the bridge.",))
        sentences = [
            f"The agent loses {_number_of_client_tools(len(names))}{names_in_brackets(names)}, with their rules."
        ]
        if left:
            sentences.append(f"Rules that earlier tools left behind go, too: {list_names(sorted(left))}.")
        if block:
            sentences.append("It loses the memory block with the client's system prompt.")
        if parallel:
            sentences.append("Its model makes one call at a time again, as before the bridge let it make several.")
        sentences += on_chats
        sentences += [
            "The stubs stay on the server until a sweep finds that no agent has them.",
            "The next request that offers tools brings them back. The agent's own tools, rules and blocks stay.",
        ]
        return Intent(title, tuple(sentences), "Detach")

    def _detach_agent(self, agent_id: str) -> str:
        self._gateway.agent(agent_id)  # raises an error for an unknown id, for which no lock must be made
        with self._hold(agent_id):
            agent = self._gateway.agent(agent_id)
            whole = remove_all_from_agent(self._gateway, agent, self._offering.detached_stub_names(agent))
        done = f"Detached {_number_of_client_tools(sum(map(is_ours, agent.tools)))} from {agent.name}."
        if not whole:
            return f"{done} {CHATS_STAY}"
        return f"{done} Its main chat is in its context." if agent.has_chats else done

    # --- a pending call -------------------------------------------------------------------------------

    def _plan_close_call(self, agent_id: str) -> Intent:
        """Has no button if the agent waits for no call, or for the approval of a tool of its own."""
        agent = self._gateway.agent(agent_id)
        title = f"Close the pending call of {agent.name}"
        request = find_held_request(self._gateway, agent)
        if request is None:
            return Intent(title, ("The agent does not wait for the result of any call.",))
        own = names_of_own_tools(agent, request)
        if own:
            sentence = f"The agent waits for somebody to approve its own tool {own[0]!r}. Decide about that in Letta."
            return Intent(title, (sentence,))
        sentences = (
            f"The agent waits for the client's result of {list_names([call.name for call in request.calls])}.",
            "The call is closed without a result, and the agent takes messages again. No model is asked.",
            "A client that sends the result later gets an error: no call waits for it.",
        )
        return Intent(title, sentences, "Close the call")

    def _close_call(self, agent_id: str) -> str:
        """Closes the calls of clients' tools that the agent waits for, without results."""
        agent = self._gateway.agent(agent_id)
        return f"Closed the call of {list_names(self._offering.close_held_calls(agent_id))} that held {agent.name}."

    # --- a stub ---------------------------------------------------------------------------------------

    def _plan_delete_stub(self, key: str) -> Intent:
        own = self._find_stub(key)
        users = [agent.name for agent in (*own.agents, *own.ruled)]
        lose = f"{number_with_noun(len(users), 'agent')} lose it, with its rules{names_in_brackets(users)}."
        sentences = (
            f"The stub {own.tool.name!r} is deleted from the Letta server.",
            lose if users else "No agent has it.",
            "The next request that offers this tool creates it again.",
        )
        return Intent(f"Delete the stub of {client_name_of(own.tool)}", sentences, "Delete")

    def _delete_stub(self, key: str) -> str:
        """Removes a stub from all agents that have it or only a rule for it, then deletes it from the Letta server."""
        own = self._find_stub(key)
        for agent in (*own.agents, *own.ruled):
            with self._hold(agent.id):
                _remove_stub_from_agent(self._gateway, self._gateway.agent(agent.id), own.tool)
        self._gateway.delete_tool(own.tool.id)
        return f"Deleted the stub {own.tool.name} ({client_name_of(own.tool)})."

    def _find_stub(self, key: str) -> OwnTool:
        """Returns the stub with this digest or tool id."""
        own = next((own for own in list_own_tools(self._gateway) if key in (digest_of(own.tool), own.tool.id)), None)
        if own is None:
            raise UnknownPath("No tool of a client with this key is on the Letta server.")
        return own

    # --- all stubs ------------------------------------------------------------------------------------

    def _plan_sweep_stubs(self, _: str) -> Intent:
        plan = sweep_server(self._gateway, self._settings.stub_idle, self._settings.most_idle_stubs, dry_run=True)
        sentences = [
            *_sentence_on("Will be deleted, because no agent has had them for too long", plan.deleted),
            *_sentence_on("Will be marked as idle, because no agent has them; a later sweep deletes them", plan.marked),
            *_sentence_on("Will lose the mark of idle ones, because an agent has them again", plan.unmarked),
        ]
        if plan.helpers:
            helpers = number_with_noun(len(plan.helpers), "helper agent")
            sentences.append(f"Will be deleted, because their requests were interrupted: {helpers}.")
        unchanged = f"Unchanged: {_number_of_client_tools(len(plan.kept))}."
        if not sentences:
            return Intent("Sweep now", ("There is nothing to sweep.", unchanged))
        return Intent("Sweep now", (*sentences, unchanged, "Other tools are not touched."), "Sweep")

    def _sweep_stubs(self, _: str) -> str:
        """Marks stubs without agents as idle, deletes those idle for too long, and removes forgotten helper agents."""
        done = sweep_server(self._gateway, self._settings.stub_idle, self._settings.most_idle_stubs)
        return (
            f"Swept: {len(done.deleted)} deleted, {len(done.marked)} marked as idle, {len(done.unmarked)} in use again."
        )


def _sentence_on(fate: str, tools: Sequence[Tool]) -> list[str]:
    """Returns a sentence that names every tool with this fate, as it is called on the server; none without tools."""
    names = ", ".join(sorted(tool.name for tool in tools))
    return [f"{fate} ({len(tools)}): {names}."] if tools else []


def remove_all_from_agent(gateway: Gateway, agent: Agent, detached_names: set[str]) -> bool:
    """Removes everything of the bridge from the agent, which the caller has locked. `detached_names` are stubs that the
    agent does not have any more, but may still have rules for. Returns false if its chats stay: see CHATS_STAY.
    """
    agent = remove_chat_lists(gateway, agent)
    change = plan_toolset(agent, (), (), detached_names)
    if change is not None:
        gateway.change_agent(agent.id, AgentChange(tool_ids=change.tool_ids, rules=change.rules))
    if is_switched_on_by_bridge(agent):
        gateway.change_agent(agent.id, change_to_switch_back(agent))
    instructions.apply_instructions(gateway, agent, instructions.plan_instructions(agent, ""))
    return not agent.has_chats


def _remove_stub_from_agent(gateway: Gateway, agent: Agent, tool: Tool) -> None:
    tool_ids = [one.id for one in agent.tools if one.id != tool.id]
    rules = [rule for rule in agent.rules if rule.get("type") not in OUR_RULES or rule.get("tool_name") != tool.name]
    gateway.change_agent(agent.id, AgentChange(tool_ids=tool_ids, rules=rules))


def _number_of_client_tools(number: int) -> str:
    """Returns "1 tool of clients", "2 tools of clients"."""
    return f"{number_with_noun(number, 'tool')} of clients"
