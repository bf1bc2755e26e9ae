"""How values look on a page, and the geometry of its charts."""

from __future__ import annotations

import json
import re
import time
from html import unescape

import pytest

from bridge.history.periods import Period
from bridge.stubs.source import stub_source
from bridge.web.admin import filters
from bridge.web.admin.charts import HEIGHT, WIDTH, count_errors, latency_chart, make_ticks, turns_chart
from bridge.web.admin.ranges import RANGES, Range


def plain(html: str) -> str:
    return unescape(re.sub(r"<[^>]*>", "", html))


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.0, "0 ms"),
        (0.0123, "12 ms"),
        (0.9999, "1000 ms"),
        (1.25, "1.2 s"),
        (119.0, "119.0 s"),
        (120.0, "2 min"),
        (7300, "2 h"),
    ],
)
def test_a_duration_is_as_exact_as_it_needs_to_be(seconds: float, shown: str) -> None:
    assert filters.format_duration(seconds) == shown


@pytest.mark.parametrize(("age", "text"), [(0, "just now"), (59, "59 s ago"), (61, "1 min ago"), (90_000, "1 d ago")])
def test_a_moment_is_shown_by_its_age_with_the_exact_time_in_a_tooltip(
    age: int, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    shown = filters.show_time_ago(now - age - 0.1)
    assert plain(shown) == text
    assert re.search(r'datetime="\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00"', shown)
    assert plain(filters.show_time_ago(0)) == "never"


@pytest.mark.parametrize("kind", ["placeholder", "relay"])
def test_coloured_source_keeps_every_character(kind: str) -> None:
    source = stub_source("read_file", kind)  # type: ignore[arg-type]
    shown = filters.highlight_python(source)
    assert plain(shown) == source
    assert '<span class="w">def</span>' in shown
    assert '<span class="c"># Made by' in shown


@pytest.mark.parametrize(
    "source", ["", "def broken(:\n  '''", "x = <b>", "\tif:\n  \n", "'\\", "a\\\nb = '''1\n2'''\n"]
)
def test_source_that_cannot_be_parsed_is_shown_as_text(source: str) -> None:
    shown = filters.highlight_python(source)
    assert plain(shown) == source
    assert "<b>" not in shown


def test_json_is_coloured_and_escaped() -> None:
    value = {"a<b>": ["x", 1.5, -2, True, None, {}], 'quote"': "</pre><script>"}
    shown = filters.highlight_json(value)
    assert plain(shown) == json.dumps(value, indent=2)
    assert "<script>" not in shown
    assert '<span class="k">&#34;a&lt;b&gt;&#34;</span>:' in shown
    assert '<span class="w">true</span>' in shown


def test_an_invisible_character_is_shown_by_its_code() -> None:
    assert filters.escape_invisible("a\u202eb\x00\u2028\n\tc\u00e9\u4e2d") == "a\\u202eb\\u0000\\u2028\n\tc\u00e9\u4e2d"


def minute(number: int, turns: int, errors: dict[str, int] | None = None, **times: float) -> Period:
    return Period(number * 60, turns=turns, errors=errors or {}, **times)


def test_bars_are_stacked_from_the_bottom_and_fit_into_the_chart() -> None:
    minutes = [minute(0, 0), minute(1, 7, {"busy": 2}), minute(2, 20, {"busy": 20}), minute(3, 1)]
    chart = turns_chart(minutes)
    assert chart.top == "20"
    assert chart.summary == "28 turns in 4 minutes, 22 of them failed"
    assert [[part.kind for part in bar.parts] for bar in chart.bars] == [[], ["good", "bad"], ["bad"], ["good"]]
    for bar in chart.bars:
        bottom = HEIGHT
        for part in bar.parts:
            assert part.y + part.height == pytest.approx(bottom, abs=0.02)
            assert 0 <= part.x <= part.x + part.width <= WIDTH
            assert part.height >= 1
            bottom = part.y
        assert bottom >= -0.01
    assert chart.bars[1].label == "00:01 UTC: 7 turns, 2 failed"


def test_a_chart_without_turns_is_empty() -> None:
    assert turns_chart([]).is_empty
    assert latency_chart([minute(0, 0), minute(1, 0)]).is_empty


def test_a_bar_of_time_is_split_between_letta_waiting_and_the_bridge() -> None:
    chart = latency_chart([minute(1, 2, seconds=3.0, letta_seconds=2.4, waited_seconds=0.2)])
    (bar,) = chart.bars
    assert [part.kind for part in bar.parts] == ["letta", "wait", "bridge"]
    assert bar.label == "00:01 UTC: Letta 1.2 s, waiting for the agent 100 ms, bridge 200 ms"
    assert chart.summary == "On average Letta and its model take 1.2 s of a turn, the bridge 200 ms"


def test_errors_are_counted_by_kind() -> None:
    minutes = [minute(0, 3, {"busy": 1}), minute(1, 5, {"busy": 1, "letta_timeout": 4})]
    assert count_errors(minutes) == [("letta_timeout", 4), ("busy", 2)]


@pytest.mark.parametrize("wanted", RANGES)
def test_the_axis_has_ticks_at_round_times(wanted: Range) -> None:
    now = int(1_700_000_123 // wanted.length)
    starts = [number * wanted.length for number in range(now - wanted.count + 1, now + 1)]
    ticks = make_ticks([Period(start, wanted.length) for start in starts], wanted.tick)
    assert 4 <= len(ticks) <= 7
    places = [tick.place for tick in ticks]
    assert places == sorted(places)
    assert all(3 <= place <= 97 for place in places)
    labels = {"hour": "22:00", "day": "20:00", "week": "Nov 14", "month": "Nov 14"}
    assert labels[wanted.name] in {tick.label for tick in ticks}
    assert make_ticks([Period(0)], 0) == ()


@pytest.mark.parametrize(
    ("number", "title", "summary"),
    [
        (0, "Turns a minute", "in 60 minutes"),
        (1, "Turns an hour", "in 24 hours"),
        (2, "Turns in 3 hours", "in 7 days"),
        (3, "Turns in 12 hours", "in 30 days"),
    ],
)
def test_a_chart_says_how_long_its_bars_and_its_range_are(number: int, title: str, summary: str) -> None:
    wanted = RANGES[number]
    periods = [Period(place * wanted.length, wanted.length, turns=1) for place in range(wanted.count)]
    chart = turns_chart(periods, wanted.tick)
    assert chart.title == title
    assert summary in chart.summary
    assert chart.top == "1"
    assert chart.middle == "0.5"
