"""How the bridge recognises its own tools on the server: by tags, which every Letta keeps with a tool, and by source.

A tool without our marks is foreign. It is never changed or removed.
"""

from __future__ import annotations

import time

from bridge.letta.gateway import Tool
from bridge.turn import Stub

OWNER = "letta-tool-bridge"
# Unix times have at most 10 digits until the year 2286; Python's dates end in the year 9999.
MAX_TIME_DIGITS = 10
_DIGEST = f"{OWNER}:digest="
_CLIENT_NAME = f"{OWNER}:client-name="
_KIND = f"{OWNER}:kind="
_MADE = f"{OWNER}:made="
_IDLE_SINCE = f"{OWNER}:idle-since="
_LEAVING = f"{OWNER}:leaving"


def stub_tags(stub: Stub, now: float | None = None) -> list[str]:
    made = int(time.time() if now is None else now)
    known = [OWNER, f"{_DIGEST}{stub.digest}", f"{_CLIENT_NAME}{stub.spec.name}", f"{_KIND}{stub.kind}"]
    return [*known, f"{_MADE}{made}"]


def is_ours(tool: Tool) -> bool:
    return _has_our_tags(tool) and not was_replaced(tool)


def was_replaced(tool: Tool) -> bool:
    """Whether somebody put another tool under a stub's name. Letta keeps our tags on it, and agents still have it."""
    return _has_our_tags(tool) and tool.source != "" and OWNER not in tool.source


def _has_our_tags(tool: Tool) -> bool:
    return tool.type == "custom" and OWNER in tool.tags


def digest_of(tool: Tool) -> str:
    """Returns the digest on a tool of ours; "" if it has none."""
    return _tagged(tool, _DIGEST)


def client_name_of(tool: Tool) -> str:
    """Returns the client's name of a tool of ours."""
    return _tagged(tool, _CLIENT_NAME) or tool.name


def creation_time(tool: Tool) -> int:
    """Returns the Unix time at which the bridge made the tool, which Letta itself does not say; 0 without a mark."""
    return _seconds(tool, _MADE) or 0


def is_tool_of_stub(tool: Tool, stub: Stub) -> bool:
    """Whether the tool is this stub: unchanged, changed by hand, or made by another version of the bridge."""
    if not is_ours(tool) or is_leaving(tool):
        return False
    made_alike = f"{_KIND}{stub.kind}" in tool.tags and client_name_of(tool) == stub.spec.name
    return digest_of(tool) == stub.digest or (made_alike and tool.json_schema == stub.json_schema)


def differs_from_stub(tool: Tool, stub: Stub) -> bool:
    """Whether the stub on the server differs from what the bridge puts there."""
    return digest_of(tool) != stub.digest or tool.json_schema != stub.json_schema or tool.source != stub.source_code


# --- marks of the sweep -------------------------------------------------------------------------------


def idle_since(tool: Tool) -> int | None:
    """Returns when the sweep first found the tool attached to no agent; None if it did not."""
    return _seconds(tool, _IDLE_SINCE)


def is_leaving(tool: Tool) -> bool:
    """Whether the tool is about to be deleted: no turn may begin to use it."""
    return _LEAVING in tool.tags


def has_sweep_tag(tool: Tool) -> bool:
    return idle_since(tool) is not None or is_leaving(tool)


def tags_when_idle(tool: Tool, since: int) -> list[str]:
    """Returns the tool's tags with the sweep's first mark."""
    return [*tags_without_sweep(tool), f"{_IDLE_SINCE}{since}"]


def tags_when_leaving(tool: Tool) -> list[str]:
    """Returns the tool's tags with the sweep's last mark added."""
    return [*(tag for tag in tool.tags if tag != _LEAVING), _LEAVING]


def tags_without_sweep(tool: Tool) -> list[str]:
    """Returns the tool's tags without the marks of the sweep."""
    return [tag for tag in tool.tags if tag != _LEAVING and not tag.startswith(_IDLE_SINCE)]


def _seconds(tool: Tool, prefix: str) -> int | None:
    """Returns the time in a mark; None if there is no mark, or if somebody changed it to an invalid time."""
    value = _tagged(tool, prefix)
    return int(value) if value.isdecimal() and len(value) <= MAX_TIME_DIGITS else None


def _tagged(tool: Tool, prefix: str) -> str:
    for tag in tool.tags:
        if tag.startswith(prefix):
            return tag.removeprefix(prefix)
    return ""
