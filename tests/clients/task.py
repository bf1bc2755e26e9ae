"""What a client's agent is to do, and the words by which one sees that it did."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.real.world import Agent


def secret_in(file: Path) -> str:
    """Write a file with a word in it that nobody can know; the word."""
    word = f"w{secrets.token_hex(8)}"
    file.write_text(f"The word of {file.name} is {word}.\n")
    return word


def call(tool: str, **arguments: Any) -> str:
    """The step of a script in which the model calls a tool of that name, or one that begins so.

    Where another client's tool has the plain name on the server, the model sees it with an ending.
    """
    return f"!call {tool}* {json.dumps(arguments)}"


ANSWER = "!answer"


def teach(agent: Agent, *steps: str) -> None:
    """Tell the agent, past the bridge, what its model will do with what it is told next.

    The client's own prompt is then plain text, as are the titles and summaries that the client makes of it.
    """
    script = "\n!next\n".join(["!say Agreed.", *steps])
    body = {"messages": [{"role": "user", "content": f"This is how we work:\n{script}"}]}
    agent.world.letta("POST", f"/v1/agents/{agent.id}/messages", body)


def what_is_kept(agent: Agent) -> Mapping[str, Any]:
    """The agent's messages, blocks, tools and rules as they stand on the server."""
    return {"messages": agent.state()["message_ids"], **agent.fingerprint()}
