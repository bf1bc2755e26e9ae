"""Asks for twenty forms of structured output with pydantic-ai. Arguments: how (whole or stream), and the prompt.

In the prompt, NUMBER stands for the number of the form. The last line of the output has the values that came.
"""

# Its library is installed where the program runs, not where the project is checked.
# mypy: disable-error-code="import-not-found"

import asyncio
import os
import sys
from typing import Any

from pydantic import create_model
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel


async def ask(how: str, form: type, prompt: str) -> Any:
    agent = Agent(OpenAIChatModel(os.environ["MODEL"]), output_type=form)
    if how == "whole":
        return (await agent.run(prompt)).output
    async with agent.run_stream(prompt) as result:
        return await result.get_output()


async def main(how: str, prompt: str) -> None:
    values = []
    for number in range(20):
        form = create_model(f"Answer{number}", **{f"value{number}": (int, ...)})
        values.append(getattr(await ask(how, form, prompt.replace("NUMBER", str(number))), f"value{number}"))
    sys.stdout.write(str(values))


asyncio.run(main(*sys.argv[1:]))
