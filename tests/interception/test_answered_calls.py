"""An agent that gets a few of many tools finds, reads about and calls the others, and the client sees only its own."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from typing import Any

import pytest

from app import assemble_parts
from bridge.config import read_settings
from bridge.errors import LettaUnreachable
from bridge.interception.answered_calls import LAST_ROUNDS, MOST_ROUNDS
from bridge.interception.method import NO_RESULT
from bridge.interception.prompt import nonce_for_turn
from bridge.letta.gateway import Results
from bridge.turn import Stopped, Text, ToolCall, ToolsLookedUp, ToolSpec
from tests.actors import Chat, ChatReply
from tests.fake_agent import new_id
from tests.fakes import FakeGateway
from tests.interception.attempts import CUT, TURN, Attempts, with_result
from tests.test_complaints import HELLO, Json, held, ids, result, tool

ISSUE: Json = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "labels": {"type": "array", "items": {"type": "string"}}},
    "required": ["title"],
}
ARGUMENTS = {"title": "Crash", "labels": ["bug"]}
MANY = [
    *(tool(f"files_action_{number}") for number in range(150)),
    tool("github_create_issue", ISSUE),
    tool("gitlab_create_issue", ISSUE),
]
ACCESS = {"search_tools", "describe_tool", "call_tool"}
CREATE = ("call_tool", json.dumps({"name": "github_create_issue", "arguments": ARGUMENTS}))
METHODS = ["native", "approval", "rewrite", "relay", "message"]


@pytest.fixture(params=METHODS)
def method(request: pytest.FixtureRequest, environment: dict[str, str], letta: FakeGateway) -> str:
    use_method(letta, environment, request.param)
    return str(request.param)


def use_method(letta: FakeGateway, environment: dict[str, str], method: str) -> None:
    if method in ("native", "relay"):
        letta._features = replace(letta._features, version=(0, 16, 8), client_tools=True, message_rewrite=False)
    if method in ("rewrite", "relay", "message"):
        (kept,) = letta._agents.values()
        kept.agent = replace(kept.agent, type="memgpt_v2_agent")
    environment["BRIDGE_METHOD"] = method


def search(words: str = "create github issue") -> tuple[str, str]:
    return "search_tools", json.dumps({"words": words})


def returned(letta: FakeGateway) -> list[str]:
    """Returns what the agent got as results of its calls, in whatever way."""
    (kept,) = letta._agents.values()
    rows = [row for row in kept.messages if row.kind in ("tool_return_message", "user_message") and row.text != "Hello"]
    return [row.text for row in rows]


def called(reply: ChatReply) -> list[tuple[str, Any]]:
    calls = reply.message.get("tool_calls") or []
    return [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls]


def follow(chat: Chat, letta: FakeGateway, reply: ChatReply, **fields: Any) -> ChatReply:
    letta.will_say("Thanks")
    messages = [HELLO, {"role": "assistant", **reply.message}, *(result(call, "Done.") for call in ids(reply))]
    return chat.ask(messages=messages, tools=MANY, **fields)


@pytest.mark.parametrize("stream", [False, True])
def test_the_agent_searches_describes_and_calls_and_the_client_gets_its_own_tools_call(
    chat: Chat, letta: FakeGateway, method: str, stream: bool
) -> None:
    letta.will(*held(search()))
    letta.will(*held(("describe_tool", '{"name": "github_create_issue"}')))
    letta.will(*held(CREATE))
    reply = chat.ask(tools=MANY, stream=stream)
    assert called(reply) == [("github_create_issue", ARGUMENTS)]
    assert reply.finish_reason == "tool_calls"
    assert len(letta.prompts) == 3
    found, described = returned(letta)[:2]
    assert "github_create_issue" in found
    assert '"labels"' in described
    assert follow(chat, letta, reply, stream=stream).text == "Thanks"
    assert any("Done." in text for text in returned(letta))


def test_the_agent_gets_a_few_tools_and_then_those_that_it_has_called(
    chat: Chat, letta: FakeGateway, method: str
) -> None:
    letta.will(*held(CREATE))
    reply = chat.ask(tools=MANY)
    first = set(letta.prompts[0].tools)
    assert first > ACCESS
    assert len(first) <= 30
    assert "github_create_issue" not in first
    follow(chat, letta, reply)
    assert set(letta.prompts[-1].tools) == first | {"github_create_issue"}
    letta.will_say("Hi")
    chat.ask("New conversation", tools=MANY)
    assert set(letta.prompts[-1].tools) == first | {"github_create_issue"}


def test_text_beside_a_search_is_the_users_and_tokens_are_summed(chat: Chat, letta: FakeGateway, method: str) -> None:
    letta.will(Text("Let me look.", "message-1"), *held(search()))
    letta.will_say("There is a tool.")
    reply = chat.ask(tools=MANY)
    assert reply.text == "Let me look.\n\nThere is a tool."
    assert reply.usage is not None
    assert reply.usage["completion_tokens"] == 20


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (("call_tool", '{"name": "github_create_isue", "arguments": {}}'), "github_create_issue"),
        (("call_tool", '{"arguments": {}}'), "`name` is missing"),
        (("call_tool", '{"name": "github_create_issue", "arguments": {"labels": []}}'), "title"),
        (("call_tool", '{"name": "github_create_issue", "arguments": {"title": 1}}'), "string"),
        (("call_tool", '{"name": "github_create_issue", "arguments": [1]}'), "one JSON object"),
        (("call_tool", '{"name": "github_create_issue", "arguments": "{wrong"}'), "one JSON object"),
        (("call_tool", "no JSON"), "`name` is missing"),
        (("describe_tool", '{"name": "create_github_issue"}'), "github_create_issue"),
        (("describe_tool", "{}"), "`name` is missing"),
        (("search_tools", '{"query": "issue"}'), "`words` is missing"),
        (("search_tools", '{"words": ' + "1" * 5_000 + "}"), "152 tools"),
        (("describe_tool", '{"name": ' + "1" * 5_000 + "}"), "`name` is missing"),
        (
            ("call_tool", '{"name": "github_create_issue", "arguments": ' + "[" * 600 + "]" * 600 + "}"),
            "one JSON object",
        ),
        (("search_tools", '{"words": "qqqqqqq"}'), "No tool fits"),
        (("search_tools", "{}"), "152 tools"),
        (("search_tools", "no JSON"), "152 tools"),
        (("call_tool", '{"name": "search_tools", "arguments": {"words": "a"}}'), "called by itself"),
    ],
    ids=str,
)
def test_a_wrong_call_is_answered_to_the_model_with_what_is_wrong(
    chat: Chat, letta: FakeGateway, call: tuple[str, str], words: str
) -> None:
    letta.will(*held(call))
    letta.will_say("I see.")
    reply = chat.ask(tools=MANY)
    assert reply.text == "I see."
    assert not called(reply)
    assert words in returned(letta)[0]


def test_arguments_may_be_written_as_json_text(chat: Chat, letta: FakeGateway) -> None:
    letta.will(*held(("call_tool", json.dumps({"name": "github_create_issue", "arguments": json.dumps(ARGUMENTS)}))))
    assert called(chat.ask(tools=MANY)) == [("github_create_issue", ARGUMENTS)]


def test_arguments_may_be_written_beside_the_name(chat: Chat, letta: FakeGateway) -> None:
    letta.will(*held(("call_tool", json.dumps({"name": "github_create_issue", **ARGUMENTS}))))
    assert called(chat.ask(tools=MANY)) == [("github_create_issue", ARGUMENTS)]


@pytest.mark.parametrize("value", ["1.10", "12345678901234567890", "1" * 5_000])
def test_numbers_beside_the_name_stay_as_they_were_written(chat: Chat, letta: FakeGateway, value: str) -> None:
    many = [*MANY, tool("count", {"type": "object", "properties": {"to": {"type": "number"}}})]
    letta.will(*held(("call_tool", f'{{"name": "count", "to": {value}}}')))
    letta.will_say("I see.")
    reply = chat.ask(tools=many)
    calls = reply.message.get("tool_calls") or []
    if len(value) < 4_000:
        assert [call["function"]["arguments"] for call in calls] == [f'{{"to": {value}}}']
    else:  # no program can be expected to read such a number
        assert not calls
        assert "one JSON object" in returned(letta)[0]


def test_a_tool_that_can_be_no_stub_can_be_found_and_called_and_its_result_is_taken(
    chat: Chat, letta: FakeGateway
) -> None:
    closed = [{"properties": {f"p{number}": {}}, "additionalProperties": False} for number in range(1_500)]
    heavy = {"type": "object", "allOf": closed}
    many = [*(tool(f"files_action_{number}") for number in range(600)), tool("heavy", heavy)]
    letta.will(*held(("call_tool", '{"name": "heavy", "arguments": {}}')))
    reply = chat.ask(tools=many)
    assert [name for name, _ in called(reply)] == ["heavy"]
    letta.will_say("Thanks")
    messages = [HELLO, {"role": "assistant", **reply.message}, result(ids(reply)[0], "Done.")]
    assert chat.ask(messages=messages, tools=many).text == "Thanks"
    assert "heavy" not in letta.prompts[-1].tools
    named = chat.ask("Again", tools=many, tool_choice={"type": "function", "function": {"name": "heavy"}})
    assert named.status == 400


def test_numbers_in_arguments_stay_as_they_were_written(chat: Chat, letta: FakeGateway) -> None:
    many = [*MANY, tool("sum", {"type": "object", "properties": {"of": {"type": "array"}}})]
    letta.will(*held(("call_tool", '{"name": "sum", "arguments": {"of": [1.10, 12345678901234567890, 1e400]}}')))
    (call,) = chat.ask(tools=many).message["tool_calls"]
    assert call["function"]["arguments"] == '{"of": [1.10, 12345678901234567890, 1e400]}'


def test_a_tool_without_parameters_is_called_without_arguments(chat: Chat, letta: FakeGateway) -> None:
    for arguments in ('{"name": "now"}', '{"name": "now", "arguments": {}}', '{"name": "now", "arguments": ""}'):
        letta.will(*held(("call_tool", arguments)))
        assert called(chat.ask(arguments, tools=[*MANY, tool("now", None)])) == [("now", {})]


@pytest.mark.parametrize("method", ["native", "approval"])
def test_a_search_beside_a_clients_call_is_answered_together_with_the_clients_result(
    chat: Chat, letta: FakeGateway, environment: dict[str, str], method: str
) -> None:
    use_method(letta, environment, method)
    letta.will(*held(search(), ("files_action_1", '{"city": "Oslo"}'), ("describe_tool", '{"name": "no"}')))
    reply = chat.ask(tools=MANY)
    assert called(reply) == [("files_action_1", {"city": "Oslo"})]
    assert follow(chat, letta, reply).text == "Thanks"
    (sent,) = (one for one in letta.prompts[-1].messages if isinstance(one, Results))
    assert ["github_create_issue" in sent.results[0].text, sent.results[0].ok] == [True, True]
    assert (sent.results[1].text, sent.results[1].ok) == ("Done.", True)
    assert ["no tool 'no'" in sent.results[2].text, sent.results[2].ok] == [True, False]


@pytest.mark.parametrize("method", ["native", "approval"])
def test_a_search_beside_a_call_that_is_given_up_is_answered_too(
    chat: Chat, letta: FakeGateway, environment: dict[str, str], method: str
) -> None:
    use_method(letta, environment, method)
    letta.will(*held(search(), CREATE))
    reply = chat.ask(tools=MANY)
    assert called(reply) == [("github_create_issue", ARGUMENTS)]
    letta.will_say("Fine.")
    again = [HELLO, {"role": "assistant", **reply.message}, {"role": "user", "content": "Never mind."}]
    assert chat.ask(messages=again, tools=MANY).text == "Fine."
    (sent,) = (one for one in letta.prompts[-1].messages if isinstance(one, Results))
    assert "github_create_issue" in sent.results[0].text
    assert sent.results[1].text == NO_RESULT


def test_a_late_result_is_told_as_that_of_the_clients_tool(chat: Chat, letta: FakeGateway) -> None:
    letta.will(*held(CREATE))
    reply = chat.ask(tools=MANY)
    letta.will_say("Fine.")
    messages = [HELLO, {"role": "assistant", **reply.message}, {"role": "user", "content": "Never mind."}]
    messages += [{"role": "assistant", "content": chat.ask(messages=messages, tools=MANY).text}]
    letta.will_say("I see.")
    late = [*messages, result(ids(reply)[0], "Issue 7."), {"role": "user", "content": "It came late."}]
    assert chat.ask(messages=late, tools=MANY).text == "I see."
    quoted = next(json.loads(text) for text in letta.prompts[-1].texts if text.startswith("{"))
    assert (quoted["tool"], json.loads(quoted["arguments"])) == ("github_create_issue", ARGUMENTS)


def test_several_searches_in_one_step_are_all_answered(chat: Chat, letta: FakeGateway) -> None:
    letta.will(*held(search(), search("gitlab issue")))
    letta.will_say("Both.")
    assert chat.ask(tools=MANY).text == "Both."
    assert len(returned(letta)) == 2


def test_an_agent_that_only_searches_is_told_to_stop_and_its_turn_ends(chat: Chat, letta: FakeGateway) -> None:
    for number in range(MOST_ROUNDS + LAST_ROUNDS + 5):
        letta.will(*held(search(f"issue {number}")))
    reply = chat.ask(tools=MANY)
    assert reply.finish_reason == "length"
    assert len(letta.prompts) == MOST_ROUNDS + LAST_ROUNDS + 1
    assert sum("times in this turn" in text for text in returned(letta)) == LAST_ROUNDS
    letta.will_say("Hello again.")
    assert chat.ask("And now?", tools=MANY).text == "Hello again."


def test_a_clients_own_tool_of_that_name_stays_its_own(chat: Chat, letta: FakeGateway) -> None:
    many = [tool("search_tools"), tool("bridge_call_tool"), tool("call_tool"), *MANY]
    letta.will(*held(("search_tools", '{"city": "Oslo"}')))
    assert called(chat.ask(tools=many)) == [("search_tools", {"city": "Oslo"})]
    assert {"bridge_search_tools", "describe_tool", "bridge_call_tool_2"} < set(letta.prompts[0].tools)
    letta.will(*held(("bridge_call_tool_2", CREATE[1])))
    assert called(chat.ask("Again", tools=many)) == [("github_create_issue", ARGUMENTS)]


def test_an_agents_own_tool_of_that_name_stays_its_own(chat: Chat, letta: FakeGateway) -> None:
    own = letta.has_tool("search_tools")
    (kept,) = letta._agents.values()
    kept.agent = replace(kept.agent, tools=(own,))
    letta.will_say("Hi")
    chat.ask(tools=MANY)
    (renamed,) = (name for name in letta.prompts[0].tools if name.startswith("search_tools_"))
    letta.will(*held((renamed, '{"words": "github"}')))
    letta.will(*held(("call_tool", '{"name": "wrong", "arguments": {}}')))
    letta.will_say("Hi")
    chat.ask("Again", tools=MANY)
    assert renamed in returned(letta)[-1]


@pytest.mark.parametrize(
    ("settings", "tools", "found"),
    [
        ({}, 100, False),
        ({}, 101, True),
        ({"BRIDGE_TOOL_SEARCH": "0"}, 152, False),
        ({"BRIDGE_TOOL_SEARCH": "20"}, 21, True),
        ({"BRIDGE_TOOL_SEARCH": "0, Ada=20"}, 21, True),
        ({"BRIDGE_TOOL_SEARCH": "20, Ada=0"}, 21, False),
    ],
    ids=str,
)
def test_the_setting_says_from_how_many_tools_on_the_agent_searches(
    letta: FakeGateway, environment: dict[str, str], settings: dict[str, str], tools: int, found: bool
) -> None:
    specs = tuple(ToolSpec(f"tool_{number}") for number in range(tools))
    letta.will_say("Hi")
    Attempts(letta, read_settings({**environment, **settings})).run(replace(TURN, tools=specs))
    assert (set(letta.prompts[0].tools) >= ACCESS) == found
    assert len(letta.prompts[0].tools) == (18 if found else tools)


def test_a_key_may_have_a_number_of_its_own(letta: FakeGateway, environment: dict[str, str]) -> None:
    specs = tuple(ToolSpec(f"tool_{number}") for number in range(30))
    letta.will_say("Hi")
    Attempts(letta, read_settings(environment)).run(replace(TURN, tools=specs, search_above=25))
    assert set(letta.prompts[0].tools) >= ACCESS


def test_tools_of_the_setting_and_of_tool_choice_are_always_there(
    letta: FakeGateway, environment: dict[str, str], chat: Chat
) -> None:
    letta.will_say("Hi")
    named = {"type": "function", "function": {"name": "gitlab_create_issue"}}
    chat.ask(tools=MANY, tool_choice=named)
    assert "gitlab_create_issue" in letta.prompts[0].tools
    settings = read_settings({**environment, "BRIDGE_TOOL_SEARCH": "128, +tool_149, +missing"})
    letta.will_say("Hi")
    Attempts(letta, settings).run(replace(TURN, tools=tuple(ToolSpec(f"tool_{number}") for number in range(150))))
    assert "tool_149" in letta.prompts[-1].tools


def test_without_the_search_too_many_tools_are_refused(letta: FakeGateway, environment: dict[str, str]) -> None:
    environment["BRIDGE_TOOL_SEARCH"] = "0"
    specs = tuple(ToolSpec(f"tool_{number}") for number in range(513))
    with pytest.raises(Exception, match="limit is 512 without the tool search") as caught:
        Attempts(letta, read_settings(environment)).run(replace(TURN, tools=specs))
    assert getattr(caught.value, "code", "") == "too_many_tools"


def test_a_malformed_tool_is_refused_also_if_the_agent_does_not_get_it(chat: Chat, letta: FakeGateway) -> None:
    wrong = tool("wrong", {"type": "object", "properties": []})
    refused = chat.ask(tools=[*MANY, wrong])
    assert refused.status == 400
    assert refused.error is not None
    assert refused.error["param"].startswith(f"tools[{len(MANY)}].function.parameters")
    assert letta.prompts == []


@pytest.mark.parametrize("rounds", [1, 2, 3])
@pytest.mark.parametrize("method", ["native", "approval", "rewrite", "relay"])
def test_a_repeat_goes_on_where_the_turn_was_broken_off(
    letta: FakeGateway, environment: dict[str, str], method: str, rounds: int
) -> None:
    use_method(letta, environment, method)
    specs = (*(ToolSpec(f"tool_{number}") for number in range(140)), ToolSpec("github_create_issue", "", ISSUE))
    turn, attempts = replace(TURN, tools=specs), Attempts(letta, read_settings(environment))
    steps = [held(search("github")), held(("describe_tool", '{"name": "github_create_issue"}')), held(CREATE)]
    for step in steps[: rounds - 1]:
        letta.will(*step)
    letta.will(*steps[rounds - 1][:1], CUT)
    with pytest.raises(LettaUnreachable):
        attempts.run(turn)
    for step in steps[rounds:]:
        letta.will(*step)
    events = attempts.repeat(turn)
    (call,) = (event for event in events if isinstance(event, ToolCall))
    assert (call.name, json.loads(call.arguments)) == ("github_create_issue", ARGUMENTS)
    assert len(letta.prompts) == 3, "no step of the agent was made again"
    assert sum("Hello" in prompt.texts for prompt in letta.prompts) == 1
    letta.will_say("Thanks")
    done = attempts.run(with_result(turn, events, "Done."))
    assert Text("Thanks") in done


def test_nobody_answers_for_a_client_that_has_left(letta: FakeGateway, environment: dict[str, str]) -> None:
    gone = threading.Event()
    letta.will(*held(search())[:1], gone.set, Stopped("requires_approval"))
    turn = replace(TURN, tools=tuple(ToolSpec(f"tool_{number}") for number in range(140)))
    assert list(assemble_parts(read_settings(environment), letta).conversation.events(turn, gone))
    assert len(letta.prompts) == 1


def test_a_request_aside_searches_too(chat: Chat, letta: FakeGateway) -> None:
    letta.will(*held(search()))
    letta.will(*held(CREATE))
    reply = chat.ask(tools=MANY, headers={"X-Bridge-Aside": "1"})
    assert called(reply) == [("github_create_issue", ARGUMENTS)]


def test_a_reply_in_json_may_need_a_search_first(chat: Chat, letta: FakeGateway) -> None:
    letta.will(*held(search()))
    letta.will_say("not JSON")
    letta.will(*held(search("gitlab")))
    letta.will_say('{"a": 1}')
    assert chat.ask(tools=MANY, response_format={"type": "json_object"}).text == '{"a": 1}'


def test_the_record_has_what_the_agent_looked_for(letta: FakeGateway, environment: dict[str, str]) -> None:
    letta.will(*held(search("tool 7")))
    letta.will(*held(("describe_tool", '{"name": "nothing"}')))
    letta.will_say("Hi")
    turn = replace(TURN, tools=tuple(ToolSpec(f"tool_{number}") for number in range(140)))
    events = Attempts(letta, read_settings(environment)).run(turn)
    looked = [event for event in events if isinstance(event, ToolsLookedUp)]
    assert [(event.name, event.ok) for event in looked] == [("search_tools", True), ("describe_tool", False)]
    assert "tool_7" in looked[0].text.split(", ")


def test_calls_in_text_are_answered_too(letta: FakeGateway, environment: dict[str, str]) -> None:
    environment["BRIDGE_METHOD"] = "prompt"
    tag = f"call-{nonce_for_turn(TURN.id)}"
    specs = (*(ToolSpec(f"tool_{number}") for number in range(140)), ToolSpec("github_create_issue", "", ISSUE))
    for name, arguments in (search(), CREATE):
        written = f'<{tag}>{{"name": "{name}", "arguments": {arguments}}}</{tag}>'
        letta.will(Text(written, new_id("message")), Stopped("end_turn"))
    events = Attempts(letta, read_settings(environment)).run(replace(TURN, tools=specs))
    (call,) = (event for event in events if isinstance(event, ToolCall))
    assert (call.name, json.loads(call.arguments)) == ("github_create_issue", ARGUMENTS)
    assert "github_create_issue" in " ".join(letta.prompts[1].texts)
    assert not any("<call-" in event.text for event in events if isinstance(event, Text))
