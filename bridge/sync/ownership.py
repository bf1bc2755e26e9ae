"""Recognises the bridge's own tools on the Letta server by their tags, which every Letta keeps, and by their source.

A tool without the bridge's tags belongs to somebody else: the bridge never changes or removes it.
"""

from __future__ import annotations

import hashlib
import time

from bridge.letta.gateway import Agent, Tool
from bridge.turn import Stub

OWNER = "letta-tool-bridge"
# Unix times have at most 10 digits until the year 2286; Python's dates end in the year 9999.
MAX_TIME_DIGITS = 10
_DIGEST = f"{OWNER}:digest="
_CLIENT_NAME = f"{OWNER}:client-name="
_KIND = f"{OWNER}:kind="
_MADE = f"{OWNER}:made="
_MADE_FOR = f"{OWNER}:made-for="
_IDLE_SINCE = f"{OWNER}:idle-since="
_LEAVING = f"{OWNER}:leaving"


def stub_tags(stub: Stub, key_name: str = "") -> list[str]:
    """Returns the tags of a stub that is made now for the client with the key `key_name`, "" without keys."""
    known = [OWNER, f"{_DIGEST}{stub.digest}", f"{_CLIENT_NAME}{stub.spec.name}", f"{_KIND}{stub.kind}"]
    made_for = [f"{_MADE_FOR}{_key_digest(key_name)}"] if key_name else []
    return [*known, f"{_MADE}{int(time.time())}", *made_for]


def _key_digest(key_name: str) -> str:
    """Returns a digest, because everybody who uses the Letta server sees the tags."""
    return hashlib.blake2b(key_name.encode(), digest_size=8).hexdigest()


def is_ours(tool: Tool) -> bool:
    """Whether the bridge made a tool on the Letta server, and nobody replaced it."""
    return _has_our_tags(tool) and not was_replaced(tool)


def names_of_our_tools(agent: Agent) -> tuple[str, ...]:
    return tuple(tool.name for tool in agent.tools if is_ours(tool))


def was_replaced(tool: Tool) -> bool:
    """Whether somebody put another tool under the name of a stub: Letta keeps the bridge's tags on that tool, and the
    agents have it now, but its source does not name the bridge. A tool without source counts as not replaced.
    """
    return _has_our_tags(tool) and tool.source != "" and OWNER not in tool.source


def _has_our_tags(tool: Tool) -> bool:
    return tool.type == "custom" and OWNER in tool.tags


def digest_of(tool: Tool) -> str:
    """Returns the digest of the stub from a tool's tags; "" if there is no such tag."""
    return _tag_value(tool, _DIGEST)


def client_name_of(tool: Tool) -> str:
    """Returns the client's name from a tool's tags; the name on the server if there is no such tag."""
    return _tag_value(tool, _CLIENT_NAME) or tool.name


def creation_time(tool: Tool) -> int:
    """Returns the Unix time at which the bridge made a tool, which Letta does not say; 0 without a valid tag."""
    return _time_in_tag(tool, _MADE) or 0


def key_of(tool: Tool) -> str:
    """Returns what stands for the key for which the bridge made a tool; "" without a key, or if it is not known."""
    return _tag_value(tool, _MADE_FOR)


def is_made_for(tool: Tool, key_name: str) -> bool:
    """Whether the bridge made a tool for the client with this key."""
    return is_ours(tool) and key_of(tool) == _key_digest(key_name)


def is_tool_of_stub(tool: Tool, stub: Stub) -> bool:
    """Whether a tool is the stub's: by its digest, or because another version of the bridge may have made it."""
    if not is_ours(tool) or is_leaving(tool):
        return False
    made_alike = f"{_KIND}{stub.kind}" in tool.tags and client_name_of(tool) == stub.spec.name
    return digest_of(tool) == stub.digest or (made_alike and tool.json_schema == stub.json_schema)


def differs_from_stub(tool: Tool, stub: Stub) -> bool:
    """Whether a tool on the server differs from the stub, and so needs an update."""
    return digest_of(tool) != stub.digest or tool.json_schema != stub.json_schema or tool.source != stub.source_code


# --- tags of the sweep --------------------------------------------------------------------------------


def idle_since(tool: Tool) -> int | None:
    """Returns the Unix time at which a sweep first found that no agent has the tool; None without a valid tag."""
    return _time_in_tag(tool, _IDLE_SINCE)


def is_leaving(tool: Tool) -> bool:
    """Whether a sweep is about to delete a tool, so that no turn may begin to use it."""
    return _LEAVING in tool.tags


def has_sweep_tag(tool: Tool) -> bool:
    """Whether a sweep has tagged the tool: because no agent has the tool, or because the tool is being deleted."""
    return idle_since(tool) is not None or is_leaving(tool)


def tags_when_idle(tool: Tool, since: int) -> list[str]:
    """Returns the tags with the Unix time since which no agent has had the tool."""
    return [*tags_without_sweep(tool), f"{_IDLE_SINCE}{since}"]


def tags_when_leaving(tool: Tool) -> list[str]:
    return [*(tag for tag in tool.tags if tag != _LEAVING), _LEAVING]


def tags_without_sweep(tool: Tool) -> list[str]:
    return [tag for tag in tool.tags if tag != _LEAVING and not tag.startswith(_IDLE_SINCE)]


def _time_in_tag(tool: Tool, prefix: str) -> int | None:
    """Returns the Unix time in a tag; None if there is no such tag, or an invalid time that somebody put there."""
    value = _tag_value(tool, prefix)
    return int(value) if value.isdecimal() and len(value) <= MAX_TIME_DIGITS else None


def _tag_value(tool: Tool, prefix: str) -> str:
    for tag in tool.tags:
        if tag.startswith(prefix):
            return tag.removeprefix(prefix)
    return ""
