"""A LangChain agent with a tool that reads files. Arguments: how (whole or stream), and the prompt."""

# Its library is installed where the program runs, not where the project is checked.
# mypy: disable-error-code="import-not-found, untyped-decorator"

import os
import sys
from pathlib import Path

from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI


@tool
def read_file(path: str) -> str:
    """Reads a text file."""
    return Path(path).read_text()


def main(how: str, prompt: str) -> None:
    responses = os.environ["API"] == "responses"
    model = ChatOpenAI(model=os.environ["MODEL"], streaming=how == "stream", use_responses_api=responses)
    agent = create_agent(model, [read_file])
    last = agent.invoke({"messages": [{"role": "user", "content": prompt}]})["messages"][-1]
    assert isinstance(last, AIMessage)
    sys.stdout.write(str(last.text))


main(*sys.argv[1:])
