from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from app import create_app
from bridge import errors
from bridge.config import Settings
from bridge.keys import ApiKey
from bridge.letta.events import read_run
from bridge.letta.gateway import Results
from bridge.shared import make_shared_parts
from bridge.turn import AgentCall, Reasoning, Stopped, Text, Turn, Used
from bridge.turns.admission import Admission
from bridge.web import listener
from bridge.web.answer import LONGEST_SESSION
from tests.actors import Chat
from tests.fakes import FakeGateway, new_id
from tests.responses_actor import ResponseReply, ResponsesClient
from tests.sse_checker import Json, check_error
from tests.stream_cases import CASES, messages, stream

READ: Json = {
    "type": "function",
    "name": "read",
    "description": "Reads a file.",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
}
USER: Json = {"role": "user", "content": "Hi"}
PATCH: Json = {"type": "custom", "name": "apply_patch", "description": "Changes files."}


@pytest.fixture
def responses(client: FlaskClient) -> ResponsesClient:
    return ResponsesClient(client)


# --- an answer --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("streamed", [False, True])
def test_the_agent_answers(responses: ResponsesClient, letta: FakeGateway, streamed: bool) -> None:
    letta.will(Reasoning("hm"), Text("Hel"), Text("lo"), Used(100, 10), Stopped("end_turn"))
    reply = responses.ask("Hi there", stream=streamed)
    assert (reply.status, reply.text, reply.response["status"]) == (200, "Hello", "completed")
    assert [item["type"] for item in reply.output] == ["reasoning", "message"]
    assert (reply.response["usage"]["input_tokens"], reply.response["usage"]["output_tokens"]) == (100, 10)
    assert letta.prompts[0].texts == ["Hi there"]


@pytest.mark.parametrize("case", CASES)
def test_streamed_and_whole_responses_say_the_same(responses: ResponsesClient, letta: FakeGateway, case: str) -> None:
    """For the streams of all generations of Letta: the same items, or the same error."""
    for _ in range(2):
        letta.will(*_steps(case))
    whole, streamed = responses.ask(), responses.ask(stream=True)
    assert (streamed.error is None) == (whole.error is None)
    if whole.error is None:
        assert streamed.comparable == whole.comparable
    else:
        assert streamed.error is not None
        assert streamed.error["message"] == whole.error["message"]


@pytest.mark.parametrize("case", CASES)
def test_the_agent_says_the_same_through_both_apis(
    responses: ResponsesClient, chat: Chat, letta: FakeGateway, case: str
) -> None:
    for _ in range(2):
        letta.will(*_steps(case))
    response, completion = responses.ask(), chat.ask()
    assert response.status == completion.status
    if completion.error is None:
        texts = [part["text"] for item in response.output for part in item.get("content", ())]
        assert "\n\n".join(texts) == (completion.message["content"] or "")


def _steps(case: str) -> list[Any]:
    steps: list[Any] = []
    try:
        steps.extend(read_run(messages([stream(case)])))
    except errors.BridgeError as failure:
        steps.append(failure)
    return steps


def test_an_answer_that_a_limit_of_the_agent_cut_is_incomplete(responses: ResponsesClient, letta: FakeGateway) -> None:
    for streamed in (False, True):
        letta.will(Text("One, two,"), Stopped("max_steps"))
        reply = responses.ask(stream=streamed)
        assert reply.response["status"] == "incomplete"
        assert reply.response["incomplete_details"] == {"reason": "max_output_tokens"}


def test_a_failure_after_the_first_words_ends_the_stream_with_its_reason(
    responses: ResponsesClient, letta: FakeGateway
) -> None:
    letta.will(Text("The beginning"), errors.LettaUnavailable("It is restarted."))
    reply = responses.ask(stream=True)
    assert (reply.response["status"], reply.error) == (
        "failed",
        {"code": "server_error", "message": "It is restarted."},
    )
    (item,) = reply.output
    assert (item["status"], item["content"][0]["text"]) == ("incomplete", "The beginning")


def test_a_failure_before_the_first_words_has_its_own_status(responses: ResponsesClient, letta: FakeGateway) -> None:
    letta.will(errors.ModelOverloaded("Too many."))
    reply = responses.ask(stream=True)
    assert (reply.status, reply.error and reply.error["message"]) == (429, "Too many.")


@pytest.fixture
def often(parameters: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Sends the headers at once, and a sign of life every few milliseconds."""
    parameters.update(ping_interval=0.01, header_wait=0.0)
    monkeypatch.setattr(listener, "TICK", 0.005)


def test_a_quiet_stream_says_again_that_it_is_in_progress(
    often: None, responses: ResponsesClient, letta: FakeGateway
) -> None:
    quiet = partial(time.sleep, 0.5)
    letta.will(quiet, Text("Hel"), quiet, Text("lo"), Stopped("end_turn"))
    reply = responses.ask(stream=True)
    assert reply.streamed is not None
    kinds = [event["type"] for event in reply.streamed.events]
    words = kinds.index("response.output_text.delta")
    assert kinds[:3] == ["response.created", "response.in_progress", "response.in_progress"]
    assert "response.in_progress" in kinds[words:]
    assert reply.text == "Hello"
    assert "ping" not in reply.streamed.comments


def test_a_failure_after_signs_of_life_ends_the_stream(
    often: None, responses: ResponsesClient, letta: FakeGateway
) -> None:
    letta.will(partial(time.sleep, 0.2), errors.ContextOverflow("It is full."))
    reply = responses.ask(stream=True)
    assert (reply.response["status"], reply.output) == ("failed", [])
    assert reply.error == {"code": "context_length_exceeded", "message": "It is full."}


@pytest.mark.parametrize(
    ("body", "param", "code"),
    [
        ({"input": "Hi"}, "model", None),
        ({"model": "Ada"}, "input", None),
        ({"model": "Ada", "input": 5}, "input", None),
        ({"model": "Ada", "input": [5]}, "input[0]", None),
        ({"model": "Ada", "input": []}, "input", None),
        ({"model": "Ada", "input": [{"role": "boss", "content": "Hi"}]}, "input[0].role", None),
        ({"model": "Ada", "input": [{"type": "function_call_output", "output": "x"}]}, "input[0].call_id", None),
        (
            {"model": "Ada", "input": [{"role": "user", "content": [{"type": "input_file"}]}]},
            "input[0].content[0]",
            None,
        ),
        ({"model": "Ada", "input": "Hi", "instructions": 5}, "instructions", None),
        ({"model": "Ada", "input": "Hi", "background": True}, "background", "unsupported_parameter"),
        ({"model": "Ada", "input": "Hi", "prompt": {"id": "pmpt_1"}}, "prompt", "unsupported_parameter"),
        ({"model": "Ada", "input": "Hi", "temperature": "hot"}, "temperature", None),
        ({"model": "Ada", "input": "Hi", "presence_penalty": "high"}, "presence_penalty", None),
        ({"model": "Ada", "input": "Hi", "prompt_cache_key": [1]}, "prompt_cache_key", None),
        ({"model": "Ada", "input": "Hi", "safety_identifier": 5}, "safety_identifier", None),
        ({"model": "Ada", "input": "Hi", "metadata": []}, "metadata", None),
        ({"model": "Ada", "input": "Hi", "reasoning": "high"}, "reasoning", None),
        ({"model": "Ada", "input": "Hi", "store": "no"}, "store", None),
        ({"model": "Ada", "input": "Hi", "text": []}, "text", None),
        ({"model": "Ada", "input": "Hi", "text": {"format": {"type": "xml"}}}, "text.format", None),
        ({"model": "Ada", "input": "Hi", "text": {"format": {"type": "json_schema"}}}, "text.format.schema", None),
        ({"model": "Ada", "input": "Hi", "tools": {}}, "tools", None),
        ({"model": "Ada", "input": "Hi", "tools": [5]}, "tools[0]", None),
        ({"model": "Ada", "input": "Hi", "tools": [{"type": "function"}]}, "tools[0].name", None),
        ({"model": "Ada", "input": "Hi", "tools": [READ, READ]}, "tools[1].parameters", None),
        ({"model": "Ada", "input": "Hi", "tool_choice": "required"}, "tool_choice", None),
        ({"model": "Ada", "input": "Hi", "tool_choice": {"type": "web_search"}}, "tool_choice", None),
        ({"model": "Ada", "input": "Hi", "tool_choice": {"type": "function", "name": "x"}}, "tool_choice", None),
        ({"model": "Ada", "input": "Hi", "conversation": 5}, "conversation", None),
        ({"model": "Ada", "input": "Hi", "previous_response_id": 5}, "previous_response_id", None),
        (
            {"model": "Ada", "input": "Hi", "previous_response_id": "resp_" + "a" * 32},
            "previous_response_id",
            "previous_response_not_found",
        ),
    ],
)
def test_a_bad_request_is_refused_with_the_field(
    responses: ResponsesClient, letta: FakeGateway, body: Json, param: str, code: str | None
) -> None:
    reply = responses.post(body)
    assert (reply.status, reply.error and reply.error["param"], reply.error and reply.error["code"]) == (
        400,
        param,
        code,
    )
    assert letta.prompts == []


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    "fields",
    [
        {"max_output_tokens": 4096.0, "max_tool_calls": 3.0, "top_logprobs": 0.0},
        {"text": {"format": None, "verbosity": "low"}},
        {"text": {"format": {"type": "json_schema", "schema": {"type": "object"}}}},
        {"metadata": {"a": "b"}, "prompt_cache_key": "c", "safety_identifier": "d", "presence_penalty": 1.5},
        {"reasoning": {"effort": "low", "summary": "auto"}, "conversation": {"id": "conv_1"}, "user": ""},
        {name: None for name in ("metadata", "text", "tools", "tool_choice", "reasoning", "store", "background")},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_what_a_response_says_of_its_request_fits_openais_types(
    responses: ResponsesClient, letta: FakeGateway, fields: Json, streamed: bool
) -> None:
    """The client of these tests checks that."""
    letta.will_say("{}")
    assert responses.ask(stream=streamed, **fields).status == 200


def test_a_schema_that_is_refused_is_named_by_its_place(responses: ResponsesClient) -> None:
    reply = responses.ask(tools=[{**READ, "parameters": {"type": "object", "properties": {"x": {"type": "any"}}}}])
    assert reply.error is not None
    assert str(reply.error["param"]).startswith("tools[0].parameters.properties.x")


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tools": [{**READ, "name": "a b"}]}, "tools[0].name"),
        ({"tools": [{"type": "namespace", "name": "a b", "tools": [READ]}]}, "tools[0].tools[0].name"),
        ({"given": [{"type": "additional_tools", "tools": [{**READ, "name": "a b"}]}, USER]}, "input[0].tools[0].name"),
    ],
)
def test_a_name_that_is_refused_is_named_by_its_place(
    responses: ResponsesClient, chat: Chat, fields: dict[str, Any], param: str
) -> None:
    chat.ask(tools=[{"type": "function", "function": {**READ, "name": "a b"}}])  # is known by another place from now on
    reply = responses.ask(**fields)
    assert (reply.status, reply.error and reply.error["param"]) == (400, param)


# --- what programs send -----------------------------------------------------------------------------------

# Recorded requests of programs, with their long texts cut.
RECORDED = sorted((Path(__file__).parent.parent / "cases" / "responses").glob("*.json"))
# What a program sends that goes on from what only its own server knows, and what is wrong with it elsewhere.
ELSEWHERE = {
    "openai-agents-py-conversation": ("input", "no_pending_call"),
    "openai-agents-py-previous-response-id": ("previous_response_id", "previous_response_not_found"),
}


def recorded(name: str) -> Json:
    (file,) = (file for file in RECORDED if file.stem == name)
    return {**json.loads(file.read_text()), "model": "Ada"}


def offered_names(body: Json) -> set[str]:
    """Returns the agent's names of the tools that a recorded request offers."""
    items = [item for item in body["input"] if isinstance(item, dict)]
    tools = [*body.get("tools", ()), *(tool for item in items for tool in item.get("tools", ()))]
    plain = [tool["name"] for tool in tools if tool["type"] in ("function", "custom")]
    spaces = [tool for tool in tools if tool["type"] == "namespace"]
    return {*plain, *(f"{space['name']}__{tool['name']}" for space in spaces for tool in space["tools"])}


def said_last(body: Json) -> str:
    """Returns the words of the last item: a user's, or a tool's."""
    if isinstance(body["input"], str):
        return body["input"]
    last = body["input"][-1]
    content = last["output"] if "output" in last else last["content"]
    return content if isinstance(content, str) else str(content[-1]["text"])


@pytest.mark.parametrize("name", sorted({file.stem for file in RECORDED} - ELSEWHERE.keys()))
def test_requests_of_programs_are_answered(responses: ResponsesClient, letta: FakeGateway, name: str) -> None:
    body = recorded(name)
    letta.will_say('{"word": "swordfish"}')
    reply = responses.post(body)
    assert reply.error is None
    assert "swordfish" in reply.text
    (prompt,) = letta.prompts
    assert set(prompt.tools) == offered_names(body)
    last = prompt.texts[-1]
    told = json.loads(last)["result"] if last.startswith('{"type": "earlier_tool_result"') else last
    assert told.endswith(said_last(body))
    assert (prompt.agent_id == letta.agents_named("Ada")[0].id) == ("compaction" not in name)


@pytest.mark.parametrize("name", ELSEWHERE)
def test_requests_that_go_on_from_elsewhere_are_refused_and_from_here_answered(
    responses: ResponsesClient, letta: FakeGateway, call: Callable[..., Json], name: str
) -> None:
    body = recorded(name)
    error = responses.post(body).error
    assert error is not None
    assert (error["param"], error["code"]) == ELSEWHERE[name]
    began = {field: body[field] for field in ("tools", "conversation") if field in body}
    held = AgentCall(new_id("message"), new_id("call"), "read_file", '{"path": "README.md"}', held=True)
    letta.will(held, Stopped("requires_approval"))
    first = responses.ask("Read README.md.", **began).response
    letta.will_say("swordfish")
    output = {**body["input"][0], "call_id": first["output"][0]["call_id"]}
    before = {"previous_response_id": first["id"]} if "previous_response_id" in body else {}
    assert responses.post({**body, **before, "input": [output]}).text == "swordfish"
    assert any(isinstance(message, Results) for message in letta.prompts[-1].messages)


def test_a_web_socket_is_refused_with_the_status_after_which_codex_posts(client: FlaskClient) -> None:
    asks = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "pO//TqEZE8aSq95g+hl3IA==",
        "OpenAI-Beta": "responses_websockets=2026-02-06",
    }
    refused = client.get("/v1/responses", headers=asks)
    assert (refused.status_code, check_error(refused.json or {})["code"]) == (426, "no_websocket")
    assert "POST" in refused.headers["Allow"]


# --- calls ------------------------------------------------------------------------------------------------


@pytest.fixture
def call(responses: ResponsesClient, letta: FakeGateway) -> Callable[..., Json]:
    """Has the agent call a tool, and returns the item of the call."""

    def call(tool: str, arguments: Json, given: str = "Do it.", **fields: Any) -> Json:
        held = AgentCall(new_id("message"), new_id("call"), tool, json.dumps(arguments), held=True)
        letta.will(held, Stopped("requires_approval"))
        reply = responses.ask(given, **fields)
        assert reply.response["status"] == "completed"
        (item,) = reply.output
        return item

    return call


@pytest.mark.parametrize("streamed", [False, True])
def test_a_call_and_its_output_go_to_and_fro(
    responses: ResponsesClient, letta: FakeGateway, call: Callable[..., Json], streamed: bool
) -> None:
    item = call("read", {"path": "a"}, tools=[READ], stream=streamed)
    assert (item["type"], item["name"], item["arguments"]) == ("function_call", "read", '{"path": "a"}')
    letta.will_say("It is empty.")
    output = {"type": "function_call_output", "call_id": item["call_id"], "output": "(nothing)"}
    reply = responses.ask([{"role": "user", "content": "Do it."}, item, output], tools=[READ], stream=streamed)
    assert reply.text == "It is empty."
    (given,) = letta.prompts[-1].messages
    assert isinstance(given, Results)
    assert "(nothing)" in repr(given)


def test_a_tool_of_free_text_is_offered_as_a_function_and_called_as_what_it_is(
    responses: ResponsesClient, letta: FakeGateway, call: Callable[..., Json]
) -> None:
    item = call("apply_patch", {"input": "*** Begin Patch"}, tools=[PATCH], stream=True)
    assert (item["type"], item["name"], item["input"]) == ("custom_tool_call", "apply_patch", "*** Begin Patch")
    letta.will_say("Done.")
    parts = [{"type": "input_text", "text": "ok"}]
    output = {"type": "custom_tool_call_output", "call_id": item["call_id"], "output": parts}
    assert responses.ask([{"role": "user", "content": "Do it."}, item, output], tools=[PATCH]).text == "Done."


def test_a_tool_in_a_namespace_is_called_with_it(call: Callable[..., Json]) -> None:
    inside = {"type": "namespace", "name": "agents", "description": "Helpers.", "tools": [READ]}
    item = call("agents__read", {"path": "a"}, tools=[inside, READ])
    assert (item["name"], item["namespace"]) == ("read", "agents")


def test_tools_that_openai_runs_are_passed_over(responses: ResponsesClient, letta: FakeGateway) -> None:
    hosted = [{"type": kind} for kind in ("web_search", "image_generation", "file_search", "tool_search", "mcp")]
    assert responses.ask(tools=[*hosted, READ]).status == 200
    assert letta.prompts[0].tools == ("read",)


def test_tools_that_an_item_brings_are_offered(responses: ResponsesClient, letta: FakeGateway) -> None:
    more = {"type": "additional_tools", "role": "developer", "tools": [READ]}
    assert responses.ask([more, {"role": "user", "content": "Hi"}]).status == 200
    assert letta.prompts[0].tools == ("read",)


def test_only_allowed_tools_are_offered(responses: ResponsesClient, letta: FakeGateway) -> None:
    allowed = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "read"}]}
    assert responses.ask(tools=[READ, PATCH], tool_choice=allowed).status == 200
    assert letta.prompts[0].tools == ("read",)


# --- a stream that failed ---------------------------------------------------------------------------------


def done_items(reply: ResponseReply) -> list[Json]:
    """Returns the items of a stream that were finished when it failed. Codex sends them when it asks again."""
    assert reply.streamed is not None
    assert reply.response["status"] == "failed"
    return [event["item"] for event in reply.streamed.events if event["type"] == "response.output_item.done"]


@pytest.mark.parametrize("begun", [[Reasoning("hm"), Text("Hel")], [Text("Let me see.", "m1"), Reasoning("hm", "m2")]])
def test_a_request_that_comes_again_with_the_beginning_of_its_answer_is_the_same(
    responses: ResponsesClient, letta: FakeGateway, begun: list[Any]
) -> None:
    letta.will(*begun, errors.LettaUnavailable("It is restarted."))
    first = responses.ask([USER], stream=True)
    letta.will_say("Hello")
    again = responses.ask([USER, *done_items(first)], stream=True)
    assert len(done_items(first)) == 1
    assert (again.text, again.response["id"]) == ("Hello", first.response["id"])
    assert [prompt.texts.count("Hi") for prompt in letta.prompts] == [1, 0]


def test_an_output_that_comes_again_with_the_beginning_of_its_answer_is_given_once(
    responses: ResponsesClient, letta: FakeGateway, call: Callable[..., Json]
) -> None:
    item = call("read", {"path": "a"}, tools=[READ], stream=True)
    output = {"type": "function_call_output", "call_id": item["call_id"], "output": "(nothing)"}
    given = [{"role": "user", "content": "Do it."}, item, output]
    letta.will(Reasoning("hm"), Text("It"), errors.LettaUnavailable("It is restarted."))
    first = responses.ask(given, tools=[READ], stream=True)
    letta.will_say("It is empty.")
    assert responses.ask([*given, *done_items(first)], tools=[READ], stream=True).text == "It is empty."
    assert sum(isinstance(message, Results) for prompt in letta.prompts for message in prompt.messages) == 1


def test_a_request_aside_for_more_of_an_answer_is_one_of_its_own(
    responses: ResponsesClient, letta: FakeGateway
) -> None:
    answers = [{"role": "assistant", "content": text} for text in ("One.", "Two.")]
    for answer in answers:
        assert responses.ask([USER, answer], headers={"X-Bridge-Aside": "1"}).status == 200
    assert [prompt.history[-1].text for prompt in letta.prompts] == ["One.", "Two."]


# --- the answer before ------------------------------------------------------------------------------------


def test_a_request_goes_on_from_the_newest_response_with_new_items_only(
    responses: ResponsesClient, letta: FakeGateway, call: Callable[..., Json]
) -> None:
    first = responses.ask("One").response
    second = responses.ask("Two", previous_response_id=first["id"]).response
    assert second["previous_response_id"] == first["id"]
    assert [prompt.texts for prompt in letta.prompts] == [["One"], ["Two"]]


def test_an_output_alone_goes_on_from_the_response_with_its_call(
    responses: ResponsesClient, letta: FakeGateway
) -> None:
    held = AgentCall(new_id("message"), new_id("call"), "read", "{}", held=True)
    letta.will(held, Stopped("requires_approval"))
    asked = responses.ask("Do it.", tools=[READ]).response
    letta.will_say("It is empty.")
    output = {"type": "function_call_output", "call_id": asked["output"][0]["call_id"], "output": "(nothing)"}
    reply = responses.ask([output], previous_response_id=asked["id"], tools=[READ])
    assert reply.text == "It is empty."


def test_a_request_goes_on_from_a_response_for_which_the_agent_was_not_asked(
    responses: ResponsesClient, letta: FakeGateway
) -> None:
    text = {"type": "object", "properties": {"result": {"type": "string"}}, "required": ["result"]}
    tools = [{"type": "function", "name": "attempt_completion", "parameters": text}]
    ended = responses.ask("Do it.", tools=tools)
    receipt = {"type": "function_call_output", "call_id": ended.output[0]["call_id"], "output": "The user is content."}
    noted = responses.ask([receipt], tools=tools, previous_response_id=ended.response["id"])
    assert responses.ask("More", tools=tools, previous_response_id=noted.response["id"]).status == 200
    assert [prompt.texts for prompt in letta.prompts] == [["Do it."], ["More"]]


def test_an_output_alone_goes_on_in_its_conversation(
    responses: ResponsesClient, letta: FakeGateway, call: Callable[..., Json]
) -> None:
    item = call("read", {"path": "a"}, tools=[READ], conversation="conv_1")
    letta.will_say("It is empty.")
    output = {"type": "function_call_output", "call_id": item["call_id"], "output": "(nothing)"}
    reply = responses.ask([output], conversation={"id": "conv_1"}, tools=[READ])
    assert (reply.text, reply.response["conversation"]) == ("It is empty.", {"id": "conv_1"})


class TestAnAgentThatWaitsForAResult:
    @pytest.fixture
    def environment(self, environment: dict[str, str]) -> dict[str, str]:
        return {**environment, "BRIDGE_TOOL_WAIT": "refuse=60"}

    @pytest.mark.parametrize(("name", "status"), [("c" * 300, 200), ("conv_2", 409)])
    def test_the_name_of_a_conversation_tells_it_from_others(
        self, responses: ResponsesClient, call: Callable[..., Json], name: str, status: int
    ) -> None:
        call("read", {"path": "a"}, tools=[READ], conversation="c" * 300)
        assert responses.ask("Go on without it.", tools=[READ], conversation=name).status == status

    @pytest.mark.parametrize(("thread", "status"), [("thread-1", 200), ("thread-2", 409)])
    def test_two_threads_of_one_session_of_codex_are_two_conversations(
        self, responses: ResponsesClient, call: Callable[..., Json], thread: str, status: int
    ) -> None:
        call("read", {"path": "a"}, tools=[READ], headers={"Session-Id": "session-1", "Thread-Id": "thread-1"})
        named = {"Session-Id": "session-1", "Thread-Id": thread}
        assert responses.ask("Go on without it.", tools=[READ], headers=named).status == status


def test_a_response_before_the_newest_is_refused(responses: ResponsesClient, letta: FakeGateway) -> None:
    first = responses.ask("One").response["id"]
    responses.ask("Two", previous_response_id=first)
    reply = responses.ask("Another two", previous_response_id=first)
    assert reply.status == 400
    assert reply.error is not None
    assert (reply.error["param"], reply.error["code"]) == ("previous_response_id", "previous_response_not_newest")
    assert [prompt.texts for prompt in letta.prompts] == [["One"], ["Two"]]


def test_a_request_that_comes_again_gets_the_same_response(responses: ResponsesClient, letta: FakeGateway) -> None:
    first = responses.ask("One").response["id"]
    headers = {"Idempotency-Key": "two"}
    again = [responses.ask("Two", previous_response_id=first, headers=headers).response["id"] for _ in range(2)]
    assert again[0] == again[1]
    assert [prompt.texts for prompt in letta.prompts] == [["One"], ["Two"]]


def test_a_response_is_known_when_the_store_has_forgotten_it(
    responses: ResponsesClient, letta: FakeGateway, settings: Settings
) -> None:
    first = responses.ask("One").response["id"]
    make_shared_parts(settings).store.remove(f"newest-turn:{letta.agents_named('Ada')[0].id}")
    assert responses.ask("Two", previous_response_id=first).status == 200


def test_a_long_name_of_a_conversation_is_cut(responses: ResponsesClient, monkeypatch: pytest.MonkeyPatch) -> None:
    sessions: list[str] = []
    admit = Admission.admit

    def note(self: Admission, turn: Turn, key: ApiKey | None) -> Turn:
        sessions.append(turn.session)
        return admit(self, turn, key)

    monkeypatch.setattr(Admission, "admit", note)
    responses.ask("Hi", conversation="x" * 1_000)
    assert sessions == ["x" * LONGEST_SESSION]


def test_a_request_aside_needs_the_whole_conversation(responses: ResponsesClient) -> None:
    first = responses.ask("One").response["id"]
    reply = responses.ask("A title?", previous_response_id=first, headers={"X-Bridge-Aside": "1"})
    assert (reply.status, reply.error and reply.error["param"]) == (400, "previous_response_id")


# --- responses that are kept ------------------------------------------------------------------------------


def test_a_response_can_be_read_with_its_input_and_deleted(client: FlaskClient, responses: ResponsesClient) -> None:
    made = responses.ask([{"role": "user", "content": "One"}, {"role": "user", "content": "Two"}], stream=True).response
    place = f"/v1/responses/{made['id']}"
    assert client.get(place).json == made
    listed = client.get(f"{place}/input_items?order=asc&limit=1").json
    assert listed is not None
    assert [item["content"] for item in listed["data"]] == [[{"type": "input_text", "text": "One"}]]
    assert listed["has_more"]
    rest = client.get(f"{place}/input_items?order=asc&after={listed['last_id']}").json
    assert rest is not None
    assert [item["content"][0]["text"] for item in rest["data"]] == ["Two"]
    assert client.delete(place).json == {"id": made["id"], "object": "response", "deleted": True}
    for method in (client.get, client.delete):
        gone = method(place)
        assert (gone.status_code, check_error(gone.json or {})["code"]) == (404, "response_not_found")


def test_a_response_that_is_not_to_be_kept_is_not(client: FlaskClient, responses: ResponsesClient) -> None:
    made = responses.ask("One", store=False).response
    assert made["store"] is False
    assert client.get(f"/v1/responses/{made['id']}").status_code == 404


class TestKeys:
    @pytest.fixture
    def environment(self, environment: dict[str, str]) -> dict[str, str]:
        return {**environment, "BRIDGE_API_KEYS": "the-key-of-roo the-key-of-codex"}

    def test_a_response_is_only_for_the_key_that_made_it(self, client: FlaskClient, responses: ResponsesClient) -> None:
        roo, codex = ({"Authorization": f"Bearer the-key-of-{name}"} for name in ("roo", "codex"))
        made = responses.ask("One", headers=roo).response
        place = f"/v1/responses/{made['id']}"
        for method in (client.get, client.delete):
            assert method(place).status_code == 401
            assert check_error(method(place, headers=codex).json or {})["code"] == "response_not_found"
        assert client.get(f"{place}/input_items", headers=codex).status_code == 404
        assert client.get(place, headers=roo).json == made
        assert client.delete(place, headers=roo).status_code == 200


def test_a_bridge_that_was_started_again_knows_its_responses(
    responses: ResponsesClient, letta: FakeGateway, settings: Settings
) -> None:
    made = responses.ask("One").response
    again = create_app(settings, letta).test_client()
    assert again.get(f"/v1/responses/{made['id']}").json == made
    assert ResponsesClient(again).ask("Two", previous_response_id=made["id"]).status == 200
    assert [prompt.texts for prompt in letta.prompts] == [["One"], ["Two"]]


@pytest.mark.parametrize("asked", ["order=up", "limit=0", "limit=101", "limit=x"])
def test_a_wrong_page_is_refused(client: FlaskClient, responses: ResponsesClient, asked: str) -> None:
    made = responses.ask("One").response
    reply = client.get(f"/v1/responses/{made['id']}/input_items?{asked}")
    assert (reply.status_code, check_error(reply.json or {})["param"]) == (400, asked.partition("=")[0])
