"""An agent of `letta-client` with a tool that reads files.

Arguments: how (create, stream, streaming or conversation), and the prompt.
"""

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from letta_client import Letta

AGENT = os.environ["AGENT_ID"]
TOOLS: list[Any] = [
    {
        "name": "read_file",
        "description": "Reads a text file.",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string", "description": "Where the file is"}},
            "required": ["path"],
        },
    }
]


def said(client: Letta, how: str, conversation: str, messages: list[Any]) -> Iterable[Any]:
    own = client.agents.messages
    if how == "create":
        return own.create(AGENT, messages=messages, client_tools=TOOLS).messages
    if how == "stream":
        return own.stream(AGENT, messages=messages, client_tools=TOOLS, stream_tokens=True)
    if how == "streaming":
        return own.create(AGENT, messages=messages, client_tools=TOOLS, streaming=True)
    return client.conversations.messages.create(conversation, messages=messages, client_tools=TOOLS)


def returned(name: str, arguments: str) -> str:
    assert name == "read_file", name
    return Path(json.loads(arguments)["path"]).read_text()


def main(how: str, prompt: str) -> None:
    client = Letta()
    conversation = client.conversations.create(agent_id=AGENT).id if how == "conversation" else ""
    messages: list[Any] = [{"role": "user", "content": prompt}]
    while True:
        calls: dict[str, list[str]] = {}
        text = ""
        for message in said(client, how, conversation, messages):
            if message.message_type == "assistant_message":
                text += message.content
            if message.message_type == "approval_request_message":
                many = message.tool_calls
                for call in many if isinstance(many, list) else [message.tool_call]:
                    name, arguments = calls.get(call.tool_call_id, ("", ""))
                    calls[call.tool_call_id] = [name + (call.name or ""), arguments + (call.arguments or "")]
        if not calls:
            sys.stdout.write(text)
            return
        approvals = [
            {"type": "tool", "tool_call_id": call_id, "tool_return": returned(*call), "status": "success"}
            for call_id, call in calls.items()
        ]
        messages = [{"type": "approval", "approvals": approvals}]


main(*sys.argv[1:])
