"""What a Letta server, and an agent on it, can do.

This is read from the server's version and its OpenAPI document; nothing is tried out. Every test of a version is here:
a new version of Letta changes this file only.
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
# Up to 0.16.2 these go through OpenAI's Responses API, where Letta makes every tool strict.
_RESPONSES_MODELS = ("o1", "o3", "o4", "gpt-5")


@dataclass(frozen=True, slots=True)
class AgentModel:
    """The model of an agent. `endpoint` is the kind of API that Letta calls."""

    name: str = ""
    endpoint: str = ""


@dataclass(frozen=True, slots=True)
class ServerFeatures:
    """The abilities of one server. Each of them is missing from some generation of Letta.

    `client_tools`: tools can be sent with a message. `approvals`: calls can be held for an approval. `tool_returns`:
    the answer to a held call can carry its result. `message_rewrite`: stored messages can be changed. `recompile`: an
    agent's memory can be compiled again. `tools_by_names`: one read finds tools by several names. `rule_prompts`: a
    tool rule can have its own prompt.
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
        """`messages: []` continues the run (measured up to 0.8.17; 0.11.7 and later answer 400)."""
        return self.version < (0, 9, 0)

    @property
    def takes_images(self) -> bool:
        """Messages may have pictures (0.6.54 refuses them, 0.8.17 accepts them)."""
        return self.version >= (0, 8, 0)

    @property
    def cancels_runs(self) -> bool:
        """A cancelled run really stops. Earlier servers answer "cancelled" and continue the run."""
        return self.version >= (0, 14, 0)

    @property
    def lists_active_runs(self) -> bool:
        """The list of active runs is right. 0.8 lists a run for ever when its client has left; 0.7 has no runs."""
        return self.version >= (0, 11, 0)

    @property
    def lists_runs_of_one_agent(self) -> bool:
        """The list of active runs takes `agent_id`. 0.11 ignores that, lists all agents' runs, and has `agent_ids`."""
        return self.version >= (0, 12, 0)

    @property
    def has_v1_agents(self) -> bool:
        """Agents can have the type `letta_v1_agent`, which answers without calling a tool."""
        return self.version >= (0, 12, 0)

    @property
    def parallel_calls(self) -> bool:
        """`letta_v1_agent` can make several calls in one step. 0.13 has the setting, but it can't be changed there."""
        return self.version >= (0, 14, 0)

    @property
    def takes_messages_beside_results(self) -> bool:
        """A message sent with the results of held calls reaches the agent. 0.14 refuses it, 0.15 loses it."""
        return self.version >= (0, 16, 0)

    @property
    def has_conversations(self) -> bool:
        """An agent can have other conversations than the bridge's, and lists the messages of all of them."""
        return self.version >= (0, 16, 2)

    @property
    def resets_parallel_calls(self) -> bool:
        """A change of an agent that does not name `parallel_tool_calls` switches them off (0.14 only)."""
        return (0, 14, 0) <= self.version < (0, 15, 0)

    @property
    def packs_returns(self) -> bool:
        """Stored returns are listed in the form that the model sees: JSON with status, message and time."""
        return self.version < (0, 8, 0)

    @property
    def hides_conflicts(self) -> bool:
        """A message for an agent that waits for an approval breaks the connection, without an error (0.11)."""
        return (0, 11, 0) <= self.version < (0, 12, 0)

    @property
    def block_change_needs_recompile(self) -> bool:
        """The model sees that a block was attached or removed only after the agent is recompiled (0.16.5 and later)."""
        return self.recompile

    @property
    def attached_block_is_late(self) -> bool:
        """The model sees a new block only from the second message on (measured on 0.6.54)."""
        return self.version < (0, 8, 0)

    def abilities_in_words(self) -> dict[str, bool]:
        """Returns the main abilities as sentences, for the operator."""
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
    """Reads `0.16.1` and the like. A server that hides its version counts as the newest."""
    match = re.match(r"v?(\d+)\.(\d+)(?:\.(\d+))?", text)
    return (int(match[1]), int(match[2]), int(match[3] or 0)) if match else (0, 16, 8)


def read_features(version: str, openapi: Mapping[str, Any]) -> ServerFeatures:
    """Reads the abilities from the version that the server reports and from its OpenAPI document."""
    schemas = _dig(openapi, "components", "schemas")
    request_fields = _dig(schemas, "LettaRequest", "properties")
    approval_fields = _dig(schemas, "ApprovalCreate", "properties")
    paths = _dig(openapi, "paths")
    rewrite = _dig(paths, "/v1/agents/{agent_id}/messages/{message_id}", "patch")
    return ServerFeatures(
        version=parse_version(version),
        client_tools="client_tools" in request_fields,
        approvals=bool(approval_fields),
        tool_returns="approvals" in approval_fields and ("group_id" in approval_fields or "input" in request_fields),
        message_rewrite=bool(rewrite) and not rewrite.get("deprecated", False),
        recompile="/v1/agents/{agent_id}/recompile" in paths,
        tools_by_names=any(
            isinstance(parameter, Mapping) and parameter.get("name") == "names"
            for parameter in _dig(paths, "/v1/tools/", "get").get("parameters", ())
        ),
        rule_prompts="prompt_template" in _dig(schemas, "TerminalToolRule", "properties"),
    )


def agent_loop(version: Version, agent_type: str) -> Loop:
    """Returns which of Letta's agent loops runs the agent. It depends on the agent's type, too.

    `letta_v1_agent` runs without send_message and heartbeats (v3). Every other type runs the v2 loop from 0.8 on,
    and the first loop before that. From 0.14 on, sleeptime agents run as v3 [read in Letta's source].
    """
    if version < (0, 8, 0):
        return "old"
    if agent_type == V1_AGENT or (agent_type == "sleeptime_agent" and version >= (0, 14, 0)):
        return "v3"
    return "v2"


def features_for_agent(features: ServerFeatures, *, sleeptime: bool) -> ServerFeatures:
    """Returns what the server can do for one agent.

    Up to 0.13 it fails on every answer to a held call of an agent with sleeptime: it sets a field that the class of
    the answer does not have [read in Letta's source, its own classes run].
    """
    return replace(features, approvals=False) if sleeptime and features.version < (0, 14, 0) else features


def keeps_context_by_step(version: Version, loop: Loop) -> bool:
    """Whether messages are in the context once they are stored. Otherwise they are when their run has ended well."""
    return loop == "v3" and version >= (0, 16, 1)


def can_deny_calls(features: ServerFeatures, loop: Loop) -> bool:
    """Whether a denial closes a held call without harm: not for `letta_v1_agent` from 0.13 on."""
    return features.approvals and (loop == "v2" or features.version < (0, 13, 0))


def streams_tokens_faithfully(loop: Loop) -> bool:
    """Whether text is right when it is streamed by token. The other loops lose or escape characters."""
    return loop == "v3"


def schema_form(features: ServerFeatures, loop: Loop, model: AgentModel, *, runs_stubs: bool) -> SchemaForm:
    """Returns what happens to a tool's schema on its way to the agent's model [read in Letta's source, versions run].

    `runs_stubs`: with this method the server runs the stub, in a script that uses the tool's names as code.
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


def _dig(value: Any, *keys: str) -> Mapping[str, Any]:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}
