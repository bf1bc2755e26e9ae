"""A chat window and a coding client use one agent at once, each in a context of its own."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.clients.open_webui import open_webui
from tests.clients.opencode import OpenCode
from tests.clients.process import Scratch
from tests.clients.task import call, script
from tests.real.conftest import say
from tests.real.world import Agent, World

pytestmark = [pytest.mark.clients, pytest.mark.timeout(1200)]

# OpenCode runs a command for so many seconds, in which nobody may wait for it.
LONG = 120
SOON = 60


@pytest.fixture
def url(world: World, tmp_path: Path) -> Iterator[str]:
    with world.start_bridge(BRIDGE_CHATS="each", BRIDGE_DATA_DIR=str(tmp_path / "each")) as bridge:
        yield f"{bridge.url}/v1"


def test_two_chats_of_open_webui_go_on_while_opencode_runs_a_tool(agent: Agent, tmp_path: Path, url: str) -> None:
    folders = [tmp_path / name for name in ("coding", "window")]
    for folder in folders:
        folder.mkdir()
    coding, window = map(Scratch.below, folders)
    wait = script(call("bash", command=f"sleep {LONG}; echo awake", description="Wait", timeout=LONG * 2_000))
    with open_webui(url, window, say) as ui, ThreadPoolExecutor(1) as pool:
        begun = time.monotonic()
        session = OpenCode(url, agent.name, coding, say)
        waiting = pool.submit(session.prompt, f"Wait a while.\n{wait}")
        agent.world.model.wait_for_requests(containing="Wait a while.", seconds=SOON)
        time.sleep(5)  # until the call has reached OpenCode
        for name in ("Ann", "Bob"):
            asked = time.monotonic()
            answer = ui.chat(agent.name, f"I am {name}.\n!say Hello {name}.")["answer"]
            assert f"Hello {name}." in answer["content"]
            assert time.monotonic() - asked < SOON
        assert not waiting.done()
        assert "awake" in waiting.result()
        assert time.monotonic() - begun > LONG
    shown = {name: prompts(agent, name) for name in ("I am Ann.", "I am Bob.", "Wait a while.")}
    for name, stories in shown.items():
        assert stories
        assert not [other for other in shown if other != name and any(other in one for one in stories)]


def prompts(agent: Agent, words: str) -> list[str]:
    """Returns what the agent itself was shown in its turns with these words: with tools, so not for a title."""
    asked = agent.world.model.requests(containing=words)
    return ["\n".join(one.story()) for one in asked if one.body.get("tools")]
