"""Gives an agent a few of many tools that a client offers, and a search for the others.

Which ones the agent gets follows from the request, and from what the agent has called before. Models choose badly among
hundreds of tools, most providers refuse more than 128, and each tool of an agent is one on the Letta server.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from bridge.catalogue.access import AccessNames, ToolAccess, access_tools, choose_names
from bridge.catalogue.choice import choose_direct
from bridge.catalogue.known_catalogues import KnownCatalogues
from bridge.config import Settings
from bridge.errors import InvalidRequest, StoreUnavailable
from bridge.letta.gateway import Agent
from bridge.reply_format.checker import find_fault
from bridge.store.port import Append, Store, Write
from bridge.stubs.cache import StubCache
from bridge.stubs.normalise import normalise_schema
from bridge.sync.ownership import client_name_of, is_ours
from bridge.turn import ToolCall, ToolSpec, Turn

log = logging.getLogger(__name__)

# How many calls of an agent are kept to give it their tools again, and for how many seconds after the last.
MOST_CALLS = 100
# How many names of the tools for the search are remembered: they differ where a client has tools of these names.
MOST_NAMES = 16
# For so many agents this worker remembers what it has noted.
MOST_AGENTS = 10_000
KEEP = 30 * 86_400.0


class LargeOffers:
    """Decides for each turn. `stubs` checks the tools that an agent gets."""

    def __init__(self, store: Store, stubs: StubCache, settings: Settings) -> None:
        self._store = store
        self._stubs = stubs
        self._settings = settings
        self._catalogues = KnownCatalogues()
        self._noted: dict[str, AccessNames] = {}
        self._access_tools = lru_cache(MOST_NAMES)(lambda names: stubs.check_tools(access_tools(names)))

    def reduce(self, turn: Turn, agent: Agent) -> tuple[Turn, ToolAccess | None]:
        """Returns the turn with the tools that the agent gets, and its access to the others; None if it gets all."""
        if not self._is_large(turn, agent):
            self._check_number(turn)
            return turn, None
        tools = self._stubs.check_tools(turn.tools, spends_work=False)  # an unchanged list is the same object again
        catalogue = self._catalogues.catalogue(tools, comes_again=self._stubs.is_remembered(tools))
        access = ToolAccess(catalogue, choose_names(catalogue), _find_arguments_fault)
        self._note_names(agent, access.names)
        always = self._settings.tool_search.always | self._settings.final_tools
        direct = choose_direct(tools, turn.tool_choice.name, always, self._used_names(turn, agent))
        given = {spec.name for spec in self._stubs.fitting_tools(direct, turn.tool_choice.name)}
        if len(given) == len(tools):
            return turn, None
        given_tools = tuple(spec for spec in direct if spec.name in given)
        checked = self._stubs.check_tools((*given_tools, *self._access_tools(access.names)))
        return replace(turn, tools=checked), access

    def _note_names(self, agent: Agent, names: AccessNames) -> None:
        """Notes under which names this agent has the three tools, by which its messages are shown to clients."""
        if self._noted.get(agent.id) == names:
            return
        if len(self._noted) >= MOST_AGENTS:
            self._noted.clear()
        try:
            self._store.put(_names_key(agent.id), names.to_text(), KEEP)
            self._noted[agent.id] = names
        except StoreUnavailable as fault:
            log.warning("the names of an agent's tools for the search could not be noted: %s", fault.message)

    def _is_large(self, turn: Turn, agent: Agent) -> bool:
        limit = turn.search_above
        if limit is None:
            limit = self._settings.tool_search.above_for(agent.id, agent.name)
        return 0 < limit < len(turn.tools)

    def _check_number(self, turn: Turn) -> None:
        most = self._settings.most_attached
        if len(turn.tools) > most:
            raise InvalidRequest(
                f"The request has {len(turn.tools)} tools; the limit is {most} without the tool search, which"
                " BRIDGE_TOOL_SEARCH or the option `search` of this client's key has switched off.",
                param="tools",
                code="too_many_tools",
            )

    def _used_names(self, turn: Turn, agent: Agent) -> Iterator[str]:
        """Yields the names of tools that were called in the transcript, and of those that the agent called in earlier
        turns, the newest first; then of those that it has, so that they are not exchanged without need.
        """
        yield from (call.name for message in reversed(turn.transcript) for call in reversed(message.tool_calls))
        try:
            yield from reversed(self._store.items(_key(agent.id)))
        except StoreUnavailable as fault:
            log.warning("which tools an agent has called could not be read: %s", fault.message)
        yield from (client_name_of(tool) for tool in agent.tools if is_ours(tool))

    def note_calls(self, agent_id: str, calls: Sequence[ToolCall], write: Write) -> None:
        """Notes that the agent has called these tools of a large request. It gets them from the next turn on."""
        if calls:
            write([Append(_key(agent_id), call.name, MOST_CALLS, KEEP) for call in calls])


def names_of_access(store: Store, agent_id: str) -> AccessNames | None:
    """Returns the names under which the agent has the three tools for a search; None if it never had any."""
    try:
        text = store.get(_names_key(agent_id))
    except StoreUnavailable:
        return None
    return None if text is None else AccessNames.from_text(text)


def _names_key(agent_id: str) -> str:
    return f"search-names:{agent_id}"


def _key(agent_id: str) -> str:
    return f"called-tools:{agent_id}"


def _find_arguments_fault(spec: ToolSpec, arguments: str) -> str:
    return find_fault(arguments, json.dumps(normalise_schema(spec.parameters or {}).schema))
