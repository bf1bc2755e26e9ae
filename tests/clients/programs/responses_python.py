"""An agent of the `openai` package that speaks the Responses API. Arguments: how (whole or stream), and the prompt."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from openai import OpenAI
from openai.types.responses import Response

MODEL = os.environ["MODEL"]
TOOLS: list[Any] = [
    {
        "type": "function",
        "name": "read_file",
        "description": "Reads a text file.",
        "strict": False,
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string", "description": "Where the file is"}},
            "required": ["path"],
        },
    }
]


def said(client: OpenAI, how: str, given: list[Any], before: str | None) -> Response:
    if how == "whole":
        return client.responses.create(model=MODEL, input=given, tools=TOOLS, previous_response_id=before)
    with client.responses.stream(model=MODEL, input=given, tools=TOOLS) as stream:
        return stream.get_final_response()


def main(how: str, prompt: str) -> None:
    """Streamed, sends the whole history each time; whole, only what is new, with the id of the response before."""
    client = OpenAI()
    history: list[Any] = [{"role": "user", "content": prompt}]
    given, before = history, None
    while True:
        response = said(client, how, given, before)
        history += response.output
        calls = [item for item in response.output if item.type == "function_call"]
        outputs = [
            {
                "type": "function_call_output",
                "call_id": call.call_id,
                "output": Path(json.loads(call.arguments)["path"]).read_text(),
            }
            for call in calls
        ]
        if not calls:
            sys.stdout.write(response.output_text)
            return
        history += outputs
        given, before = (outputs, response.id) if how == "whole" else (history, None)


main(*sys.argv[1:])
