"""Chats with a context of their own: what the model is shown in each, whatever happens in the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import requests

from testbed.service import Service
from tests.letta_checker import calls_of
from tests.real.talk import OSLO, WEATHER, Talk, ask_weather, calling, story_of
from tests.real.world import Agent, World
from tests.sse_checker import Json

pytestmark = [pytest.mark.real, pytest.mark.strict]

EACH = {"BRIDGE_CHATS": "each", "BRIDGE_TOOL_WAIT": "30"}


@pytest.fixture(scope="module")
def bridge(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with world.start_bridge(**EACH, BRIDGE_DATA_DIR=str(tmp_path_factory.mktemp("each"))) as service:
        yield service


def story(talk: Talk) -> list[str]:
    return [line for line in talk.story() if not line.startswith("system: [The tool")]


@pytest.mark.two_servers
def test_each_chat_has_a_context_of_its_own(agent: Agent, bridge: Service, stream: bool) -> None:
    one, two = (Talk(agent, WEATHER, stream=stream, bridge=bridge) for _ in range(2))
    one.say("I am Ann.\n!say Hello Ann.")
    assert story(one) == ["user: I am Ann."]
    two.say("I am Bob.\n!say Hello Bob.")
    assert story(two) == ["user: I am Bob."]
    one.say("Who am I?\n!say Ann.")
    assert story(one) == ["user: I am Ann.", "assistant: Hello Ann.", "user: Who am I?"]
    two.say("And I?\n!say Bob.")
    assert story(two) == ["user: I am Bob.", "assistant: Hello Bob.", "user: And I?"]


def test_a_call_waits_in_its_chat_while_others_speak(agent: Agent, bridge: Service, stream: bool) -> None:
    one, two, three = (Talk(agent, WEATHER, stream=stream, bridge=bridge) for _ in range(3))
    assert one.say(ask_weather()).calls == [("weather", {"city": "Oslo"})]
    assert two.say(ask_weather("Rome")).calls == [("weather", {"city": "Rome"})]
    assert three.say("Here I am.\n!say Welcome.").text == "Welcome."
    assert story(three) == ["user: Here I am."]
    assert one.give("12 degrees").text == "12 degrees"
    assert story(one) == ["user: Weather?", OSLO, "result of weather: 12 degrees"]
    assert two.give("20 degrees").text == "20 degrees"
    assert story(two) == ["user: Weather?", OSLO.replace("Oslo", "Rome"), "result of weather: 20 degrees"]


@pytest.mark.one_type
@pytest.mark.two_servers
def test_words_that_were_taken_back_are_not_in_the_context(agent: Agent, bridge: Service, stream: bool) -> None:
    """Regenerates an answer, edits the last message, and goes back to the first version, as chat windows let one do."""
    talk = Talk(agent, stream=stream, bridge=bridge)
    talk.say("First.\n!say One.")
    begin = [*talk.messages]
    talk.say("Second.\n!say Two.")
    earlier = [*talk.messages]
    talk.messages = [*begin]
    assert talk.say("Second.\n!say Two.").headers["X-Bridge-Chat"] == "parted"
    assert story(talk) == ["user: First.", "assistant: One.", "user: Second."]
    talk.messages = [*begin]
    talk.say("Changed.\n!say Three.")
    assert story(talk) == ["user: First.", "assistant: One.", "user: Changed."]
    talk.say("Further.\n!say Four.")
    assert story(talk) == [
        *("user: First.", "assistant: One.", "user: Changed.", "assistant: Three."),
        "user: Further.",
    ]
    talk.messages = earlier
    talk.say("Back.\n!say Five.")
    assert story(talk) == ["user: First.", "assistant: One.", "user: Second.", "assistant: Two.", "user: Back."]


@pytest.mark.two_servers
def test_a_call_that_was_taken_back_is_not_in_the_context(agent: Agent, bridge: Service, stream: bool) -> None:
    talk = Talk(agent, WEATHER, stream=stream, bridge=bridge)
    talk.say("First.\n!say One.")
    begin = [*talk.messages]
    talk.say(ask_weather())
    called = [*talk.messages]
    talk.messages = [*begin]
    talk.say("Changed.\n!say Three.")
    assert story(talk) == ["user: First.", "assistant: One.", "user: Changed."]
    talk.messages = called
    assert talk.give("12 degrees").text == "12 degrees"
    assert story(talk) == [
        *("user: First.", "assistant: One.", "user: Weather?", OSLO),
        "result of weather: 12 degrees",
    ]


@pytest.mark.one_type
@pytest.mark.one_server
def test_chats_with_equal_beginnings_go_on_apart(agent: Agent, bridge: Service, stream: bool) -> None:
    one, two = (Talk(agent, stream=stream, bridge=bridge) for _ in range(2))
    one.say("Hi.\n!say Hello!")
    two.say("Hi.\n!say Hello!")
    one.say("I am Ann.\n!say Ann.")
    two.say("I am Bob.\n!say Bob.")
    assert story(two) == ["user: Hi.", "assistant: Hello!", "user: I am Bob."]
    one.say("Bye.\n!say Bye, Ann.")
    assert story(one) == ["user: Hi.", "assistant: Hello!", "user: I am Ann.", "assistant: Ann.", "user: Bye."]


@pytest.mark.one_type
@pytest.mark.one_server
def test_a_chat_that_the_agent_does_not_know_is_told_in_a_context_of_its_own(agent: Agent, bridge: Service) -> None:
    other = Talk(agent, bridge=bridge)
    other.say("I am Ann.\n!say Hello Ann.")
    messages = [
        {"role": "user", "content": "Before."},
        {"role": "assistant", "content": "Said by another assistant."},
        {"role": "user", "content": "Now.\n!say Fine."},
    ]
    reply = agent.ask(messages=messages, bridge=bridge)
    assert reply.headers["X-Bridge-Told"] == "2"
    told = story_of(agent, ())
    assert (told[0], told[-1], len(told)) == ("user: Before.", "user: Now.", 3)
    assert "another assistant" in told[1]


@pytest.mark.full
def test_a_lost_store_and_another_bridge_know_the_chats(
    world: World, agent: Agent, bridge: Service, tmp_path: Path, stream: bool
) -> None:
    """All that another bridge has of them is on the Letta server."""
    one, two, three = (Talk(agent, WEATHER, stream=stream, bridge=bridge) for _ in range(3))
    one.say("I am Ann.\n!say Hello Ann.")
    two.say("I am Bob.\n!say Hello Bob, how are you today, and what can I do?")
    three.say(ask_weather())
    one.say("Who am I?\n!say Ann, as I said.")
    with world.start_bridge(**EACH, BRIDGE_DATA_DIR=str(tmp_path)) as other:
        for talk in (one, two, three):
            talk._bridge = other
        two.say("Fine.\n!say Good.")
        assert story(two) == [
            *("user: I am Bob.", "assistant: Hello Bob, how are you today, and what can I do?"),
            "user: Fine.",
        ]
        assert three.give("12 degrees").text == "12 degrees"
        assert story(three) == ["user: Weather?", OSLO, "result of weather: 12 degrees"]
        one.messages = one.messages[:2]
        one.say("Changed.\n!say Three.")
        assert story(one) == ["user: I am Ann.", "assistant: Hello Ann.", "user: Changed."]


@pytest.mark.one_type
@pytest.mark.two_servers
def test_the_main_chat_is_back_after_each_turn_if_the_setting_says_so(
    world: World, agent: Agent, tmp_path: Path, stream: bool
) -> None:
    before = agent.state()["message_ids"]
    with world.start_bridge(BRIDGE_CHATS="each+main", BRIDGE_DATA_DIR=str(tmp_path)) as bridge:
        talk = Talk(agent, WEATHER, stream=stream, bridge=bridge)
        talk.say(ask_weather())
        assert agent.state()["message_ids"] == before
        assert talk.give("12 degrees").text == "12 degrees"
        assert story(talk) == ["user: Weather?", OSLO, "result of weather: 12 degrees"]
        assert agent.state()["message_ids"] == before
    with world.start_bridge(BRIDGE_CHATS="one", BRIDGE_DATA_DIR=str(tmp_path)) as bridge:
        agent.ask("Hello.\n!say Hello.", bridge=bridge)
        assert story_of(agent, ())[-1] == "user: Hello."
        assert "user: Weather?" not in story_of(agent, ())


@pytest.mark.two_servers
def test_memory_is_shared_by_all_chats(remembering: Agent, bridge: Service) -> None:
    agent = remembering
    one, two = (Talk(agent, bridge=bridge) for _ in range(2))
    two.say("I am Bob.\n!say Hello Bob.")
    edit = calling("core_memory_append", label="human", content="Likes tea.")
    one.say(f"I like tea.\n{edit}\n!next\n!say Noted.")
    two.say("And now?\n!say Tea.")
    system = agent.world.model.last_request().messages[0]
    assert "Likes tea." in str(system)
    assert story(two) == ["user: I am Bob.", "assistant: Hello Bob.", "user: And now?"]


@pytest.mark.one_type
@pytest.mark.one_server
def test_conversations_of_lettas_own_api_have_contexts_of_their_own(agent: Agent, bridge: Service) -> None:
    """Those that the bridge makes: with client tools, and with messages that Letta answers itself."""
    one, two = (new_conversation(agent, bridge) for _ in range(2))
    call = calls_of(post(bridge, f"conversations/{one}/messages", said(ask_weather()), tools=[WEATHER["function"]]))
    ((call_id, _),) = call.items()
    post(bridge, f"conversations/{two}/messages", said("I am Bob.\n!say Hello Bob."))
    assert story_of(agent, [WEATHER]) == ["user: I am Bob."]
    post(bridge, f"agents/{agent.id}/messages", said("Main.\n!say Yes."))
    assert story_of(agent, [WEATHER])[-1] == "user: Main."
    assert "user: I am Bob." not in story_of(agent, [WEATHER])
    main = agent.state()["message_ids"]
    given = {"type": "tool", "tool_call_id": call_id, "tool_return": "12 degrees", "status": "success"}
    answer = {"type": "approval", "approvals": [given]}
    post(bridge, f"conversations/{one}/messages", answer, tools=[WEATHER["function"]])
    shown = [line for line in story_of(agent, [WEATHER]) if not line.startswith("system:")]
    assert shown == ["user: Weather?", OSLO, "result of weather: 12 degrees"]
    url = f"{bridge.url}/letta/v1"
    contexts = [
        requests.get(f"{url}/conversations/{one}", timeout=60).json()["in_context_message_ids"],
        requests.get(f"{url}/conversations/{two}", timeout=60).json()["in_context_message_ids"],
        requests.get(f"{url}/agents/{agent.id}", timeout=60).json()["message_ids"],
    ]
    assert contexts[0] == agent.state()["message_ids"]
    assert contexts[2] == main
    assert [len({*context} & {*other}) for context in contexts for other in contexts if other is not context] == [1] * 6
    requests.patch(f"{url}/agents/{agent.id}", json={"metadata": {"colour": "red"}}, timeout=60).raise_for_status()
    assert agent.state()["metadata"]["colour"] == "red"
    post(bridge, f"conversations/{two}/messages", said("And now?\n!say Now."))
    assert story_of(agent, [WEATHER]) == ["user: I am Bob.", "assistant: Hello Bob.", "user: And now?"]


def said(text: str) -> Json:
    return {"role": "user", "content": text}


def new_conversation(agent: Agent, bridge: Service) -> str:
    url = f"{bridge.url}/letta/v1/conversations/"
    return str(requests.post(url, params={"agent_id": agent.id}, json={}, timeout=60).json()["id"])


def post(bridge: Service, path: str, message: Json, tools: Sequence[Json] = ()) -> list[Json]:
    """Sends a message in Letta's own API. Returns the messages of the answer."""
    body: Json = {"messages": [message], **({"client_tools": tools} if tools else {}), "streaming": False}
    if path.startswith("agents"):
        body.pop("streaming")
    answer = requests.post(f"{bridge.url}/letta/v1/{path}", json=body, timeout=120)
    assert answer.status_code == 200, answer.text
    messages: list[Json] = answer.json()["messages"]
    return messages


# The calls to Letta in a plain turn, as README.md says.
SAME, OTHER, BACK_TO_MAIN = 2, 3, 5


@pytest.mark.one_type
@pytest.mark.one_server
def test_a_change_of_the_chat_costs_one_call(world: World, agent: Agent, tmp_path: Path) -> None:
    def calls(talk: Talk) -> int:
        return int(talk.say("Again.").headers["X-Bridge-Letta-Calls"])

    alone = {"WEB_CONCURRENCY": "1", "BRIDGE_DATA_DIR": str(tmp_path)}  # each worker has to learn what the server is
    with world.start_bridge(**alone, BRIDGE_CHATS="each") as bridge:
        agent.ask("Hello.", bridge=bridge)  # looks what is left of earlier turns, too
        one, two = (Talk(agent, bridge=bridge) for _ in range(2))
        assert [calls(one), calls(one), calls(two), calls(one)] == [OTHER, SAME, OTHER, OTHER]
        del one.messages[2:]
        assert calls(one) == OTHER
    with world.start_bridge(**alone, BRIDGE_CHATS="each+main") as restoring:
        agent.ask("Hello.", bridge=restoring)
        three = Talk(agent, bridge=restoring)
        # The main chat is empty: there it might be so because of a reset that has deleted all messages.
        expected = BACK_TO_MAIN if world.at_least("0.16.0") else BACK_TO_MAIN + 1
        assert [calls(three), calls(three)] == [expected, expected]


@pytest.mark.full
def test_what_letta_sums_up_in_one_chat_stays_in_that_chat(world: World, agent_type: str, bridge: Service) -> None:
    world.model.clear()
    agent = world.agent(agent_type, context_window=16_000)
    one, two = (Talk(agent, bridge=bridge) for _ in range(2))
    two.say("I am Bob.\n!say Hello Bob.")
    one.say("I am Ann.\n!say Hello Ann.")
    first = agent.state()["message_ids"][1:3]
    for number in range(30):
        one.say(f"Number {number}. {'word ' * 1_200}\n!say Heard {number}.")
        if not {*first} & {*agent.state()["message_ids"]}:
            break
    summed_up = agent.state()["message_ids"]
    assert not {*first} & {*summed_up}
    two.say("Who am I?\n!say Bob.")
    assert story(two) == ["user: I am Bob.", "assistant: Hello Bob.", "user: Who am I?"]
    one.say("And I?\n!say Ann.")
    assert agent.state()["message_ids"][: len(summed_up)] == summed_up
    assert "user: I am Ann." not in story(one)
    assert story(one)[-1] == "user: And I?"
    agent.delete()
