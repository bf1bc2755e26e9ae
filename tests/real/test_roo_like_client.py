"""A client with the habits of Roo Code needs one request for each step of a task."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.proxy import Status
from tests.clients.roo_like import RooLike
from tests.clients.task import ANSWER, call, secret_in, teach
from tests.real.world import Agent

pytestmark = [pytest.mark.real, pytest.mark.two_servers]

READ = {"path": "notes.txt", "mode": "slice", "offset": 1, "limit": 100, "indentation": None}


@pytest.fixture
def client(agent: Agent, tmp_path: Path) -> RooLike:
    return RooLike(agent.world.bridge.url, agent.name, tmp_path)


def test_a_task_of_four_steps_takes_four_requests(client: RooLike, agent: Agent) -> None:
    word = secret_in(client.folder / "notes.txt")
    teach(
        agent,
        call("write_to_file", path="report.txt", content="All is well.\n"),
        call("execute_command", command="cp report.txt made.txt", cwd="."),
        call("read_file", **READ),
        ANSWER,
    )
    result = client.work_on("Write a report, copy it, and say which word is in notes.txt.")
    assert word in result
    assert (client.folder / "made.txt").read_text() == "All is well.\n"
    assert (len(client.sent), client.nudges, client.errors) == (4, 0, [])


def test_feedback_to_the_result_is_one_more_request(client: RooLike, agent: Agent) -> None:
    teach(agent, "!say First try", call("attempt_completion", result="Second try"), "!say Third try")
    assert client.work_on("Say it well.") == "First try"
    assert client.refuse("Try once more.") == "Second try"
    assert any("Try once more." in line for line in agent.story())
    assert client.refuse("And again.") == "Third try"
    assert any("And again." in line for line in agent.story())
    assert (len(client.sent), client.nudges, client.errors) == (3, 0, [])


def test_an_error_costs_one_request_and_repeats_no_step(client: RooLike, agent: Agent) -> None:
    word = secret_in(client.folder / "notes.txt")
    teach(agent, call("read_file", **READ), ANSWER)
    with agent.world.proxy.inject(Status(503), "POST", "/v1/agents/*/messages**", nth=1) as rule:
        assert word in client.work_on("Read notes.txt.")
    assert rule.applied == 1
    assert (len(client.sent), client.nudges, len(client.errors)) == (3, 0, 1)
