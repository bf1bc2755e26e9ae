"""What a Letta server, and an agent on a Letta server, can do.

All of this is read from the server's version and its OpenAPI document; nothing is tried out on the server. Every test
of a Letta version is in this module: a new version of Letta changes only this file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from bridge.turn import SchemaForm

Loop = Literal["old", "v2", "v3"]
Version = tuple[int, int, int]

# The versions of Letta that the bridge was tested on.
OLDEST: Version = (0, 6, 54)
NEWEST: Version = (0, 16, 8)
V1_AGENT = "letta_v1_agent"
# Models whose names begin so. Up to Letta 0.16.2, Letta calls them by OpenAI's Responses API, with every tool in
# OpenAI's strict mode.
_RESPONSES_MODELS = ("o1", "o3", "o4", "gpt-5")


@dataclass(frozen=True, slots=True)
class AgentModel:
    """The language model of an agent. `endpoint` is the kind of API by which Letta calls the model, as in "openai"."""

    name: str = ""
    endpoint: str = ""


@dataclass(frozen=True, slots=True)
class ServerFeatures:
    """The features of one Letta server. Each feature is missing from some generation of Letta.

    `client_tools`: schemas of tools can be sent with a message. `approvals`: the server can hold a tool call until the
    call is approved or denied. `tool_returns`: the answer to a held call can carry the call's result.
    `message_rewrite`: stored messages can be changed. `recompile`: an agent's memory can be compiled into its prompt
    again. `tools_by_names`: one call finds tools by several names. `rule_prompts`: a tool rule can have its own prompt.
    """

    version: Version
    client_tools: bool
    approvals: bool
    tool_returns: bool
    message_rewrite: bool
    recompile: bool
    tools_by_names: bool
    rule_prompts: bool = False

    @property
    def version_text(self) -> str:
        return ".".join(map(str, self.version))

    @property
    def continues_without_message(self) -> bool:
        """Whether `messages: []` continues a run (measured up to Letta 0.8.17; Letta 0.11.7 and later answer 400)."""
        return self.version < (0, 9, 0)

    @property
    def takes_images(self) -> bool:
        """Whether messages may have pictures. Letta 0.6.54 refuses pictures, Letta 0.8.17 accepts them."""
        return self.version >= (0, 8, 0)

    @property
    def cancels_runs(self) -> bool:
        """Whether a cancelled run really stops. Before Letta 0.14 the server says "cancelled" and continues the run."""
        return self.version >= (0, 14, 0)

    @property
    def lists_active_runs(self) -> bool:
        """Whether the server's list of active runs is right.

        Letta 0.8 lists a run for ever when the run's client has left. Letta 0.7 has no runs.
        """
        return self.version >= (0, 11, 0)

    @property
    def lists_runs_of_one_agent(self) -> bool:
        """Whether the server's list of active runs can be limited by the parameter `agent_id`.

        Letta 0.11 ignores `agent_id` and lists the runs of all agents; its parameter is `agent_ids`.
        """
        return self.version >= (0, 12, 0)

    @property
    def has_v1_agents(self) -> bool:
        """Whether agents can have the type `letta_v1_agent`. Such an agent answers without calling a tool."""
        return self.version >= (0, 12, 0)

    @property
    def parallel_calls(self) -> bool:
        """Whether a `letta_v1_agent` can make several calls in a step. Letta 0.13 does not let this setting change."""
        return self.version >= (0, 14, 0)

    @property
    def takes_messages_beside_results(self) -> bool:
        """Whether a message sent with results of held calls reaches the agent. Letta 0.14 refuses it, 0.15 loses it."""
        return self.version >= (0, 16, 0)

    @property
    def has_conversations(self) -> bool:
        """Whether agents can have more conversations than the bridge's. Their messages are then listed together."""
        return self.version >= (0, 16, 2)

    @property
    def resets_parallel_calls(self) -> bool:
        """Whether every change of an agent that does not set `parallel_tool_calls` switches them off (Letta 0.14)."""
        return (0, 14, 0) <= self.version < (0, 15, 0)

    @property
    def packs_returns(self) -> bool:
        """Whether stored tool returns are listed as the model sees them: as JSON with status, message and time."""
        return self.version < (0, 8, 0)

    @property
    def hides_conflicts(self) -> bool:
        """Whether Letta closes the connection without an error if an agent waits for an approval (Letta 0.11)."""
        return (0, 11, 0) <= self.version < (0, 12, 0)

    @property
    def block_change_needs_recompile(self) -> bool:
        """Whether the model sees attached or removed blocks only after a recompilation (from Letta 0.16.5 on)."""
        return self.recompile

    @property
    def attached_block_is_late(self) -> bool:
        """Whether the model sees a new block only from the second message on (measured on Letta 0.6.54)."""
        return self.version < (0, 8, 0)

    def abilities_in_words(self) -> dict[str, bool]:
        """Returns the main features as phrases for the operator, each with whether the server has the feature."""
        return {
            "takes a client's tools with the message": self.client_tools,
            "holds calls for an approval": self.approvals,
            "takes results as answers to held calls": self.tool_returns,
            "lets stored messages be changed": self.message_rewrite,
            "finds tools by several names at once": self.tools_by_names,
            "takes pictures in messages": self.takes_images,
            "cancels runs": self.cancels_runs,
        }


def parse_version(text: str) -> Version:
    """Returns the version that a text like `v0.16.1` begins with; the newest if the text has no version."""
    match = re.match(r"v?(\d+)\.(\d+)(?:\.(\d+))?", text)
    return (int(match[1]), int(match[2]), int(match[3] or 0)) if match else (0, 16, 8)


def read_features(version: str, openapi: Mapping[str, Any]) -> ServerFeatures:
    """Returns a server's features, read from the version that the server reports and from its OpenAPI document."""
    schemas = _mapping_at(openapi, "components", "schemas")
    request_fields = _mapping_at(schemas, "LettaRequest", "properties")
    approval_fields = _mapping_at(schemas, "ApprovalCreate", "properties")
    paths = _mapping_at(openapi, "paths")
    rewrite = _mapping_at(paths, "/v1/agents/{agent_id}/messages/{message_id}", "patch")
    return ServerFeatures(
        version=parse_version(version),
        client_tools="client_tools" in request_fields,
        approvals=bool(approval_fields),
        tool_returns="approvals" in approval_fields and ("group_id" in approval_fields or "input" in request_fields),
        message_rewrite=bool(rewrite) and not rewrite.get("deprecated", False),
        recompile="/v1/agents/{agent_id}/recompile" in paths,
        tools_by_names=any(
            isinstance(parameter, Mapping) and parameter.get("name") == "names"
            for parameter in _mapping_at(paths, "/v1/tools/", "get").get("parameters", ())
        ),
        rule_prompts="prompt_template" in _mapping_at(schemas, "TerminalToolRule", "properties"),
    )


def agent_loop(version: Version, agent_type: str) -> Loop:
    """Returns which of Letta's agent loops runs an agent of this type on a server of this version.

    The loop v3 works without send_message and heartbeats; it runs `letta_v1_agent`. Every other type runs in the loop
    v2 from Letta 0.8 on, and in the first loop ("old") before that. From Letta 0.14 on, sleeptime agents run in v3, too
    [read in Letta's source].
    """
    if version < (0, 8, 0):
        return "old"
    if agent_type == V1_AGENT or (agent_type == "sleeptime_agent" and version >= (0, 14, 0)):
        return "v3"
    return "v2"


def features_for_agent(features: ServerFeatures, *, sleeptime: bool) -> ServerFeatures:
    """Returns the server's features for one agent: without approvals if they fail for that agent.

    `sleeptime`: another agent edits this agent's memory while this agent rests. Before Letta 0.14, the server fails on
    every answer to a held call of such an agent, because it sets a field that the class of the answer does not have
    [read in Letta's source, and its own classes were run].
    """
    return replace(features, approvals=False) if sleeptime and features.version < (0, 14, 0) else features


def keeps_context_by_step(version: Version, loop: Loop) -> bool:
    """Returns whether a message is in the agent's context as soon as the message is stored.

    On other servers and in other loops, a message enters the context only when the message's run has ended well.
    """
    return loop == "v3" and version >= (0, 16, 1)


def can_deny_calls(features: ServerFeatures, loop: Loop) -> bool:
    """Returns whether a held call can be closed by a denial without harm.

    False on servers without approvals, and for agents in the loop v3 (`letta_v1_agent`) from Letta 0.13 on.
    """
    return features.approvals and (loop == "v2" or features.version < (0, 13, 0))


def streams_tokens_faithfully(loop: Loop) -> bool:
    """Returns whether text that Letta streams token by token is complete and unchanged.

    That is so only in the agent loop v3. The other loops lose or escape characters.
    """
    return loop == "v3"


def schema_form(features: ServerFeatures, loop: Loop, model: AgentModel, *, runs_stubs: bool) -> SchemaForm:
    """Returns the form in which the server needs a tool's schema, so that the agent's model sees all of the schema.

    `runs_stubs`: the server runs the stub, in a script that uses the names of the tool and its parameters as code.
    [Read in Letta's source, and tried on these versions.]
    """
    if runs_stubs or features.version < (0, 8, 0):
        return SchemaForm(as_sent=False, nullable_types=False, python_names=True)
    if model.endpoint.startswith("google"):
        return SchemaForm(as_sent=False, nullable_types=False)
    if features.version < (0, 13, 0):
        return SchemaForm(as_sent=False)
    if features.version > (0, 16, 2):
        return SchemaForm()
    if loop == "v3" and model.name.startswith(_RESPONSES_MODELS):
        return SchemaForm(as_sent=False)
    return SchemaForm(letta_converts=True)


def _mapping_at(value: Any, *keys: str) -> Mapping[str, Any]:
    """Returns the mapping under these keys of nested mappings; an empty mapping if a key is missing."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}
