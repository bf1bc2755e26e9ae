"""OpenCode without its screen: one prompt, run to its end."""

from __future__ import annotations

import json

from testbed.cache import Progress
from tests.clients.installed import folder_of
from tests.clients.pins import OPENCODE
from tests.clients.process import Scratch, run_to_end

SECONDS = 150.0
# What it would fetch from the network before it begins.
OFFLINE = {
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
}


class OpenCode:
    """One project folder in which OpenCode works with one agent."""

    READ, WRITE, RUN = "read", "write", "bash"
    PATH = "filePath"

    def __init__(self, url: str, model: str, scratch: Scratch, say: Progress) -> None:
        self._program = folder_of(OPENCODE, say) / "node_modules" / ".bin" / "opencode"
        self._model = f"letta/{model}"
        self._scratch = scratch
        (scratch.work / "opencode.json").write_text(json.dumps(_settings(url, model)))

    def prompt(self, text: str, *, goes_on: bool = False) -> str:
        """Its standard output. `goes_on` continues the last session."""
        more = ["--continue"] if goes_on else []
        # Given as an argument, a prompt would reach the model in quotation marks.
        command = [str(self._program), "run", *more, "--model", self._model]
        return run_to_end(command, self._scratch, OFFLINE, seconds=SECONDS, said=text)


def _settings(url: str, model: str) -> dict[str, object]:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Letta",
        "options": {"baseURL": url, "apiKey": "none"},
        "models": {model: {"name": model, "tool_call": True}},
    }
    return {"$schema": "https://opencode.ai/config.json", "provider": {"letta": provider}}
