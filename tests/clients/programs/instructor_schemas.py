"""Asks for twenty forms of structured output with instructor. Arguments: how (whole or stream), and the prompt.

In the prompt, NUMBER stands for the number of the form, TOOL for the name of its tool. The last line of the output has
the values that came.
"""

# Its library is installed where the program runs, not where the project is checked.
# mypy: disable-error-code="import-not-found"

import os
import sys
from typing import Any

import instructor
from openai import OpenAI
from pydantic import BaseModel, create_model

CLIENT = instructor.from_openai(OpenAI())


def main(how: str, prompt: str) -> None:
    values = []
    for number in range(20):
        form = create_model(f"Answer{number}", value=(int, ...))
        tool = form.__name__ if how == "whole" else f"Partial{form.__name__}"
        text = prompt.replace("NUMBER", str(number)).replace("TOOL", tool)
        values.append(answer(how, form, text).value)
    sys.stdout.write(str(values))


def answer(how: str, form: type[BaseModel], text: str) -> Any:
    asked = {"model": os.environ["MODEL"], "messages": [{"role": "user", "content": text}], "response_model": form}
    if how == "whole":
        return CLIENT.chat.completions.create(**asked)
    *_, last = CLIENT.chat.completions.create_partial(**asked)
    return last


main(*sys.argv[1:])
