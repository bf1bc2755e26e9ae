"""Killed bridges in front of servers that do not say which runs go on. The next turn waits for the lost messages."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.faults.client import PersistentTalk, persist
from tests.faults.table import Cases
from tests.faults.test_chats import Chat
from tests.faults.test_processes import kill_all
from tests.real.talk import WEATHER
from tests.real.world import Agent, World

pytestmark = [pytest.mark.real, pytest.mark.strict, pytest.mark.full]

VERSIONS = ("0.6.54", "0.8.17")
SLOW = "Take your time.\n!delay 7\n!say Done."


@pytest.mark.fault("a bridge is killed in a run that nobody sees")
@pytest.mark.parametrize("chats", ["one", "each"])
def test_the_message_of_a_killed_turn_is_heard_once(
    world: World, agent: Agent, tmp_path: Path, chats: str, cases: Cases
) -> None:
    with world.start_bridge(BRIDGE_CHATS=chats, BRIDGE_DATA_DIR=str(tmp_path)) as bridge:
        talk = PersistentTalk(agent, WEATHER, stream=False, bridge=bridge)
        assert talk.say("I am Ann.\n!say Hello Ann").text == "Hello Ann"
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(talk.say, SLOW)
            world.model.wait_for_requests(containing="Take your time.")
            kill_all(bridge)
            assert asked.result().text == "Done."
        assert talk.say("Bye.\n!say Bye Ann").text == "Bye Ann"
        said = [line for line in talk.story() if line.startswith(("user: ", "assistant: "))]
        assert said == [
            "user: I am Ann.",
            "assistant: Hello Ann",
            "user: Take your time.",
            "assistant: Done.",
            "user: Bye.",
        ]
        cases.passed()


@pytest.mark.fault("a bridge is killed in a run that nobody sees, and another chat speaks")
def test_another_chat_waits_for_the_messages_of_a_killed_turn(
    world: World, agent: Agent, tmp_path: Path, cases: Cases
) -> None:
    with world.start_bridge(BRIDGE_CHATS="each", BRIDGE_DATA_DIR=str(tmp_path)) as bridge:
        one, two = (Chat(PersistentTalk(agent, WEATHER, stream=False, bridge=bridge)) for _ in range(2))
        one.say("I am Ann.")
        two.say("I am Bob.")
        with ThreadPoolExecutor(1) as pool:
            messages = [*one.talk.messages, {"role": "user", "content": SLOW}]
            asked = pool.submit(lambda: agent.ask(messages=messages, bridge=bridge))
            world.model.wait_for_requests(containing="Take your time.")
            kill_all(bridge)
            two.say("Still Bob.")
            assert asked.exception() is not None
        assert persist(lambda: agent.ask(messages=messages, bridge=bridge)).text == "Done."
        one.talk.messages = [*messages, {"role": "assistant", "content": "Done."}]
        one.lines += ["user: Take your time.", "assistant: Done."]
        two.say("Bob again.")
        one.say("Ann again.")
        cases.passed()
