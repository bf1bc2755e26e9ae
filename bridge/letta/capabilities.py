"""What a Letta server, and an agent on it, can do: read from its version and its OpenAPI document, never tried out."""

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
    """What an agent thinks with; `endpoint` is the kind of API that Letta calls."""

    name: str = ""
    endpoint: str = ""


@dataclass(frozen=True, slots=True)
class ServerFeatures:
    """One server. Each flag is something that some generation lacks."""

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
        """`messages: []` goes on with the run (measured up to 0.8.17; 400 on 0.11.7 and later)."""
        return self.version < (0, 9, 0)

    @property
    def takes_images(self) -> bool:
        """Messages may have pictures (0.6.54 refuses them, 0.8.17 takes them)."""
        return self.version >= (0, 8, 0)

    @property
    def cancels_runs(self) -> bool:
        """A cancelled run really stops (earlier servers answer "cancelled" and go on)."""
        return self.version >= (0, 14, 0)

    @property
    def tells_runs(self) -> bool:
        """Which runs of an agent are under way (0.8 never ends one that was dropped, before there were none)."""
        return self.version >= (0, 11, 0)

    @property
    def parallel_calls(self) -> bool:
        """letta_v1_agent can make several calls in one step (0.13 has the setting, but it can't be changed there)."""
        return self.version >= (0, 14, 0)

    @property
    def takes_messages_beside_results(self) -> bool:
        """A message beside the results of held calls reaches the agent (0.14 refuses it, 0.15 loses it)."""
        return self.version >= (0, 16, 0)

    @property
    def has_conversations(self) -> bool:
        """An agent has conversations beside the one that the bridge leads, and lists the messages of all."""
        return self.version >= (0, 16, 2)

    @property
    def forgets_parallel_calls(self) -> bool:
        """Every change of an agent that says nothing about parallel calls switches them off (0.14 only)."""
        return (0, 14, 0) <= self.version < (0, 15, 0)

    @property
    def packs_returns(self) -> bool:
        """Stored returns are told as the model is shown them: as JSON with status, message and time."""
        return self.version < (0, 8, 0)

    @property
    def hides_conflicts(self) -> bool:
        """A message for an agent that waits for an approval ends in a broken connection (0.11)."""
        return (0, 11, 0) <= self.version < (0, 12, 0)

    @property
    def block_change_needs_recompile(self) -> bool:
        """Attaching or removing a block is not seen by the model until the agent is recompiled (0.16.5 and later)."""
        return self.recompile

    @property
    def attached_block_is_late(self) -> bool:
        """A block just attached is seen only from the second message on (measured on 0.6.54)."""
        return self.version < (0, 8, 0)

    def told(self) -> dict[str, bool]:
        """For the operator, in words."""
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
    """`0.16.1` and the like; a server that hides its version is taken for the newest of the line."""
    match = re.match(r"v?(\d+)\.(\d+)(?:\.(\d+))?", text)
    return (int(match[1]), int(match[2]), int(match[3] or 0)) if match else (0, 16, 8)


def read_features(version: str, openapi: Mapping[str, Any]) -> ServerFeatures:
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
    """Which of Letta's agent loops runs the agent; the server's version alone does not tell.

    `letta_v1_agent` runs without send_message and heartbeats (v3); every other type runs the v2 loop from 0.8 on,
    and the first loop before that. From 0.14 on sleeptime agents run as v3 [read in Letta's source].
    """
    if version < (0, 8, 0):
        return "old"
    if agent_type == V1_AGENT or (agent_type == "sleeptime_agent" and version >= (0, 14, 0)):
        return "v3"
    return "v2"


def features_for(features: ServerFeatures, *, sleeptime: bool) -> ServerFeatures:
    """What the server can do for one agent.

    Up to 0.13 it fails on every answer to a held call of an agent with sleeptime: it sets a field on the answer that
    answers have not [read in Letta's source, its own classes run].
    """
    return replace(features, approvals=False) if sleeptime and features.version < (0, 14, 0) else features


def keeps_context_by_step(version: Version, loop: Loop) -> bool:
    """Whether messages come into the context when they are stored; else they do when their run has ended well."""
    return loop == "v3" and version >= (0, 16, 1)


def can_deny_calls(features: ServerFeatures, loop: Loop) -> bool:
    """Whether a denial closes a held call without harm: never on `letta_v1_agent` from 0.13 on."""
    return features.approvals and (loop == "v2" or features.version < (0, 13, 0))


def streams_tokens_faithfully(loop: Loop) -> bool:
    """Only the v3 loop: the others lose or escape characters when they stream by token."""
    return loop == "v3"


def schema_form(features: ServerFeatures, loop: Loop, model: AgentModel, *, runs_stubs: bool) -> SchemaForm:
    """What becomes of a tool's schema on its way to the agent's model [read in Letta's source, each version run].

    `runs_stubs`: the method lets the server run the stub, in a script that uses names as code.
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
