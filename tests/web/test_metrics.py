from __future__ import annotations

import json

import pytest
from flask.testing import FlaskClient
from prometheus_client.parser import text_string_to_metric_families

from app import create_app
from bridge import errors
from bridge.config import read_settings
from bridge.turn import Stopped, Text, ToolCall
from tests.actors import Chat
from tests.fakes import FakeGateway
from tests.sse_checker import Json, check_error
from tests.test_complaints import held

TOOLS = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}}}]
CALL = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": "{}"}}


def metrics(client: FlaskClient) -> dict[str, float]:
    """Returns every sample, named as in `name{label=value}`, as Prometheus' own parser reads the page."""
    response = client.get("/metrics")
    assert response.status_code == 200
    assert response.mimetype == "text/plain"
    return {
        sample.name + "".join(f"{{{name}={value}}}" for name, value in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
    }


def test_a_turn_is_counted_by_agent_method_and_outcome(client: FlaskClient, chat: Chat, letta: FakeGateway) -> None:
    letta.will(ToolCall("call_1", "read", "{}"), Stopped("tool_rule"))
    chat.ask(tools=TOOLS)
    letta.will(errors.ModelFailed("It failed."))
    chat.ask()
    chat.ask(model="Nobody")
    found = metrics(client)
    turns = {name: value for name, value in found.items() if name.startswith("bridge_turns_total")}
    v1 = "{agent_type=letta_v1_agent}{dialect=chat_completions}{method=approval}"
    assert turns == {
        f"bridge_turns_total{v1}{{outcome=tool_calls}}": 1,
        f"bridge_turns_total{v1}{{outcome=model_failed}}": 1,
        "bridge_turns_total{agent_type=none}{dialect=chat_completions}{method=none}{outcome=model_not_found}": 1,
    }
    assert found["bridge_turn_seconds_count{part=total}"] == 3
    assert found["bridge_turn_tools_sum"] == 1


def test_the_time_of_a_turn_is_split(client: FlaskClient, chat: Chat, letta: FakeGateway) -> None:
    letta.will_say("Hello")
    chat.ask()
    sums = metrics(client)
    parts = [sums[f"bridge_turn_seconds_sum{{part={part}}}"] for part in ("bridge", "letta", "waiting")]
    assert sums["bridge_turn_seconds_sum{part=total}"] == pytest.approx(sum(parts))


def test_waiting_is_counted_by_its_cause(client: FlaskClient, chat: Chat, letta: FakeGateway) -> None:
    called(chat, letta, "call_1")
    assert not any(name.startswith("bridge_waited_seconds_total") for name in metrics(client))
    letta.will_say("Hello")
    assert chat.ask("Who is there?").text == "Hello"
    found = metrics(client)
    assert found["bridge_waited_seconds_total{cause=another client's tool result}"] == pytest.approx(
        found["bridge_turn_seconds_sum{part=waiting}"], rel=0.1
    )


def called(chat: Chat, letta: FakeGateway, *ids: str) -> Json:
    """Lets the agent call the tool. Returns the message with the calls in the client's transcript."""
    letta.will(*(ToolCall(call_id, "read", "{}") for call_id in ids), Stopped("tool_rule"))
    chat.ask(tools=TOOLS)
    return {"role": "assistant", "content": None, "tool_calls": [{**CALL, "id": call_id} for call_id in ids]}


def test_calls_that_wait_for_their_result_are_pending(client: FlaskClient, chat: Chat, letta: FakeGateway) -> None:
    echo = called(chat, letta, "call_1", "call_2")
    assert metrics(client)["bridge_tool_calls_pending"] == 2
    letta.will_say("Thanks")
    result = {"role": "tool", "tool_call_id": "call_1", "content": "x"}
    user = {"role": "user", "content": "Go"}
    assert chat.ask(messages=[user, echo, result, user], tools=TOOLS).text == "Thanks"
    found = metrics(client)
    assert found["bridge_tool_calls_pending"] == 0
    assert (found["bridge_tool_calls_total"], found["bridge_tool_results_total"]) == (2, 1)


@pytest.mark.parametrize(
    ("name", "arguments", "answer"),
    [("search_tools", {"words": "tool"}, "found"), ("describe_tool", {"name": "nothing_like_it"}, "refused")],
)
def test_searches_for_tools_are_counted_by_their_answers(
    environment: dict[str, str], letta: FakeGateway, name: str, arguments: Json, answer: str
) -> None:
    client = create_app(read_settings({**environment, "BRIDGE_TOOL_SEARCH": "30"}), letta).test_client()
    offered = [{"type": "function", "function": {"name": f"tool_{number}"}} for number in range(40)]
    letta.will(*held((name, json.dumps(arguments))))
    letta.will_say("Done")
    assert Chat(client).ask(tools=offered).text == "Done"
    counts = {key: count for key, count in metrics(client).items() if key.startswith("bridge_tool_look_ups_total")}
    assert counts == {f"bridge_tool_look_ups_total{{answer={answer}}}": 1}


def test_calls_count_as_answered_once_however_often_their_results_come(
    client: FlaskClient, chat: Chat, letta: FakeGateway
) -> None:
    echo = called(chat, letta, "call_1")
    messages = [{"role": "user", "content": "Go"}, echo, {"role": "tool", "tool_call_id": "call_1", "content": "x"}]
    more = {"role": "user", "content": "And look around."}
    for _ in range(2):
        letta.will(errors.ModelOverloaded("Too much."))
        chat.ask(messages=[*messages, more], tools=TOOLS)
    assert metrics(client)["bridge_tool_calls_pending"] == 1
    letta.will_say("Thanks")
    chat.ask(messages=[*messages, more], tools=TOOLS)
    found = metrics(client)
    assert (found["bridge_tool_calls_pending"], found["bridge_tool_results_total"]) == (0, 1)


def test_a_title_for_a_conversation_leaves_its_calls_pending(
    client: FlaskClient, chat: Chat, letta: FakeGateway
) -> None:
    echo = called(chat, letta, "call_1")
    title = {"role": "system", "content": "You are a title generator."}
    chat.ask(messages=[title, {"role": "user", "content": "Go"}, echo, {"role": "user", "content": "A title, please"}])
    assert metrics(client)["bridge_tool_calls_pending"] == 1


def test_a_stream_is_open_until_it_is_read(client: FlaskClient, letta: FakeGateway) -> None:
    letta.will(Text("Hello"), Stopped("end_turn"))
    body = {"model": "Ada", "messages": [{"role": "user", "content": "Hi"}], "stream": True}
    with client.post("/v1/chat/completions", json=body, buffered=False) as response:
        assert metrics(client)["bridge_streams_open"] == 1
        assert b"Hello" in response.data
    assert metrics(client)["bridge_streams_open"] == 0


def test_errors_are_counted_by_their_code(client: FlaskClient, chat: Chat, letta: FakeGateway) -> None:
    chat.ask(model="Nobody")
    chat.post(b"{")
    client.get("/nowhere")
    letta.fails(RuntimeError("oh"), at="agents")
    client.get("/v1/models")
    found = metrics(client)
    codes = ("model_not_found", "invalid_json", "not_found", "internal_error")
    assert [found[f"bridge_errors_total{{code={code}}}"] for code in codes] == [1, 1, 1, 1]


def test_no_label_has_a_value_that_a_request_made_up(client: FlaskClient, chat: Chat, letta: FakeGateway) -> None:
    client.open("/v1/canary", method="CANARY")
    client.get("/v1/models/canary?canary=1", headers={"X-Request-Id": "canary"})
    letta.has_agent("canary", "canary_agent")
    letta.will_say("canary")
    tools = [{"type": "function", "function": {"name": "canary"}}]
    chat.ask("canary", model="canary", tools=tools, headers={"User-Agent": "canary"})
    found = metrics(client)
    assert "canary" not in str(found)
    assert found["bridge_turns_total{agent_type=other}{dialect=chat_completions}{method=rewrite}{outcome=stop}"] == 1
    assert found["bridge_http_requests_total{method=other}{route=none}{status=404}"] == 1
    assert found["bridge_http_requests_total{method=GET}{route=/v1/models/<path:model>}{status=404}"] == 1


class TestWithKeys:
    @pytest.fixture
    def environment(self, environment: dict[str, str]) -> dict[str, str]:
        return {**environment, "BRIDGE_ALLOW_ANONYMOUS": "0", "BRIDGE_API_KEYS": "key-of-a-client"}

    @pytest.mark.parametrize("shown", [{}, {"Authorization": "Bearer key-of-a-client"}, {"Authorization": "Bearer "}])
    def test_without_a_token_the_metrics_are_off(self, client: FlaskClient, shown: dict[str, str]) -> None:
        response = client.get("/metrics", headers=shown)
        assert response.status_code == 403
        assert "BRIDGE_METRICS_TOKEN" in check_error(response.json or {})["message"]

    class TestAndAToken:
        @pytest.fixture
        def environment(self, environment: dict[str, str]) -> dict[str, str]:
            return {**environment, "BRIDGE_METRICS_TOKEN": "token-of-prometheus"}

        def test_the_token_opens_only_the_metrics(self, client: FlaskClient) -> None:
            shown = {"Authorization": "Bearer token-of-prometheus"}
            assert client.get("/metrics", headers=shown).status_code == 200
            assert client.get("/v1/models", headers=shown).status_code == 401

        @pytest.mark.parametrize(
            "shown", ["", "Bearer", "Bearer key-of-a-client", "Basic token-of-prometheus", "token"]
        )
        def test_no_other_header_opens_the_metrics(self, client: FlaskClient, shown: str) -> None:
            assert client.get("/metrics", headers={"Authorization": shown}).status_code == 401
