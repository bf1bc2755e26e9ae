"""Scripts of what clients do in one or two turns. Each yields the replies that its client gets."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.faults.client import PersistentTalk, persist
from tests.real.talk import ANSWER, CLOCK, MEMORY_TOOL, WEATHER, ask_weather, calling, result, tool
from tests.real.world import Reply

Scenario = Callable[[PersistentTalk], Iterator[Reply]]

NEWS = tool("news", "Tells the news.", topic={"type": "string"})
BOTH = f"Weather?\n{calling(city='Oslo')}\n{calling(city='Rome')}\n{ANSWER}"
DEGREES = {"Oslo": "12 degrees", "Rome": "20 degrees"}


def no_tools(talk: PersistentTalk) -> Iterator[Reply]:
    yield talk.say("Hello", tools=None)


def call_and_result(talk: PersistentTalk) -> Iterator[Reply]:
    yield talk.say(ask_weather())
    yield talk.give("12 degrees")


def message_behind_the_result(talk: PersistentTalk) -> Iterator[Reply]:
    yield talk.say(ask_weather())
    yield talk.give("12 degrees", then="<environment_details>noon</environment_details>")


def search_and_call(talk: PersistentTalk) -> Iterator[Reply]:
    """The agent has to find the tool among many."""
    many = [*(tool(f"filler_{number}") for number in range(140)), WEATHER]
    found = '!call search_tools* {"words": "weather"}'
    called = '!call call_tool* {"name": "weather", "arguments": {"city": "Oslo"}}'
    yield talk.say(f"Weather?\n{found}\n!next\n{called}\n{ANSWER}", tools=many)
    yield talk.give("12 degrees", tools=many)


def calls_in_a_row(talk: PersistentTalk) -> Iterator[Reply]:
    yield talk.say(f"Weather?\n{calling(city='Oslo')}\n!next\n{calling('clock*')}\n{ANSWER}")
    yield talk.give("12 degrees")
    yield talk.give("noon")


def own_tool_before_and_after(talk: PersistentTalk) -> Iterator[Reply]:
    tea, rain = (f'!call {MEMORY_TOOL} {{"label": "human", "content": "{text}"}}' for text in ("tea", "rain"))
    yield talk.say(f"Weather?\n{tea}\n!next\n{calling(city='Oslo')}\n!next\n{rain}\n{ANSWER}")
    yield talk.give("12 degrees")


def results_in_another_order(talk: PersistentTalk) -> Iterator[Reply]:
    """An agent that makes one call at a time gets one result."""
    asked = talk.say(BOTH)
    yield asked
    given = [DEGREES[call["city"]] for _, call in asked.calls]
    yield talk.send(*reversed([result(*one) for one in zip(asked.call_ids, given, strict=True)]))


def missing_result(talk: PersistentTalk) -> Iterator[Reply]:
    asked = talk.say(BOTH)
    yield asked
    yield talk.send(result(asked.call_ids[-1], "20 degrees"), {"role": "user", "content": "Only that."})


def failed_tool(talk: PersistentTalk) -> Iterator[Reply]:
    yield talk.say(ask_weather())
    yield talk.give({"content": "No such city.", "status": "error"})


def large_result(talk: PersistentTalk) -> Iterator[Reply]:
    yield talk.say(f"Weather?\n{calling(city='Oslo')}\n!next\n!say Read.")
    yield talk.give("12 degrees. " * 3_000)


def given_up(talk: PersistentTalk) -> Iterator[Reply]:
    yield talk.say(ask_weather())
    yield talk.say("Never mind.\n!say All right.")


def given_up_for_another_client(talk: PersistentTalk) -> Iterator[Reply]:
    yield talk.say(ask_weather())
    yield PersistentTalk(talk.agent, NEWS).say("News?\n!say None.")


def call_demanded(talk: PersistentTalk) -> Iterator[Reply]:
    yield talk.say("Time?", tool_choice={"type": "function", "function": {"name": "clock"}})
    yield talk.give("noon")


def tools_that_change(talk: PersistentTalk) -> Iterator[Reply]:
    for offered in ([WEATHER], [CLOCK, NEWS], None, [WEATHER, NEWS]):
        yield talk.say(f"Now {len(offered or ())}\n!say Yes.", tools=offered)
    yield talk.say(f"News?\n{calling('news*', topic='rain')}\n{ANSWER}", tools=[WEATHER, NEWS])
    yield talk.give("None.", tools=[WEATHER, NEWS])


def system_prompt(talk: PersistentTalk) -> Iterator[Reply]:
    yield talk.say(ask_weather(), system="Be brief.")
    yield talk.give("12 degrees", system="Be brief.")
    yield talk.say("Hello", system="Be long.")
    yield talk.say("Hello again")


def same_result_again(talk: PersistentTalk) -> Iterator[Reply]:
    yield talk.say(ask_weather())
    yield talk.give("12 degrees")
    yield persist(lambda: talk.agent.ask(messages=talk.messages[:-1], tools=talk.tools))


SCENARIOS: dict[str, Scenario] = {
    scenario.__name__: scenario
    for scenario in (
        no_tools,
        call_and_result,
        message_behind_the_result,
        search_and_call,
        calls_in_a_row,
        own_tool_before_and_after,
        results_in_another_order,
        missing_result,
        failed_tool,
        large_result,
        given_up,
        given_up_for_another_client,
        call_demanded,
        tools_that_change,
        system_prompt,
        same_result_again,
    )
}
