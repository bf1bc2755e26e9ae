"""Letta Code on the command line, which speaks Letta's own API."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from testbed.cache import Progress
from tests.clients.installed import folder_of, node
from tests.clients.pins import LETTA_CODE, LETTA_CODE_OLDER, Client
from tests.clients.process import Scratch, run_to_end, running
from tests.clients.task import call
from tests.waiting import until

SECONDS = 150.0
OFFLINE = {"DISABLE_AUTOUPDATER": "1", "LETTA_CODE_TELEM": "0"}
# The history that an agent has without any conversation of Letta Code.
DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Release:
    """A version of Letta Code, and how it names the tool that runs commands for agents with a model of OpenAI."""

    client: Client
    tool: str
    command: str
    more: Mapping[str, str] = field(default_factory=dict)

    def runs(self, command: str) -> str:
        """Returns the step of a script that runs a command."""
        return call(self.tool, **{self.command: command}, **self.more)


NEWEST = Release(LETTA_CODE, "exec_command", "cmd", {"description": "Do the next step"})
OLDER = Release(LETTA_CODE_OLDER, "ShellCommand", "command")


def edits(file: Path, old: str, new: str) -> str:
    """Returns the step of a script that replaces a line of a file."""
    patch = f"*** Begin Patch\n*** Update File: {file}\n@@\n-{old}\n+{new}\n*** End Patch\n"
    return call("ApplyPatch", input=patch)


class LettaCode:
    """One project folder in which Letta Code works with one agent, in new conversations or in a named one."""

    def __init__(
        self, url: str, agent_id: str, scratch: Scratch, say: Progress, release: Release, conversation: str = ""
    ) -> None:
        program = folder_of(release.client, say) / "node_modules" / "@letta-ai" / "letta-code" / "letta.js"
        self._start = [str(node(say).program), str(program)]
        self._settings = {"LETTA_BASE_URL": url, "LETTA_API_KEY": "none", **OFFLINE}
        self._agent_id = agent_id
        self._scratch = scratch
        self._conversation = conversation

    def prompt(self, text: str, *, goes_on: bool = False) -> str:
        """Returns the agent's last message. `goes_on` continues the conversation of the last prompt that ended."""
        said = run_to_end(self._command(text, goes_on), self._scratch, self._settings, seconds=SECONDS)
        answer = json.loads(said)
        self._conversation = str(answer["conversation_id"])
        return str(answer["result"])

    def interrupted(self, text: str, begun: Path) -> None:
        """Gives it the prompt, and kills it as soon as the file exists."""
        log = self._scratch.home / "interrupted.log"
        with running(self._command(text, False), self._scratch, self._settings, log) as process:
            until(lambda: begun.exists() or process.poll() is not None, seconds=SECONDS)
        assert begun.exists(), log.read_text()

    def _command(self, text: str, goes_on: bool) -> Sequence[str]:
        return [*self._start, "-p", text, *self._place(goes_on), "--yolo", "--output-format", "json"]

    def _place(self, goes_on: bool) -> Sequence[str]:
        if self._conversation == DEFAULT:
            return ["--agent", self._agent_id, "--conversation", DEFAULT]
        return ["--conversation", self._conversation] if goes_on else ["--agent", self._agent_id]
