"""Finds the names under which a request would store a tool, so that it does not overwrite a stub: Letta stores a tool
under its name, whoever made the one that is there.
"""

from __future__ import annotations

import re
from contextlib import suppress
from json import loads
from typing import Any
from urllib.parse import unquote

from bridge.errors import ToolNameTaken
from bridge.letta.gateway import ForeignCall, Gateway
from bridge.sync.ownership import is_ours

# The most names of one request that are looked for. Source code may define many functions.
MOST_NAMES = 100
# A function that source code defines, in Python or TypeScript. Letta names a tool after one of them.
_FUNCTION = re.compile(r"^(?:export\s+)?(?:async\s+)?(?:def|function)\s+(\w+)", re.MULTILINE)
_WRITES = re.compile(r"(POST|PUT) /v1/tools/?|PATCH /v1/tools/[^/]+/?")
_ADDS = re.compile(r"POST /v1/tools/(?:mcp/servers/[^/]+|composio)/([^/]+)/?")


def check_tool_name(call: ForeignCall, gateway: Gateway) -> None:
    """Raises ToolNameTaken if the request would overwrite one of the bridge's stubs."""
    names = sorted(_names_written(call))[:MOST_NAMES]
    stub = next((tool for tool in gateway.tools_named(names) if is_ours(tool)), None) if names else None
    if stub is not None:
        raise ToolNameTaken(
            f"The name {stub.name!r:.160} is that of a tool which the bridge keeps on Letta for a client, and which"
            " your tool would replace. Give your tool another name.",
            param="name",
        )


def _names_written(call: ForeignCall) -> set[str]:
    request = f"{call.verb} {call.path}"
    added = _ADDS.fullmatch(request)
    if added:
        name = unquote(added[1])
        return {name, name.lower()} - {"resync", "test"}
    return _names_in_body(call.body or b"") if _WRITES.fullmatch(request) else set()


def _names_in_body(content: bytes) -> set[str]:
    """Returns the names that a tool's JSON may give it. Letta refuses what is no JSON."""
    body: Any = None
    with suppress(ValueError, RecursionError):
        body = loads(content)
    if not isinstance(body, dict):
        return set()
    schema, source = body.get("json_schema"), body.get("source_code")
    named = [body.get("name"), schema.get("name") if isinstance(schema, dict) else None]
    defined = _FUNCTION.findall(source) if isinstance(source, str) else []
    return {name for name in [*named, *defined] if isinstance(name, str) and name}
