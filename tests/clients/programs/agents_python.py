"""An agent of the OpenAI Agents SDK with a tool that reads files. Arguments: how (whole or stream), and the prompt."""

# Its library is installed where the program runs, not where the project is checked.
# mypy: disable-error-code="import-not-found, untyped-decorator"

import asyncio
import os
import sys
from pathlib import Path

from agents import Agent, Runner, function_tool, set_tracing_disabled

set_tracing_disabled(True)


@function_tool
def read_file(path: str) -> str:
    """Reads a text file."""
    return Path(path).read_text()


async def main(how: str, prompt: str) -> None:
    agent = Agent(name="reader", model=os.environ["MODEL"], tools=[read_file])
    if how == "whole":
        sys.stdout.write((await Runner.run(agent, prompt)).final_output)
        return
    result = Runner.run_streamed(agent, prompt)
    async for _ in result.stream_events():
        pass
    sys.stdout.write(result.final_output)


asyncio.run(main(*sys.argv[1:]))
