"""Codex on the command line, which speaks the Responses API only."""

from __future__ import annotations

import json

import pytest

from testbed.cache import Progress
from tests.clients.installed import folder_of
from tests.clients.pins import CODEX
from tests.clients.process import ClientFailed, Scratch, run_to_end

SECONDS = 150.0
KEY = {"BRIDGE_KEY": "none"}


class Codex:
    """One project folder in which Codex works with one agent."""

    RUN = "exec_command"

    def __init__(self, url: str, model: str, scratch: Scratch, say: Progress, **settings: str | int) -> None:
        self._program = str(folder_of(CODEX, say) / "node_modules" / ".bin" / "codex")
        self._scratch = scratch
        (scratch.home / ".codex").mkdir()
        (scratch.home / ".codex" / "config.toml").write_text(_settings(url, model, settings))

    def prompt(self, text: str, *, goes_on: bool = False) -> str:
        """Returns its standard output, which is the agent's last message. `goes_on` continues the last session."""
        return run_to_end(self._command(goes_on), self._scratch, KEY, seconds=SECONDS, said=text)

    def interrupted(self, text: str, *, seconds: float) -> None:
        """Gives it the prompt, and kills it after so many seconds."""
        with pytest.raises(ClientFailed, match="did not end"):
            run_to_end(self._command(False), self._scratch, KEY, seconds=seconds, said=text)

    def _command(self, goes_on: bool) -> list[str]:
        resumed = ["resume", "--last"] if goes_on else []
        return [
            *(self._program, "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"),
            *(*resumed, "-"),
        ]


def _settings(url: str, model: str, more: dict[str, str | int]) -> str:
    """Returns the lines of config.toml that the documents show, and some of the test's own."""
    lines = {"model": model, "model_provider": "letta", **more}
    provider = {"name": "Letta", "base_url": url, "env_key": "BRIDGE_KEY", "wire_api": "responses"}
    top = [f"{name} = {json.dumps(value)}" for name, value in lines.items()]
    return "\n".join(
        [*top, "", "[model_providers.letta]", *(f"{name} = {json.dumps(value)}" for name, value in provider.items())]
    )
