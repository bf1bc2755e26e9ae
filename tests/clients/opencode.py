"""OpenCode on the command line."""

from __future__ import annotations

import json
import time
from typing import Any

import requests

from testbed.cache import Progress
from testbed.network import free_port
from tests.clients.installed import folder_of
from tests.clients.pins import OPENCODE
from tests.clients.process import ClientFailed, Scratch, run_to_end, running

SECONDS = 150.0
# Switches off what it would fetch from the network first.
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

    def __init__(
        self, url: str, model: str, scratch: Scratch, say: Progress, provider: str = "@ai-sdk/openai-compatible"
    ) -> None:
        self._program = str(folder_of(OPENCODE, say) / "node_modules" / ".bin" / "opencode")
        self._model = model
        self._scratch = scratch
        (scratch.work / "opencode.json").write_text(json.dumps(_settings(url, model, provider)))

    def prompt(self, text: str, *, goes_on: bool = False) -> str:
        """Returns its standard output. `goes_on` continues the last session."""
        more = ["--continue"] if goes_on else []
        # As an argument, a prompt would reach the model in quotation marks.
        command = [self._program, "run", *more, "--model", f"letta/{self._model}"]
        return run_to_end(command, self._scratch, OFFLINE, seconds=SECONDS, said=text)

    def summarize(self) -> None:
        """Has the last session summarised, as a command on its screen does."""
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        log = self._scratch.home / "server.log"
        command = [self._program, "serve", "--hostname", "127.0.0.1", "--port", str(port)]
        with running(command, self._scratch, OFFLINE, log):
            (session,) = self._sessions(url)
            body = {"providerID": "letta", "modelID": self._model}
            answer = requests.post(f"{url}/session/{session['id']}/summarize", json=body, timeout=SECONDS)
            if not answer.ok or answer.json() is not True:
                raise ClientFailed(f"OpenCode could not summarise: {answer.status_code} {answer.text}")

    def _sessions(self, url: str) -> list[dict[str, Any]]:
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            try:
                # A request during its start may never be answered.
                found: list[dict[str, Any]] = requests.get(f"{url}/session", timeout=3).json()
            except requests.RequestException:
                time.sleep(0.3)
            else:
                return found
        raise ClientFailed(f"OpenCode's server did not answer within {SECONDS:.0f} s")


def _settings(url: str, model: str, package: str) -> dict[str, object]:
    provider = {
        "npm": package,
        "name": "Letta",
        "options": {"baseURL": url, "apiKey": "none"},
        "models": {model: {"name": model, "tool_call": True}},
    }
    return {"$schema": "https://opencode.ai/config.json", "provider": {"letta": provider}}
