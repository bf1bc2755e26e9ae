"""A coding client with the habits of Roo Code, as its requests to an OpenAI API show them.

It asks for a stream with usage, offers 13 strict tools, and never accepts plain text as the end of a task. To an
answer without a call it sends a nudge, after an error the same request again. The results of its tools are followed
by a user message about its workspace. It repeats a call in its own form: the arguments are written again, without
those that are null. A task ends with a call of `attempt_completion`.
"""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests

from tests.clients.roo_tools import TOOLS
from tests.sse_checker import read_stream

Json = dict[str, Any]

SYSTEM = "You are a coding assistant. You work with tools only, one step after the other, in the given folder."
NUDGE = "[ERROR] You did not use a tool in your previous response! Please retry with a tool use."
END = "attempt_completion"


@dataclass
class RooLike:
    """One task in one folder. `sent` are its requests, `nudges` counts the answers that it did not accept."""

    url: str
    model: str
    folder: Path
    most_requests: int = 20
    sent: list[Json] = field(default_factory=list)
    nudges: int = 0
    errors: list[str] = field(default_factory=list)
    result: str | None = None
    transcript: list[Json] = field(default_factory=list)

    def work_on(self, task: str) -> str:
        """Returns the result with which the agent ends the task."""
        parts = [f"<user_message>\n{task}\n</user_message>", self._surroundings()]
        self.transcript = [{"role": "user", "content": [{"type": "text", "text": part} for part in parts]}]
        return self._until_it_ends()

    def refuse(self, feedback: str) -> str:
        """Sends feedback as the result of the call that ended the task; returns the next result."""
        call_id = self.transcript[-1]["tool_calls"][-1]["id"]
        said = f"The user has provided feedback on the results.\n<user_message>\n{feedback}\n</user_message>"
        self._say_results([{"role": "tool", "tool_call_id": call_id, "content": said}])
        return self._until_it_ends()

    def _until_it_ends(self) -> str:
        self.result = None
        while self.result is None:
            self._step(self._ask())
        return self.result

    def _ask(self) -> Json:
        """Returns the next answer. After every error it sends the same request again."""
        while len(self.sent) < self.most_requests:
            body = {
                "model": self.model,
                "temperature": 0,
                "messages": [{"role": "system", "content": SYSTEM}, *self.transcript],
                "stream": True,
                "stream_options": {"include_usage": True},
                "tools": TOOLS,
                "tool_choice": "auto",
                "parallel_tool_calls": True,
            }
            self.sent.append(body)
            try:
                answer = requests.post(f"{self.url}/v1/chat/completions", json=body, timeout=60)
            except requests.RequestException as broken:
                self.errors.append(str(broken))
                continue
            if answer.status_code != 200:
                self.errors.append(f"{answer.status_code} {answer.text}")
                continue
            read = read_stream(answer.content, include_usage=True)
            if read.failure is None:
                return read.message
            self.errors.append(str(read.failure))
        raise AssertionError(
            f"the task did not end in {self.most_requests} requests; errors: {self.errors}; {self.nudges} nudges; "
            f"the last words were {self.transcript[-3:]}"
        )

    def _step(self, message: Json) -> None:
        calls = _understood(message["tool_calls"])
        echo: Json = {"role": "assistant", "content": message["content"]}
        if not calls:
            self.nudges += 1
            self.transcript.append(echo)
            self._say(NUDGE, self._surroundings())
            return
        echo["tool_calls"] = [_call(call_id, name, arguments) for call_id, name, arguments in calls]
        self.transcript.append(echo)
        results = []
        for call_id, name, arguments in calls:
            if name == END and isinstance(arguments.get("result"), str):
                self.result = arguments["result"]
                return
            results.append({"role": "tool", "tool_call_id": call_id, "content": self._run(name, arguments)})
        self._say_results(results)

    def _say_results(self, results: list[Json]) -> None:
        self.transcript += results
        self._say(self._surroundings())

    def _say(self, *parts: str) -> None:
        self.transcript.append({"role": "user", "content": [{"type": "text", "text": part} for part in parts]})

    def _surroundings(self) -> str:
        files = "\n".join(sorted(path.name for path in self.folder.iterdir()))
        return f"<environment_details>\n# Current Workspace Directory Files\n{files}\n</environment_details>"

    def _run(self, name: str, arguments: Json) -> str:
        match name:
            case "read_file":
                lines = (self.folder / arguments["path"]).read_text().splitlines()
                return f"File: {arguments['path']}\n" + "\n".join(f"{n} | {text}" for n, text in enumerate(lines, 1))
            case "write_to_file":
                (self.folder / arguments["path"]).write_text(arguments["content"])
                return json.dumps({"path": arguments["path"], "operation": "created"})
            case "execute_command":
                done = subprocess.run(
                    arguments["command"], shell=True, cwd=self.folder, capture_output=True, text=True, timeout=30
                )
                return f"Exit code: {done.returncode}\nOutput:\n{done.stdout}{done.stderr}"
        return json.dumps({"status": "error", "message": "The tool execution failed", "error": f"unknown tool {name}"})


def _understood(calls: list[Json]) -> list[tuple[str, str, Json]]:
    """Returns id, name and arguments of each call: each id once, with safe letters only; arguments without null."""
    found: dict[str, tuple[str, str, Json]] = {}
    for call in calls:
        arguments = json.loads(call["function"]["arguments"])
        call_id = re.sub(r"[^a-zA-Z0-9_-]", "_", call["id"])
        given = {key: value for key, value in arguments.items() if value is not None}
        found.setdefault(call_id, (call_id, call["function"]["name"], given))
    return list(found.values())


def _call(call_id: str, name: str, arguments: Json) -> Json:
    written = json.dumps(arguments, separators=(",", ":"), ensure_ascii=False)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": written}}
