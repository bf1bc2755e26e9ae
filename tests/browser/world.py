"""A bridge with a history, served to a browser. Clients have talked to agents of a Letta in memory."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from werkzeug.serving import WSGIRequestHandler, make_server

from app import create_app
from bridge.config import read_settings
from bridge.errors import LettaTimeout, ModelOverloaded
from bridge.history.records import TurnRecord
from bridge.letta.capabilities import AgentModel
from bridge.letta.gateway import Agent
from bridge.stubs.naming import server_name
from bridge.sync.ownership import OWNER
from bridge.trace import current_trace
from bridge.turn import AgentCall, AgentEvent, AgentReturn, Reasoning, Stopped, Text, Used
from tests.admin import PASSWORD
from tests.test_complaints import Json, held, tool
from tests.toolsets import SharedLetta

KEY = "a-key-of-a-client"
HOSTILE = "<script>window.hacked=1</script><img src=x onerror=window.hacked=2>\u202e'\"{{7*7}}"
PATH = {"type": "object", "properties": {"path": {"type": "string", "description": "Which file"}}, "required": ["path"]}
LINES = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "The file, relative to the workspace"},
        "line-range": {"anyOf": [{"type": "string", "pattern": "^[0-9]+-[0-9]+$"}, {"type": "null"}]},
        "limit": {"type": "integer", "minimum": 1, "maximum": 2000, "default": 500},
    },
    "required": ["path"],
    "additionalProperties": False,
}
CODING = {
    "read_file": ("Reads a file of the workspace, with line numbers.", LINES),
    "write_to_file": ("Writes a file, and makes the folders that it needs.", PATH),
    "apply_diff": ("Changes a file by search and replace blocks.", PATH),
    "execute_command": ("Runs a command in the terminal of the user.", PATH),
    "list_files": ("Lists the files of a folder.", PATH),
    "search_files": ("Searches the workspace with a regular expression.", PATH),
    "ask_followup_question": ("Asks the user a question.", PATH),
    "mcp--github/create_issue": ("Opens an issue.", PATH),
}
HOME = {"lights.set": ("Switches lights.", PATH), "web_search": ("Searches the web with the user's own browser.", PATH)}


@dataclass(frozen=True, slots=True)
class Served:
    """`url` is the address for the browser."""

    url: str
    letta: SharedLetta
    app: Any

    def ask(self, agent: str, messages: Sequence[Json], tools: Sequence[Json], system: str = "") -> Json:
        """Runs one turn of a client, and returns the assistant's message."""
        prompt = [{"role": "system", "content": system}] if system else []
        body = {"model": agent, "messages": [*prompt, *messages], "tools": list(tools)}
        response = self.app.test_client().post(
            "/v1/chat/completions", json=body, headers={"Authorization": f"Bearer {KEY}"}
        )
        return {"role": "assistant", **response.json["choices"][0]["message"]} if response.status_code == 200 else {}

    def written(self) -> None:
        """Puts all turns so far into the history."""
        self.app.extensions["parts"].recorder.flush()


class Quiet(WSGIRequestHandler):
    def log(self, type: str, message: str, *args: Any) -> None:
        """Logs nothing."""


@contextmanager
def served(folder: Path) -> Iterator[Served]:
    settings = read_settings(
        {
            "LETTA_BASE_URL": "http://letta.internal:8283",
            "LETTA_API_KEY": "canary-of-letta",
            "BRIDGE_API_KEYS": f"{KEY},phone:{'a' * 64}",
            "BRIDGE_ADMIN_PASSWORD": PASSWORD,
            "BRIDGE_DATA_DIR": str(folder),
        },
        stub_idle=3600.0,
    )
    letta = SharedLetta()
    app = create_app(settings, letta)
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Quiet)
    serving = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    serving.start()
    try:
        yield Served(f"http://127.0.0.1:{server.server_port}", letta, app)
    finally:
        server.shutdown()
        serving.join()
        server.server_close()


def _work(pace: float) -> Callable[[], None]:
    """Costs a turn what a real Letta would: some calls, and that many seconds."""

    def work() -> None:
        trace = current_trace()
        trace.calls.update({"PATCH /v1/agents/{id}": 1, "POST /v1/agents/{id}/messages/stream": 3})
        with trace.measure_letta_call():
            time.sleep(pace)

    return work


def furnish(world: Served, *, pace: float = 0.0) -> None:
    """Makes agents of several types, clients with their own tools, calls, errors, and names that are already used.

    With a `pace`, each turn takes that many seconds, and there is an hour of turns before them.
    """
    letta = world.letta
    if pace:
        _past_hour(world)
    coder = _agent(letta, "coder", "letta_v1_agent")
    _agent(letta, "home-assistant", "memgpt_v2_agent")
    _agent(letta, "support-desk", "letta_v1_agent")
    letta.attaches(coder, letta.has_tool("web_search"), letta.has_tool("conversation_search", "letta_core"))
    coding = [tool(name, schema, description=text) for name, (text, schema) in CODING.items()]
    for tool_json, (text, _) in zip(coding, CODING.values(), strict=True):
        tool_json["function"]["description"] = text
    home = [tool(name, schema) for name, (_, schema) in HOME.items()]
    for number, name in enumerate(("read_file", "search_files", "read_file", "apply_diff", "execute_command")):
        arguments = {"path": f"src/module_{number}.py"}
        text = "bash: main: command not found" if number == 4 else "def main() -> None:\n    print('Hello')\n"
        _task(world, "coder", name, arguments, text, coding, pace, number != 3)
    _task(world, "home-assistant", "lights.set", {"path": "kitchen"}, "on", home, pace, True)
    hello = [{"role": "user", "content": "Hi"}]
    for tools in ([tool("lookup_order", PATH), tool("refund", PATH)], [tool("lookup_order", PATH)]):
        letta.will(_work(pace), Text("How can I help?"), Used(900, 12), Stopped("end_turn"))
        world.ask("support-desk", hello, tools)
    letta.will(_work(pace), ModelOverloaded("The agent's model is rate limited."))
    world.ask("support-desk", hello, [tool("lookup_order", PATH)])
    letta.will(_work(pace), LettaTimeout("The Letta server did not answer in time."))
    world.ask("coder", hello, coding)
    stale = letta.tool("refund")
    letta.edits(stale, tags=(*stale.tags, "letta-tool-bridge:idle-since=1700000000"))
    thought = Reasoning("I need to look at the file first.")
    letta.will(_work(pace), thought, *held(("read_file", '{"path": "README.md"}')))
    world.ask("coder", [{"role": "user", "content": "What is this about?"}], coding, system="You write code." * 40)
    world.written()


def _past_hour(world: Served) -> None:
    """Puts turns of the last hour into the history, each a little different."""
    now = time.time()
    turns = []
    for number in range(210):
        wave = 0.5 + 0.5 * math.sin(number / 17)
        letta, waited = 1.1 + 1.4 * wave + (number % 5) * 0.11, 0.35 if number % 9 == 0 else 0.0
        outcome = {0: "letta_timeout", 1: "model_overloaded", 2: "busy"}.get(number % 41, "stop")
        started = now - 3540 + 3400 * (number / 210) ** 0.9
        turns.append(
            TurnRecord(
                f"{number:016x}", started, "coder", method="approval", outcome=outcome, ended=outcome == "stop",
                seconds=letta + waited + 0.012, letta_calls=3, letta_seconds=letta, waited_seconds=waited,
                characters=200,
            )
        )  # fmt: skip
    world.app.extensions["parts"].activity.keep_ended_turns([(turn, {}) for turn in turns])


def _agent(letta: SharedLetta, name: str, agent_type: str) -> Agent:
    made = letta.has_agent(name, agent_type)
    kept = letta._agents[made.id]
    kept.agent = replace(kept.agent, model=AgentModel("gpt-5-mini", "openai"))
    return kept.agent


def _task(
    world: Served, agent: str, name: str, arguments: Json, given: str, tools: list[Json], pace: float, ok: bool
) -> None:
    """Runs a question, a call, its result and the answer."""
    question = {"role": "user", "content": "Please do it."}
    thought: list[AgentEvent] = [Reasoning("The user wants this done. "), Reasoning("I'll begin with a look.")]
    world.letta.will(_work(pace), *thought, *held((server_name(name, False), json.dumps(arguments))))
    call = world.ask(agent, [question], tools)
    given_back = {"role": "tool", "tool_call_id": call["tool_calls"][0]["id"], "content": given, "is_error": not ok}
    own: list[AgentEvent] = [
        AgentCall("m", "own", "conversation_search", '{"query": "file"}'),
        AgentReturn("m", "own", "2 results"),
    ]
    world.letta.will(_work(pace), *own, Text("Done: "), Text("it is in place."), Used(2412, 118), Stopped("end_turn"))
    world.ask(agent, [question, call, given_back], tools)


def poison(world: Served) -> str:
    """Makes an agent whose texts are all hostile, and returns its id."""
    agent = world.letta.has_agent(HOSTILE)
    bad = tool("poisoned", {"type": "object", "properties": {HOSTILE: {"type": "string", "description": HOSTILE}}})
    bad["function"]["description"] = HOSTILE
    world.letta.will(Reasoning(HOSTILE), Text(HOSTILE), *held(("poisoned", json.dumps({HOSTILE: HOSTILE}))))
    question = {"role": "user", "content": HOSTILE}
    call = world.ask(agent.id, [question], [bad], system=HOSTILE)
    result = {"role": "tool", "tool_call_id": call["tool_calls"][0]["id"], "content": HOSTILE}
    world.letta.will(LettaTimeout(HOSTILE))
    world.ask(agent.id, [question, call, result], [bad])
    world.letta.edits(world.letta.tool("poisoned"), source=f"# {OWNER}\ndef poisoned():\n    '''{HOSTILE}'''\n")
    world.written()
    return agent.id
