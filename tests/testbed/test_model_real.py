"""Tests of the scripted model and the fault proxy with real Letta servers, one of each kind of agent loop."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import requests

from testbed.agents import create_agent
from testbed.model import ScriptedModel
from testbed.proxy import Cut, DropResponse, FaultProxy
from testbed.server import running

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

LOOPS = [
    ("0.6.54", "memgpt_agent"),
    ("0.8.17", "memgpt_agent"),
    ("0.11.7", "memgpt_v2_agent"),
    ("0.16.1", "memgpt_v2_agent"),
    ("0.16.1", "letta_v1_agent"),
]

REMEMBER = (
    '!think I remember\n!call core_memory_append {"label": "human", "content": "likes \\"fish\\" é"}\n'
    "!next\n!say Stored: é 😀"
)


@dataclass
class ProxiedAgent:
    """An agent behind the fault proxy."""

    model: ScriptedModel
    proxy: FaultProxy
    address: str

    def send(self, text: str) -> requests.Response:
        return requests.post(f"{self.address}/messages", json=_message(text), timeout=60)

    def answer(self, text: str) -> str:
        """Sends a message and returns the assistant's text."""
        answer = self.send(text)
        answer.raise_for_status()
        return _assistant_text(answer.json()["messages"])

    def stream(self, text: str, *, tokens: bool) -> list[Any]:
        """Sends a message and returns the events of the answer."""
        body = _message(text) | {"stream_tokens": tokens, "stream_steps": True}
        with requests.post(f"{self.address}/messages/stream", json=body, stream=True, timeout=60) as answer:
            lines = [line.removeprefix(b"data: ") for line in answer.iter_lines() if line.startswith(b"data: ")]
        assert lines[-1] == b"[DONE]"
        return [json.loads(line) for line in lines[:-1]]


def _message(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


def _assistant_text(messages: list[Any]) -> str:
    return "".join(one["content"] for one in messages if one["message_type"] == "assistant_message")


@pytest.fixture(scope="module", params=LOOPS, ids="-".join)
def proxied(request: pytest.FixtureRequest) -> Iterator[ProxiedAgent]:
    version, agent_type = request.param
    with (
        ScriptedModel() as model,
        running(version, model_url=model.url) as server,
        FaultProxy(server.base_url) as proxy,
    ):
        agent = create_agent(
            proxy.url,
            name="Ada",
            agent_type=agent_type,
            model_url=model.url,
            tools=["core_memory_append"],
            memory_blocks=[{"label": "human", "value": ""}],
        )
        address = f"{proxy.url}/v1/agents/{agent['id']}"
        yield ProxiedAgent(model, proxy, address)


@pytest.fixture(autouse=True)
def no_refusals(proxied: ProxiedAgent) -> Iterator[None]:
    """Checks that OpenAI would have refused no request, apart from those that the test took."""
    yield
    proxied.proxy.heal()
    assert proxied.model.take_refusals() == []


def test_the_message_dictates_the_agents_answer(proxied: ProxiedAgent) -> None:
    assert proxied.answer("Hello") == "You said: Hello"
    assert proxied.answer('Please:\n!say "Exactly \\\\ \\n é"') == "Exactly \\ \n é"


def test_an_agent_runs_its_own_tool_and_answers(proxied: ProxiedAgent) -> None:
    assert proxied.answer(REMEMBER) == "Stored: é 😀"
    first, second = proxied.model.requests(containing="!think I remember")[-2:]
    assert first.story()[-1] == f"user: {REMEMBER}"
    lines = [line for line in second.story(since="!think I remember") if not line.startswith("heartbeat: ")]
    assert [line for line in lines if line != "assistant: I remember"] == [
        f"user: {REMEMBER}",
        'call core_memory_append {"label": "human", "content": "likes \\"fish\\" é"}',
        "result of core_memory_append: None",
    ]
    assert 'likes "fish" é' in second.system


@pytest.mark.parametrize("tokens", [False, True])
def test_an_agent_streams_its_answer(proxied: ProxiedAgent, tokens: bool) -> None:
    events = proxied.stream("!say one two three", tokens=tokens)
    # Older servers repeat the whole text after its tokens.
    assert _assistant_text(events) in ("one two three", "one two threeone two three")


def test_a_dictated_error_of_the_model_reaches_the_client(proxied: ProxiedAgent) -> None:
    before = len(proxied.model.requests())
    assert proxied.send("!status 500").status_code >= 500
    assert len(proxied.model.requests()) == before + 1
    assert proxied.answer("!say well again") == "well again"


def test_a_malformed_context_is_refused(proxied: ProxiedAgent) -> None:
    proxied.answer(REMEMBER.replace("fish", "bread"))
    kept = requests.get(proxied.address, timeout=60).json()["message_ids"]
    listed = requests.get(f"{proxied.address}/messages", params={"limit": 100}, timeout=60).json()
    calls = {one["id"] for one in listed if "core_memory_append" in str(one.get("tool_call"))}
    orphaned = [one for one in kept if one not in calls]
    assert len(orphaned) < len(kept)
    requests.patch(proxied.address, json={"message_ids": orphaned}, timeout=60).raise_for_status()
    assert proxied.send("Hello?").status_code >= 400
    (refused,) = proxied.model.take_refusals()
    assert refused.refusal is not None
    assert "must be a response to a preceeding message with 'tool_calls'" in refused.refusal.message
    requests.patch(proxied.address, json={"message_ids": kept}, timeout=60).raise_for_status()
    assert proxied.answer("!say healed") == "healed"


def test_a_dropped_response_is_lost_although_the_agent_did_its_work(proxied: ProxiedAgent) -> None:
    proxied.proxy.inject(DropResponse(), "POST", "/v1/agents/*/messages", nth=1)
    with pytest.raises(requests.ConnectionError):
        proxied.send("!say lost words")
    proxied.answer("Are you there?")
    lines = proxied.model.last_request(containing="Are you there?").story(since="lost words")
    assert lines[:2] == ["user: !say lost words", "assistant: lost words"]


def test_a_cut_stream_has_no_end(proxied: ProxiedAgent) -> None:
    rule = proxied.proxy.inject(Cut(after_events=1), "POST", "/v1/agents/*/messages/stream")
    with pytest.raises(requests.exceptions.ChunkedEncodingError):
        proxied.stream("!say cut words", tokens=False)
    assert rule.applied == 1
    assert proxied.proxy.calls("POST", "/v1/agents/*/messages/stream")[-1].outcome == "cut"
