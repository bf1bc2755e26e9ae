"""Finds the names under which a request would store a tool, so that it does not overwrite a stub: Letta stores a tool
under its name, whoever made the one that is there.
"""

from __future__ import annotations

import re
from contextlib import suppress
from json import loads
from typing import Any
from unicodedata import normalize
from urllib.parse import unquote

from bridge.errors import ToolNameTaken
from bridge.letta.gateway import ForeignCall, Gateway
from bridge.sync.ownership import is_ours

# Of the functions that source code defines, how many of the first and of the last ones are looked for: Letta names a
# tool after the first, old versions after the last.
MOST_AT_AN_END = 50
# A function that source code defines, in Python or TypeScript, after _functions_in() has joined the lines.
_FUNCTION = re.compile(r"^\f*(?:export\s+)?(?:async\s+)?(?:def|function)\s+(\w+)", re.MULTILINE)
_WRITES = re.compile(r"(POST|PUT) /v1/tools/?|PATCH /v1/tools/[^/]+/?")
_ADDS = re.compile(r"POST /v1/tools/(?:mcp/servers/[^/]+|composio)/([^/]+)/?")


def check_tool_name(call: ForeignCall, gateway: Gateway) -> None:
    """Raises ToolNameTaken if the request would overwrite one of the bridge's stubs."""
    names = sorted(_names_written(call))
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
    defined = _functions_in(source) if isinstance(source, str) else []
    return {name for name in [*named, *defined] if isinstance(name, str) and name}


def _functions_in(source: str) -> list[str]:
    """Returns the names of functions as Python reads them: it knows other line ends, joins lines, normalises names."""
    lines = re.sub(r"\r\n?", "\n", source.removeprefix("\ufeff"))
    joined = re.sub(r"\\\n[ \t]*", "\f", lines)
    found = _FUNCTION.findall(normalize("NFKC", joined))
    return [*found[:MOST_AT_AN_END], *found[MOST_AT_AN_END:][-MOST_AT_AN_END:]]
