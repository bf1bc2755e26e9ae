"""The Gateway to a real Letta server: each of its methods makes calls of Letta's REST API."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from email.utils import parsedate_to_datetime
from itertools import chain
from typing import Any
from urllib.parse import quote

from bridge import errors
from bridge.config import Settings
from bridge.letta import failures, payloads, rows
from bridge.letta.agent_file import make_agent_file
from bridge.letta.agent_reader import AgentReader
from bridge.letta.capabilities import ServerFeatures, read_features
from bridge.letta.connection import Connection, Observer, require_object, require_objects
from bridge.letta.events import read_run
from bridge.letta.gateway import (
    AGENT_ID,
    HELPER_PREFIX,
    Agent,
    AgentChange,
    AgentSummary,
    Block,
    ForeignAnswer,
    ForeignCall,
    Outgoing,
    Results,
    StoredMessage,
    Tool,
)
from bridge.letta.trouble import make_error
from bridge.quick_json import read_json
from bridge.trace import bind_to_current_trace
from bridge.turn import AgentEvent, JsonObject, Message, Stub

FEATURES_KEPT_SECONDS = 60.0
NAMES_PER_CALL = 100
PARALLEL_CALLS = 8
RETURN_CHAR_LIMIT = 1_000_000
MESSAGES_READ_BACK = 20
ALL_ROWS = 1_000_000  # no version of Letta limits the size of a page
_TOOLS_AND_BLOCKS = ("tools", "memory")
_TAGS_ONLY = "tags"  # the least: half of an agent's JSON is tools and blocks. A query can't hold an empty list


class LettaServer:
    """The Gateway to one Letta server, for many threads. Docstrings here say only what this class adds to `Gateway`."""

    def __init__(
        self,
        settings: Settings,
        connection: Connection | None = None,
        observe: Observer = lambda call, seconds: None,
    ) -> None:
        self._http = connection or Connection(settings, observe=observe)
        self._reader = AgentReader()
        self._turn_timeout = settings.turn_timeout
        self._features: tuple[ServerFeatures, float] | None = None
        self._features_lock = threading.Lock()

    # --- server ---------------------------------------------------------------------------------------

    def check_server(self) -> None:
        """Also asks for an agent, because Letta tells its version without a password."""
        self._read_version()
        require_objects(self._http.call("GET", "/v1/agents/", {"limit": 1, "include_relationships": _TAGS_ONLY}))

    def _read_version(self) -> str:
        """Returns the server's version, which every Letta has, and few other servers."""
        version = rows.text_of(require_object(self._http.call("GET", "/v1/health/")).get("version"))
        if not version:
            raise make_error("not Letta")
        return version

    def features(self) -> ServerFeatures:
        """Returns what the server can do. After `FEATURES_KEPT_SECONDS`, asks the server for its version again."""
        known = self._features
        if known is not None and time.monotonic() < known[1]:
            return known[0]
        with self._features_lock:
            known = self._features
            if known is not None and time.monotonic() < known[1]:
                return known[0]
            version = self._read_version()
            if known is None or known[0].version_text != version:
                features = read_features(version, require_object(self._http.call("GET", "/openapi.json")))
            else:
                features = known[0]
            self._features = (features, time.monotonic() + FEATURES_KEPT_SECONDS)
            return features

    def server_time(self) -> float | None:
        date = self._http.read_header("/v1/health/", "Date")
        try:
            return parsedate_to_datetime(date).timestamp()
        except ValueError:
            return None

    def forward(self, call: ForeignCall, *, patient: bool = False) -> ForeignAnswer:
        return self._http.forward(call, patient=patient)

    # --- agents ---------------------------------------------------------------------------------------

    def agents(self) -> list[AgentSummary]:
        found = self._http.read_pages("/v1/agents/", include_relationships=_TAGS_ONLY)
        return list(map(rows.agent_summary_from_row, found))

    def agents_named(self, name: str) -> list[AgentSummary]:
        found = self._http.read_pages("/v1/agents/", name=name, include_relationships=_TAGS_ONLY)
        return [row for row in map(rows.agent_summary_from_row, found) if row.name == name]

    def agent(self, agent_id: str) -> Agent:
        agent: Agent | None = self._fetch_agent(agent_id, _TOOLS_AND_BLOCKS, self._reader.read_agent)
        if agent is None:
            raise make_error("not Letta")
        return agent

    def _fetch_agent_row(self, agent_id: str, relations: Sequence[str] | str) -> JsonObject:
        return require_object(self._fetch_agent(agent_id, relations, read_json))

    def _fetch_agent(self, agent_id: str, relations: Sequence[str] | str, read: Callable[[bytes], Any]) -> Any:
        """Returns what `read` makes of Letta's JSON of an agent. Refuses text that is not an id, which could change the
        call's path.
        """
        if not AGENT_ID.fullmatch(agent_id):
            raise errors.LettaNotFound(f"There is no agent with the id {agent_id!r:.100}: Letta's ids look otherwise.")
        return self._http.call("GET", f"/v1/agents/{agent_id}", {"include_relationships": relations}, read=read)

    def make_helper(self, agent_id: str, system: str, history: Sequence[Message] = ()) -> Agent:
        agent, features = self._fetch_agent_row(agent_id, _TAGS_ONLY), self.features()
        body = payloads.helper_payload(agent, system, features.helper_type)
        if not history:
            return rows.agent_from_row(require_object(self._http.call("POST", "/v1/agents/", body=body)))
        file = make_agent_file(body, history, features)
        fields = {"append_copy_suffix": "false", "override_existing_tools": "false"}
        made = require_object(self._http.upload("/v1/agents/import", "helper.af", file, fields))
        return self.agent(rows.imported_agent_id(made))

    def helpers(self) -> list[AgentSummary]:
        query = {"tags": payloads.HELPER_TAG, "show_hidden_agents": "true", "include_relationships": _TAGS_ONLY}
        found = map(rows.agent_summary_from_row, self._http.read_pages("/v1/agents/", **query))
        return [agent for agent in found if agent.name.startswith(HELPER_PREFIX)]

    def delete_agent(self, agent_id: str) -> None:
        with suppress(errors.LettaNotFound):
            self._http.call("DELETE", f"/v1/agents/{agent_id}")

    def cancel_runs(self, agent_id: str, run_id: str) -> None:
        body = {"run_ids": [run_id]} if run_id else {}
        if not run_id and self.features().has_conversations:
            # Without run ids, the server also ends the runs of the agent's other conversations.
            body = {"run_ids": self.runs_under_way(agent_id)}
            if not body["run_ids"]:
                return
        with suppress(errors.LettaConflict):
            self._http.call("POST", f"/v1/agents/{agent_id}/messages/cancel", body=body)

    def whole_agents(self, *, blocks: bool = False) -> list[Agent]:
        """Reads no pages, because an agent made or removed between two pages could hide another agent."""
        relations = _TOOLS_AND_BLOCKS if blocks else "tools"
        query = {"limit": ALL_ROWS, "include_relationships": relations, "show_hidden_agents": "true"}
        return [rows.agent_from_row(row) for row in require_objects(self._http.call("GET", "/v1/agents/", query))]

    def change_agent(self, agent_id: str, change: AgentChange) -> Agent:
        """Where every change switches parallel calls off (Letta 0.14), sends their present value too."""
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
        return rows.agent_from_row(require_object(self._http.call("PATCH", f"/v1/agents/{agent_id}", body=body)))

    def step_prompt_tokens(self, step_id: str) -> int | None:
        tokens = require_object(self._http.call("GET", f"/v1/steps/{step_id}")).get("prompt_tokens")
        return tokens if isinstance(tokens, int) else None

    # --- tools ----------------------------------------------------------------------------------------

    def tools(self) -> list[Tool]:
        """Reads no pages: paging skips tools on Letta 0.6 to 0.8, and never ends on Letta 0.11.7."""
        found = self._http.call("GET", "/v1/tools/", {"limit": ALL_ROWS})
        return list(map(rows.tool_from_row, require_objects(found)))

    def tools_named(self, names: Sequence[str]) -> list[Tool]:
        """Makes calls in parallel. Asks for one name in a call where the server ignores a list of names."""
        together = NAMES_PER_CALL if self.features().tools_by_names else 1
        groups = [names[start : start + together] for start in range(0, len(names), together)]
        with ThreadPoolExecutor(PARALLEL_CALLS, thread_name_prefix="tools") as pool:
            tools = list(chain.from_iterable(pool.map(bind_to_current_trace(self._fetch_tools_named), groups)))
        wanted = set(names)
        return [tool for tool in tools if tool.name in wanted]

    def _fetch_tools_named(self, names: Sequence[str]) -> list[Tool]:
        query = {"names": list(names), "limit": len(names)} if self.features().tools_by_names else {"name": names[0]}
        return [rows.tool_from_row(row) for row in require_objects(self._http.call("GET", "/v1/tools/", query))]

    def put_tool(self, stub: Stub, tags: Sequence[str]) -> Tool:
        """Sends every field, because some servers keep, and others reset, a field that is missing."""
        body = {
            "source_code": stub.source_code,
            "source_type": "python",
            "json_schema": stub.json_schema,
            "description": stub.description,
            "tags": list(tags),
            "return_char_limit": RETURN_CHAR_LIMIT,
        }
        try:
            return rows.tool_from_row(require_object(self._http.call("PUT", "/v1/tools/", body=body)))
        except errors.LettaConflict:
            # Up to Letta 0.13, if two calls make the same new tool, one is refused. A second try finds the tool.
            return rows.tool_from_row(require_object(self._http.call("PUT", "/v1/tools/", body=body)))

    def tag_tool(self, tool_id: str, tags: Sequence[str]) -> None:
        self._http.call("PATCH", f"/v1/tools/{tool_id}", body={"tags": list(tags)})

    def delete_tool(self, tool_id: str) -> None:
        try:
            self._http.call("DELETE", f"/v1/tools/{tool_id}")
        except (errors.LettaNotFound, errors.LettaRejected):
            # A tool that does not exist: every version measured answers 400 "Tool with id … not found.", never 404.
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
        """The iteration raises LettaTimeout if only pings come for longer than the turn timeout."""
        body: dict[str, Any] = {"messages": list(map(payloads.message_payload, messages)), "stream_tokens": by_token}
        if client_tools:
            body["client_tools"] = list(client_tools)
        return read_run(
            _limit_silence(self._http.open_stream(f"/v1/agents/{agent_id}/messages/stream", body), self._turn_timeout)
        )

    def deny_call(self, agent_id: str, request_id: str, reason: str) -> StoredMessage:
        returned = self._send_decision(agent_id, payloads.decision_payload(request_id, approve=False, reason=reason))
        if self.features().message_rewrite:
            self._patch_return(agent_id, returned.id, reason, ok=True)
        return returned

    def approve_call(self, agent_id: str, request_id: str) -> StoredMessage:
        return self._send_decision(agent_id, payloads.decision_payload(request_id, approve=True))

    def give_results(self, agent_id: str, results: Results) -> None:
        self._send_decision(agent_id, payloads.message_payload(results))

    def _send_decision(self, agent_id: str, decision: JsonObject) -> StoredMessage:
        """Sends an approval, a denial or results of held calls; returns the first stored tool return. The model is not
        asked, because the decision itself takes the one step that is allowed.
        """
        body = {"messages": [decision], "max_steps": 1}
        try:
            answer = require_object(self._http.call("POST", f"/v1/agents/{agent_id}/messages", body=body))
        except errors.LettaNotFound as fault:
            raise failures.run_broken_off(fault) from fault
        stored = map(rows.message_from_row, require_objects(answer.get("messages")))
        found = next((message for message in stored if message.kind == "tool_return_message"), None)
        if found is None:
            raise errors.LettaRejected("The Letta server did not close a held tool call.")
        return found

    def variables(self, agent_id: str) -> dict[str, str]:
        query = {"include_relationships": "tool_exec_environment_variables"}
        return rows.variables_from_row(require_object(self._http.call("GET", f"/v1/agents/{agent_id}", query)))

    def rewrite_return(self, agent_id: str, message_id: str, text: str, ok: bool) -> bool:
        """Ignores a refusal and reads the message again: up to Letta 0.16.6 the server stores the text and yet answers
        400 "Message type got modified". Finds the message only among the newest `MESSAGES_READ_BACK`.
        """
        self._patch_return(agent_id, message_id, text, ok)
        newest = self.newest_messages(agent_id, MESSAGES_READ_BACK, including=message_id)
        return any(message.id == message_id and message.text == text for message in newest)

    def _patch_return(self, agent_id: str, message_id: str, text: str, ok: bool) -> None:
        path = f"/v1/agents/{agent_id}/messages/{message_id}"
        with suppress(errors.LettaRejected):
            self._http.call("PATCH", path, body=payloads.rewritten_return_payload(text, ok))

    def newest_messages(
        self, agent_id: str, limit: int, *, including: str = "", further: int = 0
    ) -> list[StoredMessage]:
        """Asks for the bridge's own conversation only if `including` is missing, because the server then leaves out
        messages that a forked conversation shares.
        """
        newest = self._fetch_messages(agent_id, {"limit": limit})
        own = {"conversation_id": "default"} if self.features().has_conversations else {}
        if own and _lacks(newest, including):
            newest = self._fetch_messages(agent_id, {"limit": limit, **own})
        if further > limit and _lacks(newest, including):
            newest = self._fetch_messages(agent_id, {"limit": further, **own})
        return newest

    def _fetch_messages(self, agent_id: str, query: Mapping[str, Any]) -> list[StoredMessage]:
        answer = self._http.call("GET", f"/v1/agents/{agent_id}/messages", query)
        packed = self.features().packs_returns
        return [rows.message_from_row(row, packed=packed) for row in require_objects(answer)]

    def runs_under_way(self, agent_id: str) -> list[str]:
        features = self.features()
        if not features.lists_active_runs:
            return []
        query = {"agent_id": agent_id} if features.lists_runs_of_one_agent else {"agent_ids": [agent_id]}
        listed = require_objects(self._http.call("GET", "/v1/runs/active", query))
        return [rows.text_of(run.get("id")) for run in listed if not run.get("conversation_id")]

    # --- blocks ---------------------------------------------------------------------------------------

    def add_block(self, agent_id: str, label: str, value: str, description: str, metadata: Mapping[str, Any]) -> Block:
        """If attaching is not enough for the model to see the block, sets its value last: a missing value then shows
        that an interrupted bridge left a block that the model does not see.
        """
        features = self.features()
        needs_more = features.attached_block_is_late or features.block_change_needs_recompile
        body = {
            "label": label,
            "value": "" if needs_more else value,
            "limit": _block_limit(value),
            "description": description,
            "read_only": True,
            "metadata": dict(metadata),
        }
        block = rows.block_from_row(require_object(self._http.call("POST", "/v1/blocks/", body=body)))
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
        body = {"value": value, "limit": _block_limit(value)}
        self._http.call("PATCH", f"/v1/agents/{agent_id}/core-memory/blocks/{label}", body=body)

    def remove_block(self, agent_id: str, block: Block) -> None:
        """Empties the block first: if the memory is not compiled again afterwards, the model sees no old text."""
        features = self.features()
        if features.attached_block_is_late or features.block_change_needs_recompile:
            self.set_block(agent_id, block.label, "")
        self.delete_block(block.id)
        if features.attached_block_is_late:
            self._touch_a_block(agent_id)
        elif features.block_change_needs_recompile:
            self._recompile_memory(agent_id)

    def blocks(self) -> list[Block]:
        found = self._http.call("GET", "/v1/blocks/", {"limit": ALL_ROWS})
        return list(map(rows.block_from_row, require_objects(found)))

    def delete_block(self, block_id: str) -> None:
        with suppress(errors.LettaNotFound):
            self._http.call("DELETE", f"/v1/blocks/{block_id}")

    def _touch_a_block(self, agent_id: str) -> None:
        """Makes Letta 0.6 and 0.7 compile all blocks again, so that the model forgets a removed block's label."""
        blocks = f"/v1/agents/{agent_id}/core-memory/blocks"
        for row in require_objects(self._http.call("GET", blocks))[:1]:
            self._http.call("PATCH", f"{blocks}/{quote(rows.text_of(row.get('label')), safe='')}", body={})

    def _recompile_memory(self, agent_id: str) -> None:
        self._http.call("POST", f"/v1/agents/{agent_id}/recompile")


def _lacks(messages: Sequence[StoredMessage], message_id: str) -> bool:
    return message_id != "" and all(message.id != message_id for message in messages)


def _block_limit(value: str) -> int:
    return max(20_000, len(value) + 1)


def _limit_silence(messages: Iterator[JsonObject | None], longest: float) -> Iterator[JsonObject | None]:
    """Raises LettaTimeout if only pings come for `longest` seconds: pings come even while the agent hangs."""
    last = time.monotonic()
    for message in messages:
        if message is None or message.get("message_type") != "ping":
            last = time.monotonic()
        elif time.monotonic() - last > longest:
            raise errors.LettaTimeout(f"The agent was silent for more than {longest:g} seconds (BRIDGE_TURN_TIMEOUT).")
        yield message
