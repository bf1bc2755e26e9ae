"""What a Letta server and its agents can do, by version and OpenAPI document. Every test of a version is here."""

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
    """An agent's language model. `endpoint` is the kind of API by which Letta calls the model, as in "openai"."""

    name: str = ""
    endpoint: str = ""


@dataclass(frozen=True, slots=True)
class ServerFeatures:
    """The features of one Letta server, each missing from some generation of Letta. `client_tools`: schemas of tools
    can be sent with a message. `approvals`: calls can be held until approved or denied. `tool_returns`: the answer to a
    held call can carry its result. `message_rewrite`: stored messages can be changed. `recompile`: memory can be
    compiled into the prompt again. `rule_prompts`: a tool rule can have its own prompt. `lists_in_agent_files`: a file
    to import has a list of agents, instead of one agent in another form.
    """

    version: Version
    client_tools: bool
    approvals: bool
    tool_returns: bool
    message_rewrite: bool
    recompile: bool
    tools_by_names: bool
    rule_prompts: bool = False
    lists_in_agent_files: bool = False

    @property
    def version_text(self) -> str:
        return ".".join(map(str, self.version))

    @property
    def continues_without_message(self) -> bool:
        """Whether `messages: []` continues a run (up to Letta 0.8.17; Letta 0.11.7 and later answer 400)."""
        return self.version < (0, 9, 0)

    @property
    def takes_images(self) -> bool:
        """Whether messages may have pictures. Letta 0.6.54 refuses them, Letta 0.8.17 accepts them."""
        return self.version >= (0, 8, 0)

    @property
    def takes_text_parts(self) -> bool:
        """Whether a message may have several parts of text. Letta 0.6 takes the first, 0.8 and 0.11 fail."""
        return self.version >= (0, 14, 0)

    @property
    def cancels_runs(self) -> bool:
        """Whether a cancelled run really stops. Before Letta 0.14 it goes on, though the server says "cancelled"."""
        return self.version >= (0, 14, 0)

    @property
    def lists_active_runs(self) -> bool:
        """Whether active runs are listed rightly. Letta 0.8 lists abandoned runs for ever; 0.7 has no runs."""
        return self.version >= (0, 11, 0)

    @property
    def deletes_messages_at_reset(self) -> bool:
        """Whether a reset of an agent's messages deletes them all, in its context or not. Letta 0.16.1 keeps them."""
        return self.version < (0, 16, 0)

    @property
    def ends_runs_with_connection(self) -> bool:
        """Whether a run ends when the connection of its stream does. Letta 0.8.17 does that, 0.6.54 and 0.11 do not."""
        return (0, 8, 0) <= self.version < (0, 11, 0)

    @property
    def lists_runs_of_one_agent(self) -> bool:
        """Whether `agent_id` limits the list of active runs. Letta 0.11 ignores it: there it is `agent_ids`."""
        return self.version >= (0, 12, 0)

    @property
    def has_v1_agents(self) -> bool:
        """Whether agents can have the type `letta_v1_agent`, which answers without calling a tool."""
        return self.version >= (0, 12, 0)

    @property
    def helper_type(self) -> str:
        """The type of the agents that the bridge makes: the one whose models see the least of Letta's own words."""
        return V1_AGENT if self.has_v1_agents else "memgpt_agent"

    @property
    def imports_held_calls(self) -> bool:
        """Whether a held call of an imported agent can be answered. Letta 0.14 to 0.16.2 miss the id of its step."""
        return self.version >= (0, 16, 4)

    @property
    def packs_user_messages(self) -> bool:
        """Whether the model sees each user message as JSON with type, message and time."""
        return self.version < (0, 8, 0)

    @property
    def parallel_calls(self) -> bool:
        """Whether `letta_v1_agent` can make several calls in a step. Letta 0.13 can't change `parallel_tool_calls`."""
        return self.version >= (0, 14, 0)

    @property
    def takes_messages_beside_results(self) -> bool:
        """Whether a message beside results reaches the agent. Letta 0.14 refuses it, 0.15 loses it."""
        return self.version >= (0, 16, 0)

    @property
    def has_conversations(self) -> bool:
        """Whether agents can have further conversations. Their messages are then listed together."""
        return self.version >= (0, 16, 2)

    @property
    def resets_parallel_calls(self) -> bool:
        """Whether changing an agent switches its parallel calls off, if the change does not set them (Letta 0.14)."""
        return (0, 14, 0) <= self.version < (0, 15, 0)

    @property
    def packs_returns(self) -> bool:
        """Whether tool returns are listed as the model sees them: as JSON with status, message and time."""
        return self.version < (0, 8, 0)

    @property
    def hides_conflicts(self) -> bool:
        """Whether Letta closes the connection without an error if an agent waits for an approval (0.11)."""
        return (0, 11, 0) <= self.version < (0, 12, 0)

    @property
    def block_change_needs_recompile(self) -> bool:
        """Whether the model sees attached or removed blocks only after a recompilation (from 0.16.5 on)."""
        return self.recompile

    @property
    def attached_block_is_late(self) -> bool:
        """Whether the model sees a new block only from the second message on (measured on Letta 0.6.54)."""
        return self.version < (0, 8, 0)

    def abilities_in_words(self) -> dict[str, bool]:
        """Returns the main features as phrases for the operator, with whether the server has each."""
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
        lists_in_agent_files="ImportedAgentsResponse" in schemas,
    )


def agent_loop(version: Version, agent_type: str) -> Loop:
    """Returns which of Letta's loops runs an agent of this type. v3 works without send_message and heartbeats; from
    Letta 0.14 on, sleeptime agents run in v3, too [read in Letta's source].
    """
    if version < (0, 8, 0):
        return "old"
    if agent_type == V1_AGENT or (agent_type == "sleeptime_agent" and version >= (0, 14, 0)):
        return "v3"
    return "v2"


def features_for_agent(features: ServerFeatures, *, sleeptime: bool) -> ServerFeatures:
    """Drops approvals if another agent edits this one's memory (`sleeptime`) before Letta 0.14: answers to held calls
    fail on a field that their class does not have [read in Letta's source; its classes were run].
    """
    return replace(features, approvals=False) if sleeptime and features.version < (0, 14, 0) else features


def keeps_context_by_step(version: Version, loop: Loop) -> bool:
    """Returns whether a stored message is in the agent's context at once, not only when its run has ended well."""
    return loop == "v3" and version >= (0, 16, 1)


def can_deny_calls(features: ServerFeatures, loop: Loop) -> bool:
    """Returns whether a denial can close a held call without harm: not in the loop v3 from Letta 0.13 on."""
    return features.approvals and (loop == "v2" or features.version < (0, 13, 0))


def streams_tokens_faithfully(loop: Loop) -> bool:
    """Returns whether text streamed by token is unchanged: loops other than v3 lose or escape characters."""
    return loop == "v3"


def schema_form(features: ServerFeatures, loop: Loop, model: AgentModel, *, runs_stubs: bool) -> SchemaForm:
    """Returns the form in which the agent's model sees all of a tool's schema. `runs_stubs`: the server runs the stub
    in a script that uses the names of tool and parameters as code. [Read in Letta's source, and tried on these
    versions.]
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
