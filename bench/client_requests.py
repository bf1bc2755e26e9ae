"""The requests of clients as bytes, and the tools in them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any

Json = dict[str, Any]

# Replaced by a number of eight digits.
MARK = b"########"
_NUMBERS = itertools.count(1)

# The tools of coding clients.
_CODING = (
    *("read_file", "write_file", "edit_file", "list_files", "search_files", "run_command", "ask_user", "new_task"),
    *("fetch_page", "apply_patch", "find_symbol", "read_terminal", "todo_write", "use_browser", "switch_mode"),
)
_DESCRIPTION = (
    "Does one thing to the project that is open in the editor and says what came of it. Paths are relative to the"
    " folder of the project. Prefer this tool to a shell command where both would do."
)


def tool(name: str, description: str = _DESCRIPTION) -> Json:
    properties: Json = {
        "path": {"type": "string", "description": "The file or folder, relative to the project."},
        "first_line": {"type": "integer", "description": "The first line to take into account, counted from one."},
        "mode": {"type": "string", "enum": ["whole", "part", "names"], "description": "How much to return."},
        "include": {"type": "array", "items": {"type": "string"}, "description": "Patterns of what to look at."},
    }
    parameters = {"type": "object", "properties": properties, "required": ["path"], "additionalProperties": False}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


CODING_TOOLS = [tool(name) for name in _CODING]


def many_tools(count: int, prefix: str) -> list[Json]:
    return [tool(f"{prefix}_{number}") for number in range(count)]


def chat(model: str, text: str, *, tools: Sequence[Json] = CODING_TOOLS, stream: bool = False, **more: Any) -> Json:
    messages = more.pop("messages", None) or [{"role": "user", "content": text}]
    return {"model": model, "messages": messages, "stream": stream, "tools": list(tools), **more}


def transcript(messages: int, text: str, size: int) -> list[Json]:
    """Makes so many messages, all but the last with `size` characters."""
    filler = "What was said before. " * (size // 22 + 1)
    roles = ("user", "assistant")
    old = [{"role": roles[number % 2], "content": filler[:size]} for number in range(messages - messages % 2)]
    return [*old, {"role": "user", "content": text}]


class NumberedRequests:
    """Repeats a request with a new number in it each time, as two equal requests would count as a client's repeat."""

    def __init__(self, request: bytes) -> None:
        self._before, mark, self._after = request.partition(MARK)
        if not mark:
            raise ValueError("the request has no place for its number")

    def next(self) -> bytes:
        return b"%b%08d%b" % (self._before, next(_NUMBERS), self._after)


def post(port: int, path: str, body: Json) -> bytes:
    """Returns a whole HTTP request as bytes."""
    content = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
    return f"{head}Authorization: Bearer none\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content


def bridge_request(port: int, body: Json) -> bytes:
    return post(port, "/v1/chat/completions", body)


def direct_request(port: int, agent_id: str, text: str, *, stream: bool = False) -> bytes:
    """Returns the request that the bridge sends to Letta for the same message."""
    body = {"messages": [{"role": "user", "content": text}], "stream_tokens": stream}
    return post(port, f"/v1/agents/{agent_id}/messages/stream", body)
