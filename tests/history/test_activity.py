"""The history of turns. Several workers write it at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from bridge.history import activity as module
from bridge.history.activity import Activity
from bridge.history.periods import HOUR, MINUTE, Usage, joined
from bridge.history.records import Step, ToolCard, TurnRecord, record_to_text
from bridge.store.heartbeat import Heartbeat
from bridge.store.port import Store
from bridge.store.sqlite import LocalStore
from tests.clock import Clock
from tests.stores import KINDS, shared_store
from tests.waiting import until

NOON = 1_700_000_040.0


@pytest.fixture(params=KINDS)
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Store]]:
    with shared_store(request.param, tmp_path) as open_store:
        yield open_store


@pytest.fixture
def store(open_store: Callable[[], Store]) -> Store:
    return open_store()


@pytest.fixture
def activity(store: Store) -> Activity:
    return Activity(store)


@pytest.fixture
def another(open_store: Callable[[], Store]) -> Activity:
    """Returns the activity as another worker sees it."""
    return Activity(open_store())


def turn(number: int = 0, *steps: Step, outcome: str = "stop", agent: str = "agent-1", **more: float) -> TurnRecord:
    return TurnRecord(
        f"t{number}",
        NOON + number,
        "Ada",
        agent_id=agent,
        agent_name="Ada",
        method="native",
        outcome=outcome,
        ended=outcome == "stop",
        seconds=1.0,
        steps=steps,
        **more,  # type: ignore[arg-type]
    )


def call(name: str, call_id: str, arguments: str = "{}", at: float = 0.5) -> Step:
    return Step(at, "call", name, arguments, call_id=call_id)


def result(name: str, call_id: str, text: str = "done", ok: bool = True) -> Step:
    return Step(0.1, "result", name, text, ok=ok, call_id=call_id)


def test_turns_are_read_as_they_were_written_the_newest_first(activity: Activity, another: Activity) -> None:
    turns = [turn(1, call("read", "c1")), turn(2, outcome="letta_timeout")]
    activity.keep_ended_turns([(one, {}) for one in turns])
    assert another.newest_turns() == list(reversed(turns))
    assert another.newest_turns_of_agent("agent-1") == list(reversed(turns))
    assert another.newest_turns_of_agent("agent-2") == []


def test_a_request_aside_is_not_listed_with_its_agent(activity: Activity) -> None:
    activity.keep_ended_turns([(TurnRecord("t1", NOON, "Ada", agent_id="agent-9", aside=True), {})])
    assert [one.id for one in activity.newest_turns()] == ["t1"]
    assert activity.newest_turns_of_agent("agent-9") == []


def test_tools_are_counted_by_their_digest(activity: Activity) -> None:
    tools = {"read": "d1", "write": "d2"}
    activity.keep_ended_turns([(turn(1, call("read", "c1"), call("read", "c2")), tools)])
    steps = (result("read", "c1"), result("read", "c2", ok=False), call("write", "c3"))
    activity.keep_ended_turns([(turn(9, *steps), tools)])
    uses = activity.tool_uses()
    assert {
        digest: (use.client_name, use.offers, use.calls, use.results, use.errors) for digest, use in uses.items()
    } == {
        "d1": ("read", 2, 2, 2, 1),
        "d2": ("write", 2, 1, 0, 0),
    }
    assert (uses["d1"].since, uses["d1"].last) == (NOON + 1, NOON + 10)


def test_results_that_look_like_errors_are_counted_apart_from_errors(activity: Activity) -> None:
    steps = (result("read", "c1", ok=False), replace(result("read", "c2", "Error: none"), looks_wrong=True))
    activity.keep_ended_turns([(turn(1, call("read", "c1"), call("read", "c2"), *steps), {"read": "d1"})])
    use = activity.tool_uses()["d1"]
    assert (use.results, use.errors, use.look_wrong) == (2, 1, 1)
    assert [(one.ok, one.looks_wrong) for one in activity.newest_calls_of_tool("d1")] == [(True, True), (False, False)]


def test_a_call_is_shown_with_the_result_of_a_later_turn(activity: Activity) -> None:
    activity.keep_ended_turns([(turn(1, call("read", "c1", '{"path": "a"}')), {"read": "d1"})])
    (waiting,) = activity.newest_calls_of_tool("d1")
    assert (waiting.arguments, waiting.result, waiting.agent_name) == ('{"path": "a"}', None, "Ada")
    activity.keep_ended_turns([(turn(5, result("read", "c1", "text"), call("read", "c2")), {"read": "d1"})])
    latest, answered = activity.newest_calls_of_tool("d1")
    assert (latest.call_id, latest.result) == ("c2", None)
    assert (answered.call_id, answered.result, answered.ok, answered.answered) == ("c1", "text", True, NOON + 5.1)


def test_a_result_without_its_call_is_not_shown(activity: Activity) -> None:
    activity.keep_ended_turns([(turn(1, result("read", "c0")), {"read": "d1"})])
    assert activity.newest_calls_of_tool("d1") == []


def test_workers_that_write_at_the_same_time_lose_no_count(open_store: Callable[[], Store]) -> None:
    def work(worker: int) -> None:
        activity = Activity(open_store())
        for number in range(20):
            done = turn(worker * 100 + number, call("read", f"c{worker}-{number}"), letta_seconds=0.5)
            activity.keep_ended_turns([(done, {"read": "d1"})])

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(work, range(5)))
    read = Activity(open_store())
    assert (read.tool_uses()["d1"].offers, read.tool_uses()["d1"].calls) == (100, 100)
    assert sum(minute.turns for minute in read.periods(NOON + 600, MINUTE, 30)) == 100


def test_a_minute_has_turns_times_and_errors(activity: Activity) -> None:
    turns = [
        turn(1, letta_seconds=0.6, waited_seconds=0.1),
        turn(2, outcome="busy"),
        turn(3, outcome="busy"),
        turn(61),
    ]
    activity.keep_ended_turns([(one, {}) for one in turns])
    minutes = activity.periods(NOON + 70, MINUTE, 3)
    assert [(one.start, one.turns) for one in minutes] == [(1699999980, 0), (1700000040, 3), (1700000100, 1)]
    assert minutes[1].errors == {"busy": 2}
    assert (minutes[1].seconds, minutes[1].letta_seconds) == (3.0, 0.6)
    assert minutes[1].bridge_seconds == pytest.approx(2.3)


def test_longer_periods_are_made_of_hours(activity: Activity, another: Activity) -> None:
    times = [0, 3_600, 7_200, 86_400 * 3]
    for seconds in times:
        activity.keep_ended_turns([(turn(seconds, letta_seconds=0.5, prompt_tokens=100, completion_tokens=5), {})])
    activity.keep_ended_turns([(turn(1, outcome="busy"), {})])
    for length, count in ((HOUR, 80), (3 * HOUR, 30), (12 * HOUR, 60)):
        periods = another.periods(NOON + times[-1] + 60, length, count)
        assert len(periods) == count
        assert [one.start for one in periods] == sorted(one.start for one in periods)
        assert {one.start % length for one in periods} == {0}
        assert sum(one.turns for one in periods) == 5
        whole = joined(periods, 0, 0)
        assert (whole.errors, whole.seconds, whole.letta_seconds) == ({"busy": 1}, 5.0, 2.0)
        assert whole.usage == {"": Usage(5, 1, 400, 20)}


def test_minutes_are_forgotten_before_hours(tmp_path: Path) -> None:
    clock = Clock(1000.0)
    activity = Activity(LocalStore(tmp_path / "store", clock))
    activity.keep_ended_turns([(turn(1), {})])
    clock.now += module.MINUTES_KEPT + 1
    assert [one.turns for one in activity.periods(NOON, MINUTE, 1)] == [0]
    assert [one.turns for one in activity.periods(NOON, HOUR, 1)] == [1]
    clock.now += module.KEPT
    assert [one.turns for one in activity.periods(NOON, HOUR, 1)] == [0]


def test_what_a_turn_adds_to_the_store_is_small(activity: Activity, store: Store) -> None:
    """A turn is kept twice, in the list of all turns and in its agent's. Its hour grows with the keys only."""
    for number in range(200):
        one = replace(turn(0, letta_seconds=0.01 * number, prompt_tokens=10_000), seconds=0.02 * number)
        activity.keep_ended_turns([(replace(one, key_name="roo", user_words="w" * 200), {})])
    (text,) = store.items("turns")[-1:]
    assert len(text) < 600
    (hour,) = store.get_all(f"hour {int(NOON // HOUR)}")
    assert hour is not None
    assert len(hour) < 2_500


def test_the_version_changes_with_whatever_the_history_shows(
    activity: Activity, another: Activity, store: Store
) -> None:
    seen = [another.version()]

    def changed() -> bool:
        seen.append(another.version())
        return seen[-1] != seen[-2]

    assert not changed()
    activity.keep_ended_turns([(turn(1), {})])
    assert changed()
    activity.note_action(NOON, "swept")
    assert changed()
    worker = Heartbeat(store).id
    assert changed()
    activity.show_running(worker, [turn(2, outcome="running")])
    assert changed()
    activity.show_running(worker, [])
    assert changed()
    assert not changed()


def test_a_card_keeps_the_time_of_its_first_turn(activity: Activity) -> None:
    card = ToolCard("d1", "read", "read", NOON, parameters={"type": "object"}, changes=("One thing.",))
    activity.keep_cards([card])
    activity.keep_cards([ToolCard("d1", "read", "read_2", NOON + 50)])
    found = activity.tool_card("d1")
    assert found is not None
    assert (found.since, found.server_name) == (NOON, "read_2")
    assert activity.tool_card("d2") is None


def test_the_running_turns_of_a_process_are_shown_with_it(activity: Activity, another: Activity, store: Store) -> None:
    running = TurnRecord("t1", NOON, "Ada", agent_id="agent-1", steps=(call("read", "c1"),))
    first, second = Heartbeat(store), Heartbeat(store)
    ids = [first.id, second.id]
    activity.show_running(first.id, [running])
    until(lambda: {worker.id for worker in another.workers()} == {*ids})
    assert another.running_turns() == [running]
    assert [turn for turn, _ in another.busy_agents().values()] == [running]
    activity.show_running(first.id, [])
    assert another.running_turns() == []


def test_of_everything_only_the_newest_is_kept(activity: Activity, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MOST_TURNS", "MOST_TOOLS", "MOST_CALLS_OF_A_TOOL"):
        monkeypatch.setattr(module, name, 3)
    for number in range(10):
        one = turn(number * 60, call("same", f"c{number}"))
        activity.keep_ended_turns([(one, {"same": "d", f"tool{number}": f"d{number}"})])
    assert [one.id for one in activity.newest_turns()] == ["t540", "t480", "t420"]
    assert [one.call_id for one in activity.newest_calls_of_tool("d")] == ["c9", "c8", "c7"]
    assert activity.tool_uses().keys() == {"d", "d8", "d9"}


def test_everything_about_a_forgotten_tool_is_removed(activity: Activity, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise, a client with new tools in each request would fill the store."""
    monkeypatch.setattr(module, "MOST_TOOLS", 3)
    for number in range(5):
        one = turn(number, call("read", f"c{number}"))
        activity.keep_cards([ToolCard(f"d{number}", "read", "read", NOON)])
        activity.keep_ended_turns([(one, {"read": f"d{number}"})])
    left = [
        f"d{number}"
        for number in range(5)
        if activity.tool_card(f"d{number}") or activity.newest_calls_of_tool(f"d{number}")
    ]
    assert left == ["d2", "d3", "d4"]


def test_unknown_fields_of_a_record_are_ignored(activity: Activity, store: Store) -> None:
    row = {**json.loads(record_to_text(turn(1, call("read", "c1")))), "flavour": "new"}
    row["steps"][0]["colour"] = "blue"
    store.append("turns", json.dumps(row), 10, 10)
    assert activity.newest_turns() == [turn(1, call("read", "c1"))]


def test_actions_of_the_operator_are_kept(activity: Activity) -> None:
    activity.note_action(NOON, "swept")
    activity.note_action(NOON + 1, "deleted a stub")
    assert [one["text"] for one in activity.newest_actions()] == ["deleted a stub", "swept"]
