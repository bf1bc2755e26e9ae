"""Chats with contexts of their own, whatever fails: each is shown to the model as its client knows it."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from testbed.proxy import Cut, DropResponse, Fault, Refuse, Reset, Status
from testbed.service import Service
from tests.faults.client import PersistentTalk, persist
from tests.faults.scale import FULL, scaled
from tests.faults.table import Cases
from tests.faults.test_processes import kill_all, kill_one
from tests.real.talk import MEMORY_TOOL, NUDGE, WEATHER, calling
from tests.real.world import Agent, World

pytestmark = [pytest.mark.real, pytest.mark.strict]

FAULTS: list[Fault] = [Refuse(), DropResponse(), Reset(), Status(500), Status(502, answered=True), Cut(after_bytes=60)]


@dataclass(slots=True)
class Chat:
    """A chat as its client knows it: `lines` is what the model must be shown, `city` of the call that waits."""

    talk: PersistentTalk
    lines: list[str] = field(default_factory=list)
    city: str = ""
    exchanges: list[tuple[int, int]] = field(default_factory=list)

    def say(self, text: str) -> None:
        self._begin_exchange()
        assert self.talk.say(f"{text}\n!say Heard {text}").text == f"Heard {text}"
        self._expect(f"user: {text}")
        self.lines.append(f"assistant: Heard {text}")

    def call(self, city: str) -> None:
        self._begin_exchange()
        text = f"Weather of {city}?"
        assert self.talk.say(f"{text}\n{calling(city=city)}\n!next\n!answer").calls == [("weather", {"city": city})]
        self._expect(f"user: {text}")
        self.lines.append(f'call weather {{"city": "{city}"}}')
        self.city = city

    def give(self) -> None:
        assert self.talk.give(f"{self.city} is warm").text == f"{self.city} is warm"
        self._expect(f"result of weather: {self.city} is warm")
        self.lines.append(f"assistant: {self.city} is warm")
        self.city = ""

    def remember(self, text: str) -> None:
        self._begin_exchange()
        edit = calling(MEMORY_TOOL, label="human", content=text)
        assert self.talk.say(f"Remember {text}\n{edit}\n!next\n!say Noted {text}").text == f"Noted {text}"
        self._expect(f"user: Remember {text}")
        self.lines.append(f"assistant: Noted {text}")

    def take_back(self) -> None:
        """Goes back to before the last exchange, so that the next message takes its place."""
        messages, lines = self.exchanges.pop()
        del self.talk.messages[messages:], self.lines[lines:]
        self.city = ""

    def _begin_exchange(self) -> None:
        self.exchanges.append((len(self.talk.messages), len(self.lines)))

    def _expect(self, line: str) -> None:
        self.lines.append(line)
        shown = [one for one in self.talk.story() if one != NUDGE and not one.startswith("heartbeat:")]
        shown = [one for one in shown if MEMORY_TOOL not in one]
        assert shown == self.lines


def two_chats(agent: Agent, bridge: Service, *, stream: bool) -> Iterator[None]:
    """A call that waits while another chat speaks, and an answer that is taken back."""
    one, two = (Chat(PersistentTalk(agent, WEATHER, stream=stream, bridge=bridge)) for _ in range(2))
    one.call("Oslo")
    yield
    two.say("Here I am.")
    yield
    one.give()
    yield
    two.take_back()
    two.say("Here I am again.")
    yield


@pytest.mark.fault("the n-th call to Letta fails while chats have contexts of their own")
@pytest.mark.timeout(1800)
@pytest.mark.one_server
@pytest.mark.one_type
def test_a_failure_of_any_call_mixes_no_chats(world: World, agent_type: str, tmp_path: Path, cases: Cases) -> None:
    step = 1 if FULL else 7
    with world.start_bridge(BRIDGE_CHATS="each", BRIDGE_DATA_DIR=str(tmp_path)) as bridge:
        for turn in itertools.count():
            world.model.clear()
            agent, stream = world.agent(agent_type), turn % 2 == 0
            with world.proxy.inject(FAULTS[turn % len(FAULTS)], nth=1 + turn * step) as rule:
                assert len([*two_chats(agent, bridge, stream=stream)]) == 4
            assert not world.model.refusals
            agent.delete()
            if not rule.applied:
                assert turn * step > 10, "it takes more calls than that"
                return
            cases.passed()


@pytest.mark.fault("workers are killed while chats have contexts of their own")
@pytest.mark.timeout(1800)
@pytest.mark.two_servers
@pytest.mark.one_type
def test_chats_at_random_keep_their_contexts_when_workers_die(
    world: World, agent_type: str, tmp_path: Path, cases: Cases
) -> None:
    """Four chats, two workers. Calls are left open, answers taken back, and the memory that all have is changed."""
    dice = random.Random(22)
    agent = world.agent(agent_type, tools=[MEMORY_TOOL])
    known: list[str] = []
    with world.start_bridge(BRIDGE_CHATS="each", BRIDGE_DATA_DIR=str(tmp_path)) as bridge:
        chats = [Chat(PersistentTalk(agent, WEATHER, stream=at % 2 == 0, bridge=bridge)) for at in range(4)]
        for number in range(scaled(24, 60)):
            chat = dice.choice(chats)
            killer = threading.Timer(dice.uniform(0.01, 0.4), kill_one, (bridge, dice))
            if dice.random() < 0.25:
                killer.start()
            if chat.city and dice.random() < 0.6:
                chat.give()
            elif chat.city or (chat.exchanges and dice.random() < 0.2):
                chat.take_back()
                chat.say(f"Instead {number}.")
            elif dice.random() < 0.4:
                chat.call(f"City {number}")
            elif dice.random() < 0.3:
                chat.remember(f"Fact {number}.")
                known.append(f"Fact {number}.")
            else:
                chat.say(f"Number {number}.")
            if killer.is_alive():
                killer.join()
            cases.passed()
        chats[0].take_back() if chats[0].city else None
        chats[0].say("The end.")
        prompt = str(world.model.last_request().messages[0])
        assert all(fact in prompt for fact in known)
    assert not world.model.refusals
    agent.delete()


@pytest.mark.fault("a worker is killed in a turn, and another chat speaks")
@pytest.mark.parametrize("stream", [False, True] if FULL else [True])
@pytest.mark.two_servers
@pytest.mark.one_type
def test_a_chat_that_speaks_after_a_killed_turn_has_its_own_context(
    world: World, agent: Agent, tmp_path: Path, stream: bool, cases: Cases
) -> None:
    """The agent's run may go on in Letta without the bridge, and would write its own context at its end."""
    with world.start_bridge(BRIDGE_CHATS="each", BRIDGE_DATA_DIR=str(tmp_path)) as bridge:
        one, two = (Chat(PersistentTalk(agent, WEATHER, stream=stream, bridge=bridge)) for _ in range(2))
        one.say("I am Ann.")
        two.say("I am Bob.")
        slow = "Take your time.\n!delay 3\n!say Done."
        with ThreadPoolExecutor(1) as pool:
            messages = [*one.talk.messages, {"role": "user", "content": slow}]
            asked = pool.submit(lambda: persist(lambda: agent.ask(messages=messages, bridge=bridge, stream=stream)))
            world.model.wait_for_requests(containing="Take your time.")
            kill_all(bridge)
            two.say("Still Bob.")
            assert asked.result().text == "Done."
        one.talk.messages = [*messages, {"role": "assistant", "content": "Done."}]
        one.lines += ["user: Take your time.", "assistant: Done."]
        two.say("Bob again.")
        one.say("Ann again.")
        cases.passed()
