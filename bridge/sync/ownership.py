"""How the bridge knows its own tools on the server: by tags, which every Letta keeps with the tool.

Whatever carries no mark of ours is foreign and is never changed or removed.
"""

from __future__ import annotations

from bridge.letta.gateway import Tool
from bridge.turn import Stub

OWNER = "letta-tool-bridge"
_DIGEST = f"{OWNER}:digest="
_CLIENT_NAME = f"{OWNER}:client-name="
_IDLE_SINCE = f"{OWNER}:idle-since="


def tags_for(stub: Stub) -> list[str]:
    return [OWNER, f"{_DIGEST}{stub.digest}", f"{_CLIENT_NAME}{stub.spec.name}"]


def is_ours(tool: Tool) -> bool:
    return tool.type == "custom" and OWNER in tool.tags


def digest_of(tool: Tool) -> str:
    """The digest on a tool of ours, "" when it has none."""
    return _tagged(tool, _DIGEST)


def client_name_of(tool: Tool) -> str:
    """The client's name of a tool of ours."""
    return _tagged(tool, _CLIENT_NAME) or tool.name


def idle_since(tool: Tool) -> int | None:
    """When the sweep first found the tool attached to no agent; None while nothing is known of that."""
    value = _tagged(tool, _IDLE_SINCE)
    return int(value) if value.isdigit() else None


def marked_idle(tool: Tool, since: int) -> list[str]:
    """The tool's tags with the mark of the sweep."""
    return [*(tag for tag in tool.tags if not tag.startswith(_IDLE_SINCE)), f"{_IDLE_SINCE}{since}"]


def _tagged(tool: Tool, prefix: str) -> str:
    return next((tag.removeprefix(prefix) for tag in tool.tags if tag.startswith(prefix)), "")
