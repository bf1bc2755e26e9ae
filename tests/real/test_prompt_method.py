"""The prompt method, for agents whose toolset must not be changed: calls are read from the text."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testbed.service import Service
from tests.real.talk import Talk, quote, result
from tests.real.world import Agent, World

pytestmark = [pytest.mark.real, pytest.mark.two_servers]

TOOL = {
    "type": "function",
    "function": {
        "name": "read.file-v2",
        "description": "Reads a file",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    },
}
CALL = '<call-NONCE>{"name": "read.file-v2", "arguments": {"path": "notes.txt"}}</call-NONCE>'
WRONG_CALL = '<call-NONCE>{"name": "read.file-v2", "arguments": {}}</call-NONCE>'


@pytest.fixture(scope="session")
def prompting(world: World) -> Iterator[Service]:
    with world.start_bridge(BRIDGE_METHOD="prompt") as bridge:
        yield bridge


def test_a_call_in_the_text_is_a_tool_call_and_its_result_comes_back(
    agent: Agent, prompting: Service, stream: bool
) -> None:
    before = agent.fingerprint()
    script = f"Read it.\n!say Let me look.\\n{CALL}\n!next\n!say It says milk."
    messages = [{"role": "user", "content": script}]
    reply = agent.ask(messages=messages, tools=[TOOL], stream=stream, bridge=prompting)
    assert reply.method == "prompt"
    assert reply.finish_reason == "tool_calls"
    assert reply.calls == [("read.file-v2", {"path": "notes.txt"})]
    assert reply.text.strip() == "Let me look."
    assert agent.world.model.last_request().contains("read.file-v2")
    result = {"role": "tool", "tool_call_id": reply.call_ids[0], "content": "Buy milk."}
    messages += [reply.message, result]
    assert agent.ask(messages=messages, tools=[TOOL], stream=stream, bridge=prompting).text == "It says milk."
    assert any("Buy milk." in line for line in agent.story())
    assert agent.ask("!say bye", bridge=prompting).text == "bye"
    assert not any("Tools:" in line for line in agent.story())
    assert agent.fingerprint() == before


def test_a_late_result_is_refused_alone_and_quoted_once_beside_a_message(
    agent: Agent, prompting: Service, stream: bool
) -> None:
    talk = Talk(agent, TOOL, stream=stream, bridge=prompting)
    (call_id,) = talk.say(f"Read it.\n!say {CALL}").call_ids
    talk.say("Never mind.\n!say All right.")
    talk.refuses(result(call_id, "Buy milk."))
    for text in ("Well?", "And?"):
        talk.send(result(call_id, "Buy milk."), {"role": "user", "content": f"{text}\n!say Yes."})
    said = [line for line in talk.story() if line.startswith("user: ")]
    assert said[-4:] == [
        "user: Never mind.",
        quote("Buy milk.", "read.file-v2", '{"path": "notes.txt"}'),
        "user: Well?",
        "user: And?",
    ]


def test_an_invalid_call_is_reported_to_the_agent_which_corrects_it(agent: Agent, prompting: Service) -> None:
    reply = agent.ask(f"!say {WRONG_CALL}\n!next\n!say {CALL}", tools=[TOOL], bridge=prompting)
    assert reply.calls == [("read.file-v2", {"path": "notes.txt"})]
    assert any("'path' is missing" in line for line in agent.story())


def test_a_tool_choice_that_cannot_be_enforced_is_refused(agent: Agent, prompting: Service) -> None:
    reply = agent.ask("Hello", tools=[TOOL], tool_choice="required", bridge=prompting)
    assert reply.status == 400
    assert reply.error is not None
    assert reply.error["param"] == "tool_choice"
