"""Starts small agents that are written with the libraries."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from testbed.cache import Progress
from tests.clients.installed import folder_of, node, python_of
from tests.clients.pins import (
    INSTRUCTOR,
    LANGCHAIN,
    LETTA_CLIENT_NODE,
    OPENAI_AGENTS,
    OPENAI_AGENTS_JS,
    OPENAI_NODE,
    PYDANTIC_AI,
    VERCEL_AI,
)
from tests.clients.process import Scratch, run_to_end

PROGRAMS = Path(__file__).parent / "programs"
ON_PYTHON = {
    "agents_python": OPENAI_AGENTS,
    "instructor_schemas": INSTRUCTOR,
    "langchain_agent": LANGCHAIN,
    "langchain_schemas": LANGCHAIN,
    "pydantic_ai_agent": PYDANTIC_AI,
    "pydantic_ai_schemas": PYDANTIC_AI,
}
ON_NODE = {
    "agents_node": OPENAI_AGENTS_JS,
    "letta_client_node": LETTA_CLIENT_NODE,
    "openai_node": OPENAI_NODE,
    "responses_node": OPENAI_NODE,
    "vercel_ai": VERCEL_AI,
    "vercel_responses": VERCEL_AI,
}
SECONDS = 90.0


def answer_of(
    program: str,
    how: str,
    prompt: str,
    *,
    url: str,
    model: str,
    scratch: Scratch,
    say: Progress,
    seconds: float = SECONDS,
    api: str = "chat_completions",
) -> str:
    """Runs an agent to its end and returns its answer. Some programs speak both APIs."""
    settings = {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none", "MODEL": model, "API": api}
    return run_to_end([*_start(program, say), how, prompt], scratch, settings, seconds=seconds)


def answer_through_letta(
    program: str, how: str, prompt: str, *, url: str, agent_id: str, scratch: Scratch, say: Progress
) -> str:
    """Runs an agent of Letta's own client to its end and returns its answer."""
    settings = {"LETTA_BASE_URL": url, "LETTA_API_KEY": "none", "AGENT_ID": agent_id}
    return run_to_end([*_start(program, say), how, prompt], scratch, settings, seconds=SECONDS)


def _start(program: str, say: Progress) -> Sequence[str]:
    if program in ON_NODE:
        # Node looks for packages beside the program.
        folder = folder_of(ON_NODE[program], say)
        return [str(node(say).program), str(shutil.copy(PROGRAMS / f"{program}.mjs", folder))]
    python = python_of(ON_PYTHON[program], say) if program in ON_PYTHON else Path(sys.executable)
    return [str(python), str(PROGRAMS / f"{program}.py")]
