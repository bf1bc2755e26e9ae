"""The Gateway to a real Letta server: its methods as calls of Letta's REST API."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote

from bridge import errors
from bridge.config import Settings
from bridge.letta import payloads, rows
from bridge.letta.capabilities import ServerFeatures, read_features
from bridge.letta.connection import Connection, Observer, as_object, as_objects
from bridge.letta.events import read_run
from bridge.letta.gateway import (
    AGENT_ID,
    HELPER_PREFIX,
    Agent,
    AgentChange,
    AgentSummary,
    Block,
    Outgoing,
    Results,
    StoredMessage,
    Tool,
)
from bridge.trace import bind_to_current_trace
from bridge.turn import AgentEvent, JsonObject, Stub

FEATURES_KEPT_SECONDS = 60.0
NAMES_AT_ONCE = 100
CALLS_AT_ONCE = 8
RETURN_CHAR_LIMIT = 1_000_000
REWRITE_WINDOW = 20
EVERYTHING = 1_000_000  # no version has an upper limit for the size of a page
_RELATIONS = ("tools", "memory")
_LEAST = "tags"  # without tools and blocks an agent is half as large; a query can't hold an empty list


class LettaServer:
    """The Gateway to one server. Used by many threads; opens no connection before its first call."""

    def __init__(
        self,
        settings: Settings,
        connection: Connection | None = None,
        observe: Observer = lambda call, seconds: None,
    ) -> None:
        self._http = connection or Connection(settings, observe=observe)
        self._turn_timeout = settings.turn_timeout
        self._features: tuple[ServerFeatures, float] | None = None
        self._features_lock = threading.Lock()

    # --- server ---------------------------------------------------------------------------------------

    def check_server(self) -> None:
        as_object(self._http.call("GET", "/v1/health/"))

    def features(self) -> ServerFeatures:
        known = self._features
        if known is not None and time.monotonic() < known[1]:
            return known[0]
        with self._features_lock:
            known = self._features
            if known is not None and time.monotonic() < known[1]:
                return known[0]
            version = rows.text(as_object(self._http.call("GET", "/v1/health/")).get("version"))
            if known is None or known[0].version_text != version:
                features = read_features(version, as_object(self._http.call("GET", "/openapi.json")))
            else:
                features = known[0]
            self._features = (features, time.monotonic() + FEATURES_KEPT_SECONDS)
            return features

    def server_time(self) -> float | None:
        date = self._http.header("/v1/health/", "Date")
        try:
            return parsedate_to_datetime(date).timestamp()
        except ValueError:
            return None

    # --- agents ---------------------------------------------------------------------------------------

    def agents(self) -> list[AgentSummary]:
        return [rows.agent_summary(row) for row in self._http.pages("/v1/agents/", include_relationships=_LEAST)]

    def agents_named(self, name: str) -> list[AgentSummary]:
        found = self._http.pages("/v1/agents/", name=name, include_relationships=_LEAST)
        return [row for row in map(rows.agent_summary, found) if row.name == name]

    def agent(self, agent_id: str) -> Agent:
        return rows.agent(self._agent_row(agent_id, _RELATIONS))

    def _agent_row(self, agent_id: str, relations: Sequence[str] | str) -> JsonObject:
        """Operators type ids by hand. In the path of a call, text that is not an id could address something else."""
        if not AGENT_ID.fullmatch(agent_id):
            raise errors.LettaNotFound(f"There is no agent with the id {agent_id!r:.100}: Letta's ids look otherwise.")
        return as_object(self._http.call("GET", f"/v1/agents/{agent_id}", {"include_relationships": relations}))

    def make_helper(self, agent_id: str, system: str) -> Agent:
        agent = self._agent_row(agent_id, _LEAST)
        body = payloads.helper(agent, system, v1=self.features().has_v1_agents)
        return rows.agent(as_object(self._http.call("POST", "/v1/agents/", body=body)))

    def helpers(self) -> list[AgentSummary]:
        query = {"tags": payloads.HELPER_TAG, "show_hidden_agents": "true", "include_relationships": _LEAST}
        found = map(rows.agent_summary, self._http.pages("/v1/agents/", **query))
        return [agent for agent in found if agent.name.startswith(HELPER_PREFIX)]

    def delete_agent(self, agent_id: str) -> None:
        with suppress(errors.LettaNotFound):
            self._http.call("DELETE", f"/v1/agents/{agent_id}")

    def cancel_runs(self, agent_id: str, run_id: str) -> None:
        body = {"run_ids": [run_id]} if run_id else {}
        if not run_id and self.features().has_conversations:
            # Without ids the server ends the runs of the agent's other conversations, too.
            body = {"run_ids": self.runs_under_way(agent_id)}
            if not body["run_ids"]:
                return
        with suppress(errors.LettaConflict):
            self._http.call("POST", f"/v1/agents/{agent_id}/messages/cancel", body=body)

    def whole_agents(self, *, blocks: bool = False) -> list[Agent]:
        """One call for all: an agent that is made or removed between two pages could hide another one."""
        relations = _RELATIONS if blocks else "tools"
        query = {"limit": EVERYTHING, "include_relationships": relations, "show_hidden_agents": "true"}
        return [rows.agent(row) for row in as_objects(self._http.call("GET", "/v1/agents/", query))]

    def change_agent(self, agent_id: str, change: AgentChange) -> Agent:
        fields = {"tool_ids": change.tool_ids, "tool_rules": change.rules, "message_ids": change.message_ids}
        body: dict[str, Any] = {name: list(value) for name, value in fields.items() if value is not None}
        if change.variables is not None:
            body["tool_exec_environment_variables"] = dict(change.variables)
        if change.metadata is not None:
            body["metadata"] = dict(change.metadata)
        parallel_calls = change.parallel_calls
        if parallel_calls is None and self.features().resets_parallel_calls:
            parallel_calls = self.agent(agent_id).parallel_calls
        if parallel_calls is not None:
            body["parallel_tool_calls"] = parallel_calls
        return rows.agent(as_object(self._http.call("PATCH", f"/v1/agents/{agent_id}", body=body)))

    def step_prompt_tokens(self, step_id: str) -> int | None:
        tokens = as_object(self._http.call("GET", f"/v1/steps/{step_id}")).get("prompt_tokens")
        return tokens if isinstance(tokens, int) else None

    # --- tools ----------------------------------------------------------------------------------------

    def tools(self) -> list[Tool]:
        """One call for all: paging skips tools on 0.6 to 0.8, and never ends on 0.11.7."""
        return [rows.tool(row) for row in as_objects(self._http.call("GET", "/v1/tools/", {"limit": EVERYTHING}))]

    def tools_named(self, names: Sequence[str]) -> list[Tool]:
        """Servers that do not support a list of names ignore it and return all tools; there each name is one call."""
        together = NAMES_AT_ONCE if self.features().tools_by_names else 1
        groups = [names[start : start + together] for start in range(0, len(names), together)]
        with ThreadPoolExecutor(CALLS_AT_ONCE, thread_name_prefix="tools") as pool:
            found = [tool for tools in pool.map(bind_to_current_trace(self._tools_named), groups) for tool in tools]
        wanted = set(names)
        return [tool for tool in found if tool.name in wanted]

    def _tools_named(self, names: Sequence[str]) -> list[Tool]:
        query = {"names": list(names), "limit": len(names)} if self.features().tools_by_names else {"name": names[0]}
        return [rows.tool(row) for row in as_objects(self._http.call("GET", "/v1/tools/", query))]

    def put_tool(self, stub: Stub, tags: Sequence[str]) -> Tool:
        """Sends every field: a missing one keeps its old value on some servers and is reset on others."""
        body = {
            "source_code": stub.source_code,
            "source_type": "python",
            "json_schema": stub.json_schema,
            "description": stub.description,
            "tags": list(tags),
            "return_char_limit": RETURN_CHAR_LIMIT,
        }
        try:
            return rows.tool(as_object(self._http.call("PUT", "/v1/tools/", body=body)))
        except errors.LettaConflict:
            # Up to 0.13, when two requests make the same new tool, one is refused. Its second try finds the tool.
            return rows.tool(as_object(self._http.call("PUT", "/v1/tools/", body=body)))

    def tag_tool(self, tool_id: str, tags: Sequence[str]) -> None:
        self._http.call("PATCH", f"/v1/tools/{tool_id}", body={"tags": list(tags)})

    def delete_tool(self, tool_id: str) -> None:
        try:
            self._http.call("DELETE", f"/v1/tools/{tool_id}")
        except (errors.LettaNotFound, errors.LettaRejected):
            # A tool that is gone: 400 "Tool with id … not found." on every version measured, never 404.
            return

    # --- messages -------------------------------------------------------------------------------------

    def send_messages(
        self,
        agent_id: str,
        messages: Sequence[Outgoing],
        *,
        by_token: bool,
        client_tools: Sequence[JsonObject] = (),
    ) -> Iterator[AgentEvent]:
        body: dict[str, Any] = {"messages": [payloads.outgoing(item) for item in messages], "stream_tokens": by_token}
        if client_tools:
            body["client_tools"] = list(client_tools)
        return read_run(
            _without_long_silence(self._http.stream(f"/v1/agents/{agent_id}/messages/stream", body), self._turn_timeout)
        )

    def deny_call(self, agent_id: str, request_id: str, reason: str) -> StoredMessage:
        returned = self._decide(agent_id, payloads.decision(request_id, approve=False, reason=reason))
        if self.features().message_rewrite:
            self._rewrite(agent_id, returned.id, reason, ok=False)
        return returned

    def approve_call(self, agent_id: str, request_id: str) -> StoredMessage:
        return self._decide(agent_id, payloads.decision(request_id, approve=True))

    def give_results(self, agent_id: str, results: Results) -> None:
        self._decide(agent_id, payloads.outgoing(results))

    def _decide(self, agent_id: str, decision: JsonObject) -> StoredMessage:
        """The decision itself takes the one step that is allowed, so the model is not asked."""
        body = {"messages": [decision], "max_steps": 1}
        answer = as_object(self._http.call("POST", f"/v1/agents/{agent_id}/messages", body=body))
        stored = map(rows.stored_message, as_objects(answer.get("messages")))
        found = next((message for message in stored if message.kind == "tool_return_message"), None)
        if found is None:
            raise errors.LettaRejected("The Letta server did not close a held tool call.")
        return found

    def variables(self, agent_id: str) -> dict[str, str]:
        query = {"include_relationships": "tool_exec_environment_variables"}
        return rows.variables(as_object(self._http.call("GET", f"/v1/agents/{agent_id}", query)))

    def rewrite_return(self, agent_id: str, message_id: str, text: str, ok: bool) -> bool:
        """Reads the message back: up to 0.16.6 the server answers 400 "Message type got modified" and yet stores it."""
        self._rewrite(agent_id, message_id, text, ok)
        newest = self.newest_messages(agent_id, REWRITE_WINDOW, including=message_id)
        return any(message.id == message_id and message.text == text for message in newest)

    def _rewrite(self, agent_id: str, message_id: str, text: str, ok: bool) -> None:
        path = f"/v1/agents/{agent_id}/messages/{message_id}"
        with suppress(errors.LettaRejected):
            self._http.call("PATCH", path, body=payloads.rewritten_return(text, ok))

    def newest_messages(self, agent_id: str, limit: int, *, including: str = "") -> list[StoredMessage]:
        """First asks without the conversation: with it, the server leaves out messages that a forked one shares."""
        newest = self._messages(agent_id, {"limit": limit})
        missing = including and all(message.id != including for message in newest)
        if missing and self.features().has_conversations:
            return self._messages(agent_id, {"limit": limit, "conversation_id": "default"})
        return newest

    def _messages(self, agent_id: str, query: Mapping[str, Any]) -> list[StoredMessage]:
        answer = self._http.call("GET", f"/v1/agents/{agent_id}/messages", query)
        packed = self.features().packs_returns
        return [rows.stored_message(row, packed=packed) for row in as_objects(answer)]

    def runs_under_way(self, agent_id: str) -> list[str]:
        """Leaves out runs of the agent's other conversations: they do not block this one."""
        features = self.features()
        if not features.lists_active_runs:
            return []
        query = {"agent_id": agent_id} if features.lists_runs_of_one_agent else {"agent_ids": [agent_id]}
        listed = as_objects(self._http.call("GET", "/v1/runs/active", query))
        return [rows.text(run.get("id")) for run in listed if not run.get("conversation_id")]

    # --- blocks ---------------------------------------------------------------------------------------

    def add_block(self, agent_id: str, label: str, value: str, description: str, metadata: Mapping[str, Any]) -> Block:
        """Where attaching is not enough, the value is set last: so the model sees every block that has its value."""
        features = self.features()
        needs_more = features.attached_block_is_late or features.block_change_needs_recompile
        body = {
            "label": label,
            "value": "" if needs_more else value,
            "limit": _limit(value),
            "description": description,
            "read_only": True,
            "metadata": dict(metadata),
        }
        block = rows.block(as_object(self._http.call("POST", "/v1/blocks/", body=body)))
        try:
            self._http.call("PATCH", f"/v1/agents/{agent_id}/core-memory/blocks/attach/{block.id}")
        except errors.LettaError:
            with suppress(errors.LettaError):
                self._http.call("DELETE", f"/v1/blocks/{block.id}")
            raise
        if needs_more:
            self.set_block(agent_id, label, value)
        return replace(block, value=value)

    def set_block(self, agent_id: str, label: str, value: str) -> None:
        self._http.call(
            "PATCH", f"/v1/agents/{agent_id}/core-memory/blocks/{label}", body={"value": value, "limit": _limit(value)}
        )

    def remove_block(self, agent_id: str, block: Block) -> None:
        """Where the model does not see the removal itself, the block is emptied first: the next calls may fail."""
        features = self.features()
        if features.attached_block_is_late or features.block_change_needs_recompile:
            self.set_block(agent_id, block.label, "")
        self.delete_block(block.id)
        if features.attached_block_is_late:
            self._touch_a_block(agent_id)
        elif features.block_change_needs_recompile:
            self._recompile(agent_id)

    def blocks(self) -> list[Block]:
        return [rows.block(row) for row in as_objects(self._http.call("GET", "/v1/blocks/", {"limit": EVERYTHING}))]

    def delete_block(self, block_id: str) -> None:
        with suppress(errors.LettaNotFound):
            self._http.call("DELETE", f"/v1/blocks/{block_id}")

    def _touch_a_block(self, agent_id: str) -> None:
        """Makes 0.6 and 0.7 compile all blocks again, by an empty change. Else the label of a removed block stays."""
        blocks = f"/v1/agents/{agent_id}/core-memory/blocks"
        for row in as_objects(self._http.call("GET", blocks))[:1]:
            self._http.call("PATCH", f"{blocks}/{quote(rows.text(row.get('label')), safe='')}", body={})

    def _recompile(self, agent_id: str) -> None:
        self._http.call("POST", f"/v1/agents/{agent_id}/recompile")


def _limit(value: str) -> int:
    """Returns the limit of characters to set for a block: Letta's default where that is enough."""
    return max(20_000, len(value) + 1)


def _without_long_silence(messages: Iterator[JsonObject | None], longest: float) -> Iterator[JsonObject | None]:
    """Passes messages on; raises when only pings came for too long. They come from Letta also while the agent hangs."""
    last = time.monotonic()
    for message in messages:
        if message is None or message.get("message_type") != "ping":
            last = time.monotonic()
        elif time.monotonic() - last > longest:
            raise errors.LettaTimeout(f"The agent was silent for more than {longest:g} seconds (BRIDGE_TURN_TIMEOUT).")
        yield message
