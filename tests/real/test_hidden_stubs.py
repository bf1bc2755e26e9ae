"""In the answers of a real Letta, stubs are hidden, and an open call is shown as Letta shows one of a client tool."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bridge.dialects.openai.call_ids import CALL_IDS
from bridge.letta.rows import message_from_row, tool_from_row
from bridge.passthrough.hiding import OurTools, with_model_handle, without_our_tools
from bridge.passthrough.readable import readable_messages
from bridge.stubs.naming import server_name
from testbed.agents import MODEL, needed_tools
from tests.real.talk import ANSWER, Talk, calling, tool
from tests.real.toolsets import is_ours
from tests.real.world import Agent
from tests.sse_checker import Json

pytestmark = pytest.mark.real

REQUEST = "approval_request_message"


def ours_of(agent: Agent) -> OurTools:
    return OurTools.of(map(tool_from_row, agent.world.letta("GET", "/v1/tools/", limit=100_000)))


def shown_messages(agent: Agent) -> list[Any]:
    state = agent.state()
    own = [row["name"] for row in state["tools"] if not is_ours(row)]
    rows = agent.world.letta("GET", f"/v1/agents/{agent.id}/messages", limit=100)
    shown = readable_messages(rows, ours_of(agent), state["message_ids"][-1], own_tool_names=own, call_ids=CALL_IDS)
    return sorted(shown, key=lambda row: row["date"])


def calls_of(rows: list[Json]) -> list[Json]:
    """Returns the rows with calls of client tools."""
    return [row for row in rows if "fs" in row.get("tool_call", {}).get("name", "")]


def open_a_call(agent: Agent, part: str) -> tuple[Talk, str, str]:
    """Has the agent call a tool whose name no server takes. Returns the id of the call, and the name as it is shown:
    where no stub is on the server, Letta knows only the name that the model sees.
    """
    name = f"fs.read.{part}"
    talk = Talk(agent, tool(name, path={"type": "string"}))
    opened = talk.say(f"Read.\n{calling('fs_read_*', path='a.txt')}\n{ANSWER}")
    assert opened.calls == [(name, {"path": "a.txt"})]
    return talk, opened.call_ids[0], server_name(name, python_names=False) if opened.method == "native" else name


@pytest.mark.two_servers
def test_an_open_call_is_shown_as_the_request_that_waits_for_it(agent: Agent, part: str) -> None:
    talk, call_id, name = open_a_call(agent, part)
    [request] = calls_of(shown_messages(agent))
    assert request["message_type"] == REQUEST
    assert request["id"] == agent.state()["message_ids"][-1]
    assert request["tool_calls"] == [request["tool_call"]]
    assert request["tool_call"]["tool_call_id"] == call_id
    assert json.loads(request["tool_call"]["arguments"]) == {"path": "a.txt"}
    assert request["tool_call"]["name"] == name
    talk.give("The text.")
    after = shown_messages(agent)
    assert [row["tool_call"]["tool_call_id"] == call_id for row in calls_of(after)] == [False]
    # Letta before 0.8 lists what a tool returned as the model sees it, inside of JSON.
    returned = [message_from_row(row, packed=not agent.world.at_least("0.8.0")) for row in after]
    assert [message.text for message in returned if message.kind == "tool_return_message"] == ["The text."]
    assert not [row for row in after if row.get("approve") is False]


def test_nothing_that_a_program_reads_has_a_stub(agent: Agent, part: str) -> None:
    open_a_call(agent, part)
    ours, letta, path = ours_of(agent), agent.world.letta, f"/v1/agents/{agent.id}"
    answers = [
        agent.state(),
        letta("GET", path),
        letta("GET", f"{path}/tools"),
        letta("GET", f"{path}/context"),
        letta("GET", f"{path}/export"),
        letta("GET", "/v1/tools/", limit=100_000),
        letta("GET", "/v1/agents/", limit=1000),
    ]
    for answer in answers:
        hidden = without_our_tools(answer, ours)
        for listed in _members(hidden):
            assert not [name for name in ours.client_names if f'"{name}"' in json.dumps(listed)]
            assert not [one for one in ours.ids if one in json.dumps(listed)]
    assert [row["name"] for row in without_our_tools(answers[2], ours)] == [*needed_tools(agent.type)]
    assert with_model_handle(answers[0])["model"].endswith(MODEL)


def _members(answer: Any) -> list[Any]:
    """Returns all that has names of tools, apart from messages."""
    if isinstance(answer, list):
        return [member for one in answer for member in _members(one)]
    named = ("id", "tools", "tool_ids", "tool_rules", "functions_definitions")
    return [answer.get(name) for name in named] + _members(answer.get("agents", []))
