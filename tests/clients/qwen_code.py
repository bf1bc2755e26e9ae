"""Qwen Code on the command line: one prompt at a time."""

from __future__ import annotations

import json
import os

from testbed.cache import Progress
from tests.clients.installed import folder_of, node
from tests.clients.pins import QWEN_CODE
from tests.clients.process import Scratch, run_to_end

SECONDS = 150.0


class QwenCode:
    """One project folder in which Qwen Code works with one agent."""

    READ, WRITE, RUN = "read_file", "write_file", "run_shell_command"
    PATH = "file_path"

    def __init__(self, url: str, model: str, scratch: Scratch, say: Progress) -> None:
        runtime = node(say)
        program = folder_of(QWEN_CODE, say) / "node_modules" / ".bin" / "qwen"
        self._command = [str(runtime.program), str(program), "--auth-type", "openai", "--model", model, "--yolo"]
        self._scratch = scratch
        self._settings = {
            "OPENAI_BASE_URL": url,
            "OPENAI_API_KEY": "none",
            "PATH": f"{runtime.folder}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        }
        (scratch.home / ".qwen").mkdir()
        chosen = {"security": {"auth": {"selectedType": "openai"}}}
        (scratch.home / ".qwen" / "settings.json").write_text(json.dumps(chosen))

    def prompt(self, text: str, *, goes_on: bool = False) -> str:
        """Returns its standard output. `goes_on` continues the last session."""
        more = ["--continue"] if goes_on else []
        return run_to_end([*self._command, *more, "-p", text], self._scratch, self._settings, seconds=SECONDS)
