"""A pydantic-ai agent with a tool that reads files. Arguments: how (whole or stream), and the prompt."""

# Its library is installed where the program runs, not where the project is checked.
# mypy: disable-error-code="import-not-found, untyped-decorator"

import asyncio
import os
import sys
from pathlib import Path

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel

kind = OpenAIResponsesModel if os.environ["API"] == "responses" else OpenAIChatModel
agent = Agent(kind(os.environ["MODEL"]))


@agent.tool_plain
def read_file(path: str) -> str:
    """Reads a text file."""
    return Path(path).read_text()


async def main(how: str, prompt: str) -> None:
    if how == "whole":
        sys.stdout.write((await agent.run(prompt)).output)
        return
    async with agent.run_stream(prompt) as result:
        sys.stdout.write(await result.get_output())


asyncio.run(main(*sys.argv[1:]))
