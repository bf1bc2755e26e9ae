"""Asks for twenty forms of structured output with LangChain. Arguments: how (whole or stream), and the prompt.

In the prompt, NUMBER stands for the number of the form. The last line of the output has the values that came.
"""

# Its library is installed where the program runs, not where the project is checked.
# mypy: disable-error-code="import-not-found"

import os
import sys

from langchain_openai import ChatOpenAI
from pydantic import create_model


def main(how: str, prompt: str) -> None:
    model = ChatOpenAI(model=os.environ["MODEL"], streaming=how == "stream")
    values = []
    for number in range(20):
        form = create_model(f"Answer{number}", value=(int, ...))
        asked = model.with_structured_output(form, method="function_calling")
        values.append(asked.invoke(prompt.replace("NUMBER", str(number))).value)
    sys.stdout.write(str(values))


main(*sys.argv[1:])
