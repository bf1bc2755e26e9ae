"""Decides what of Letta's answers a client sees: no stubs of the bridge, no agents that its key may not see, and open
calls of client tools as Letta's own API shows them.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl, urlencode

from bridge.chats.chats import Chats
from bridge.chats.names import DEFAULT_SESSION, Speaker
from bridge.directory import Visible
from bridge.large_offers import names_of_access
from bridge.letta.gateway import Agent, ForeignCall, Gateway
from bridge.letta.rows import agent_from_row, tool_from_row
from bridge.letta.trouble import make_error
from bridge.locks.open_calls import OpenCalls
from bridge.passthrough.agent_lists import visible_rows
from bridge.passthrough.calls import agent_of
from bridge.passthrough.hiding import OurTools, without_our_tools, without_secrets
from bridge.passthrough.letta_code import shown_to_letta_code
from bridge.passthrough.readable import may_lack_open_call, readable_messages, with_open_call, with_readable_request
from bridge.store.port import Store
from bridge.sync.ownership import is_ours
from bridge.turn import CallIds, JsonObject

# A list of the server's tools is used for so many seconds.
KEPT = 3.0
# For so many seconds it is known which agent has a message that was shown as an open call.
PLACE_KEPT = 86_400.0
# How many of an agent's newest messages are searched for one of them, such as the call of a return.
LOOK_BACK = 20
# How many are searched if the agent has several chats, whose messages may be far apart.
LOOK_FAR = 1_000
# More than any list has. No version of Letta limits the size of a page.
ALL_ROWS = 1_000_000
_OF_PAGES = ("limit", "after", "before")
# The most bytes of an answer that is read whole.
LONGEST_ANSWER = 64_000_000

Rewrite = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who sees an answer: `client` is the name of the key, `agents` are those that it may see, empty for all."""

    client: str
    agents: Visible
    hides_secrets: bool
    is_letta_code: bool


class Views:
    """What clients see of one Letta server. For many threads."""

    def __init__(self, gateway: Gateway, chats: Chats, open_calls: OpenCalls, store: Store, call_ids: CallIds) -> None:
        self._gateway = gateway
        self._chats = chats
        self._open_calls = open_calls
        self._store = store
        self._call_ids = call_ids
        self._kept: tuple[OurTools, float] | None = None
        self._fetching = threading.Lock()

    def our_tools(self) -> OurTools:
        """Returns the stubs on the server, as they were at most KEPT seconds ago. The list may be large, so that
        only one thread fetches it, and the others wait.
        """
        kept = self._kept
        if kept is None or time.monotonic() > kept[1]:
            with self._fetching:
                kept = self._kept
                if kept is None or time.monotonic() > kept[1]:
                    kept = self._kept = OurTools.of(self._gateway.tools()), time.monotonic() + KEPT
        return kept[0]

    def names_stub(self, path: str) -> bool:
        """Returns whether a path has the id of a stub, which does not exist for clients."""
        words = [word for word in path.split("/") if word.startswith("tool-")]
        return bool(words) and not self.our_tools().ids.isdisjoint(words)

    def rewrite_for(self, call: ForeignCall, viewer: Viewer) -> Rewrite | None:
        """Returns the function that makes Letta's answer to this call what the client sees; None to leave it as is."""
        path = call.path
        words = path.strip("/").split("/")
        if words[1:] == ["tools", "count"]:
            return lambda value: value - self._count_stubs(call.query) if type(value) is int else value
        if words[1:2] not in (["agents"], ["tools"]) and words[-1] != "agents":
            return self._with_client_names if "messages" in words else None
        agent_id = agent_of(path)
        if agent_id and words[3:4] == ["messages"]:
            return lambda value: self._readable(agent_id, value, Speaker(viewer.client))
        if agent_id and words[3:4] == ["context"]:
            return lambda value: without_our_tools(value, self._tools_with_those_of(self._gateway.agent(agent_id)))
        lists_agents = words[-1] == "agents"
        return lambda value: self._shown(
            _of_viewer(value, viewer) if lists_agents else value, agent_id if len(words) == 3 else "", viewer
        )

    def _count_stubs(self, query: str) -> int:
        """Returns how many stubs Letta counts for this query. Its list of tools takes the same filters."""
        filters = [pair for pair in parse_qsl(query, keep_blank_values=True) if pair[0] not in _OF_PAGES]
        listed = ForeignCall("GET", "/v1/tools/", urlencode([*filters, ("limit", str(ALL_ROWS))]))
        answer = self._gateway.forward(listed)
        rows = _rows_in(answer.status, answer.read(LONGEST_ANSWER))
        return sum(is_ours(tool_from_row(row)) for row in rows)

    def _shown(self, value: Any, agent_id: str, viewer: Viewer) -> Any:
        """Returns an answer about agents or tools; with `agent_id`, it is this agent."""
        shown = without_our_tools(value, self.our_tools())
        if viewer.hides_secrets:
            shown = without_secrets(shown)
        if not agent_id or not isinstance(shown, dict):
            return shown
        shown = self._with_open_call(shown, agent_id, Speaker(viewer.client))
        return shown_to_letta_code(shown) if viewer.is_letta_code else shown

    def _with_open_call(self, agent: JsonObject, agent_id: str, speaker: Speaker) -> JsonObject:
        """Returns an agent with its open call as Letta shows one, or without it if it is of another conversation."""
        read = agent_from_row(agent)
        seen = self._ids_in_view(replace(read, id=agent_id), speaker)
        if seen != [*read.message_ids]:
            return {**agent, "message_ids": seen, **({"pending_approval": None} if "pending_approval" in agent else {})}
        own = {str(tool.get("name")) for tool in agent.get("tools") or () if isinstance(tool, dict)}
        ours = replace(self.our_tools(), access=names_of_access(self._store, agent_id))
        return with_readable_request(agent, ours, own_tool_names=own, call_ids=self._call_ids)

    def _with_client_names(self, value: Any) -> Any:
        """Returns messages whose agent is not known, so that no call in them counts as open."""
        return self._rows(value, self.our_tools(), "", ())

    def _readable(self, agent_id: str, value: Any, speaker: Speaker) -> Any:
        agent = self._gateway.agent(agent_id)
        ours = replace(self._tools_with_those_of(agent), access=names_of_access(self._store, agent_id))
        names = [tool.name for tool in agent.tools if tool.name not in ours.client_names]
        ids = self._ids_in_view(agent, speaker)
        last = ids[-1] if ids else ""
        shown = self._rows(value, ours, last, names)
        is_page = isinstance(shown, list) and all(isinstance(row, dict) for row in shown)
        if not (is_page and may_lack_open_call(shown, last)):
            return shown
        newest = self._newest_rows(agent)
        return with_open_call(shown, newest, self._rows(newest, ours, last, names), last)

    def _tools_with_those_of(self, agent: Agent) -> OurTools:
        """Returns the stubs on the server, also those that the agent got a moment ago."""
        own, known = OurTools.of(agent.tools), self.our_tools()
        return OurTools({**known.client_names, **own.client_names}, known.ids | own.ids)

    def _newest_rows(self, agent: Agent) -> list[JsonObject]:
        limit = LOOK_FAR if agent.has_chats else LOOK_BACK
        answer = self._gateway.forward(ForeignCall("GET", f"/v1/agents/{agent.id}/messages", f"limit={limit}"))
        return _rows_in(answer.status, answer.read(LONGEST_ANSWER))

    def _rows(self, value: Any, ours: OurTools, last: str, own: Any) -> Any:
        rows = value if isinstance(value, list) else value.get("messages") if isinstance(value, dict) else None
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            return value
        shown = readable_messages(rows, ours, last, own_tool_names=own, call_ids=self._call_ids)
        if shown is rows:
            return value
        return shown if isinstance(value, list) else {**value, "messages": shown}

    # --- conversations that the bridge made -----------------------------------------------------------

    def conversation_messages(self, agent_id: str, speaker: Speaker, value: Any) -> Any:
        """Returns messages of the agent as the speaker sees them: of a chat with a context of its own, only those that
        are in this context.
        """
        agent = self._gateway.agent(agent_id)
        place, ids = self._chats.context_of_session(agent, speaker)
        if place != agent_id and isinstance(value, list):
            own = {*ids}
            value = [row for row in value if isinstance(row, dict) and row.get("id") in own]
        return self._readable(agent_id, value, speaker)

    def context_ids(self, agent_id: str, speaker: Speaker) -> list[str]:
        """Returns the ids of the messages in the context of a conversation. An open call of another conversation, whose
        client may be running the tool, is not shown there; so nobody else closes the call.
        """
        ids = self._ids_in_view(self._gateway.agent(agent_id), speaker)
        if ids:
            self._store.put(_place_key(ids[-1]), f"{agent_id} {speaker.session}", PLACE_KEPT)
        return ids

    def _ids_in_view(self, agent: Agent, speaker: Speaker) -> list[str]:
        """Returns the ids in the context of the speaker's chat without those from an open call on that is not the
        speaker's. Which conversation has a call is known for BRIDGE_TOOL_WAIT, which client has it for longer.
        """
        place, ids = self._chats.context_of_session(agent, speaker)
        open_request = self._open_calls.open_request(place, self._call_ids)
        if open_request is None and ids and self._open_calls.clients.is_of_another(speaker.client, ids[-1]):
            return [*ids[:-1]]
        if open_request is None or open_request[0] == (speaker.client, speaker.session) or open_request[1] not in ids:
            return [*ids]
        return [*ids[: ids.index(open_request[1])]]

    def place_of_shown(self, message_id: str) -> tuple[str, str]:
        """Returns the agent of a message that was shown as the last of a context, and the session in which it was; ""
        for any other message.
        """
        agent_id, _, session = (self._store.get(_place_key(message_id)) or "").partition(" ")
        return agent_id, session

    def shown_message(self, agent_id: str, speaker: Speaker, message_id: str) -> list[JsonObject]:
        """Returns the rows of a message that was shown as the last of the context of the speaker's session. Where all
        sessions have one context, any of the client may have its open calls.
        """
        agent = self._gateway.agent(agent_id)
        newest = self._newest_rows(agent)
        place, _ = self._chats.context_of_session(agent, speaker)
        open_request = self._open_calls.open_request(place, self._call_ids)
        session = open_request[0][1] if open_request else DEFAULT_SESSION
        rows = self._readable(agent_id, newest, speaker._replace(session=session))
        return [row for row in rows if row.get("id") == message_id]


def _of_viewer(value: Any, viewer: Viewer) -> Any:
    """Returns a list of agents without those that the viewer may not see."""
    if not viewer.agents or not isinstance(value, list):
        return value
    return visible_rows(value, viewer.agents)


def _rows_in(status: int, content: bytes) -> list[JsonObject]:
    """Returns the rows of an answer that must be a list of objects."""
    with suppress(ValueError, RecursionError):
        rows = json.loads(content)
        if status == 200 and isinstance(rows, list) and all(isinstance(row, dict) for row in rows):
            return rows
    raise make_error("not Letta")


def _place_key(message_id: str) -> str:
    return f"shown-last:{message_id}"
