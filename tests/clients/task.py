"""Tasks for the agent of a client, and the words that prove that it did them."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.real.world import Agent


def secret_in(file: Path) -> str:
    """Writes a file with a random word in it; returns the word."""
    word = f"w{secrets.token_hex(8)}"
    file.write_text(f"The word of {file.name} is {word}.\n")
    return word


def call(tool: str, **arguments: Any) -> str:
    """Returns the step of a script that calls a tool of that name, or with a suffix.

    The tool has a suffix if another client's tool has the plain name on the server.
    """
    return f"!call {tool}* {json.dumps(arguments)}"


ANSWER = "!answer"


def script(*steps: str) -> str:
    """Returns the lines of a message that has the agent take these steps, and then answer with the last results."""
    return "\n!next\n".join([*steps, ANSWER])


def teach(agent: Agent, *steps: str) -> None:
    """Gives the agent, past the bridge, the script for its next turns.

    So the client's own prompt is plain text, as are the titles and summaries that the client makes of it.
    """
    lesson = "\n!next\n".join(["!say Agreed.", *steps])
    body = {"messages": [{"role": "user", "content": f"This is how we work:\n{lesson}"}]}
    agent.world.letta("POST", f"/v1/agents/{agent.id}/messages", body)


def what_is_kept(agent: Agent) -> Mapping[str, Any]:
    """Returns the agent's messages, blocks, tools and rules on the server."""
    return {"messages": agent.state()["message_ids"], **agent.fingerprint()}
