"""An agent of the `openai` package with a tool that reads files. Arguments: how (whole or stream), and the prompt."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from openai import OpenAI
from openai.types.chat import ChatCompletionMessage

MODEL = os.environ["MODEL"]
TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": "read_file",
            "description": "Reads a text file.",
            "parameters": {
                "type": "object",
                "properties": {"path": {"type": "string", "description": "Where the file is"}},
                "required": ["path"],
            },
        },
    }
]


def said(client: OpenAI, how: str, messages: list[Any]) -> ChatCompletionMessage:
    if how == "whole":
        return client.chat.completions.create(model=MODEL, messages=messages, tools=TOOLS).choices[0].message
    with client.chat.completions.stream(model=MODEL, messages=messages, tools=TOOLS) as stream:
        return stream.get_final_completion().choices[0].message


def main(how: str, prompt: str) -> None:
    client = OpenAI()
    messages: list[Any] = [{"role": "user", "content": prompt}]
    while True:
        message = said(client, how, messages)
        messages.append(message)
        for call in message.tool_calls or ():
            assert call.type == "function"
            text = Path(json.loads(call.function.arguments)["path"]).read_text()
            messages.append({"role": "tool", "tool_call_id": call.id, "content": text})
        if not message.tool_calls:
            sys.stdout.write(message.content or "")
            return


main(*sys.argv[1:])
