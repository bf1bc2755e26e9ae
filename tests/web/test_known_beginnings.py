from __future__ import annotations

import json
from contextlib import ExitStack
from typing import Any

import pytest
from flask import Request
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from werkzeug.test import EnvironBuilder

from bridge.config import Settings, read_settings
from bridge.errors import InvalidRequest
from bridge.turn import JsonObject
from bridge.web import json_body, known_beginnings
from bridge.web.bodies import Bodies
from bridge.web.known_beginnings import KnownBeginnings
from bridge.web.room import Room

LONG = "x" * 1_000
TALK = [{"role": ("user", "assistant")[number % 2], "content": f"{number}, {LONG}"} for number in range(6)]


@pytest.fixture(autouse=True)
def short_bodies_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_beginnings, "SHORTEST", 10)


@pytest.fixture
def bodies(settings: Settings) -> Bodies:
    return Bodies(settings, Room())


def read(bodies: Bodies, body: bytes | JsonObject) -> JsonObject:
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    with ExitStack() as until_over:
        request = Request(EnvironBuilder(method="POST", data=sent).get_environ())
        return bodies.read(request, until_over, until_over)


def parsed_texts(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Returns a list of all that is parsed from now on."""
    parsed: list[bytes] = []
    parse = json_body._parse_carefully
    monkeypatch.setattr(json_body, "_parse_carefully", lambda text: (parsed.append(text), parse(text))[1])
    return parsed


@pytest.mark.parametrize("name", ["messages", "input"])
@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("last", [False, True], ids=["before other fields", "after them"])
def test_of_a_transcript_that_goes_on_only_new_messages_are_parsed(
    bodies: Bodies, monkeypatch: pytest.MonkeyPatch, name: str, indent: int | None, last: bool
) -> None:
    def body(messages: int) -> bytes:
        fields = {"model": "ada", "stream": True, name: TALK[:messages]}
        return json.dumps(fields if last else dict(reversed(fields.items())), indent=indent).encode()

    read(bodies, body(3))
    parsed = parsed_texts(monkeypatch)
    for messages, new in [(5, 3), (6, 2), (6, 1), (3, 3)]:
        assert read(bodies, body(messages)) == json.loads(body(messages))
        assert parsed.pop().count(b"role") == new, messages
        assert not parsed


def test_an_edited_message_is_parsed(bodies: Bodies) -> None:
    for at in range(6):
        read(bodies, {"messages": TALK})
        edited = [*TALK[:at], {"role": "user", "content": "Something else."}, *TALK[at + 1 :]]
        assert read(bodies, {"messages": edited})["messages"] == edited


def test_two_conversations_that_begin_alike_are_told_apart(bodies: Bodies, monkeypatch: pytest.MonkeyPatch) -> None:
    talks = [[*TALK[:3], *({"role": "user", "content": f"{name} {turn}"} for turn in range(9))] for name in "ab"]
    for length in (5, 6):
        for talk in talks:
            read(bodies, {"messages": talk[:length]})
    parsed = parsed_texts(monkeypatch)
    for talk in talks:
        assert read(bodies, {"messages": talk[:7]})["messages"] == talk[:7]
        assert parsed.pop().count(b"role") == 2


@pytest.mark.parametrize(
    "before",
    [
        {"history": TALK},
        {"history": {"messages": TALK}},
        {"history": [{"messages": TALK}, {"messages": TALK}]},
        {"history": json.dumps({"messages": TALK})},
        {"input": TALK},
        {"input": "text"},
    ],
    ids=str,
)
@pytest.mark.parametrize("order", [1, -1])
def test_equal_messages_in_another_field_are_not_mistaken(bodies: Bodies, before: JsonObject, order: int) -> None:
    fields = {**before, "messages": TALK}
    body = dict([*fields.items()][::order])
    for _ in range(3):
        assert read(bodies, body) == body
    assert read(bodies, {**body, "messages": [*TALK, *TALK]}) == {**body, "messages": [*TALK, *TALK]}
    longer = {name: [*value, *TALK] if isinstance(value, list) else value for name, value in body.items()}
    assert read(bodies, longer) == longer


WRONG = [
    b"",
    b"]",
    b",]}",
    b", ,]}",
    b"}",
    b"]]}",
    b"]} x",
    b',{"role":1e999}]}',
    b',{"role":NaN}]}',
    b',{"a":1,"a":2}]}',
    b'],"messages":[]}',
    b'],"model":1}',
    b",{]}",
    b',"\xff"]}',
    b"," + b"[" * 200 + b"]" * 200 + b"]}",
    b'],"tools":[1,]}',
]


@pytest.mark.parametrize("rest", WRONG, ids=str)
def test_a_wrong_body_is_refused_with_the_same_words(settings: Settings, bodies: Bodies, rest: bytes) -> None:
    begun = b'{"model":"ada","messages":[' + b",".join(json.dumps(one).encode() for one in TALK)
    read(bodies, begun + b"]}")
    read(bodies, begun + b",1,2]}")
    for wrong in (begun + rest, begun + b" ,1" + rest):
        errors = []
        for some in (bodies, Bodies(settings, Room())):
            with pytest.raises(InvalidRequest) as caught:
                read(some, wrong)
            errors.append((caught.value.code, caught.value.message))
        assert errors[0] == errors[1]
    assert len(read(bodies, begun + b",1]}")["messages"]) == 7


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text('ab,"\\[]{}é', max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["messages", "input", "a"]), inner),
    max_leaves=6,
)


@given(st.lists(st.lists(JSON, max_size=6), min_size=2, max_size=5), JSON, st.sampled_from([None, 0, 2]), st.booleans())
@hypothesis_settings(deadline=None)
def test_whatever_is_known_a_body_is_read_as_alone(
    talks: list[list[Any]], other: Any, indent: int | None, is_last: bool
) -> None:
    """The transcripts go on with each other's items, so that their beginnings are alike."""
    known = Bodies(read_settings({"LETTA_BASE_URL": "http://letta"}, serving=False), Room())
    items: list[Any] = []
    for talk in talks:
        items = [*items, *talk]
        for messages in (items, [*items, "again"], items[:-1]):
            fields = {"input": other, "messages": messages, "a": other}
            body = json.dumps(dict([*fields.items()][:: -1 if is_last else 1]), indent=indent).encode()
            assert read(known, body) == json.loads(body)


def test_a_long_conversation_has_as_many_values_as_its_body(
    settings: Settings, bodies: Bodies, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commas in texts do not add up to a limit that the whole body keeps to."""
    monkeypatch.setattr("bridge.web.json_body.MOST_VALUES", 40_000)
    talk = [{"role": "user", "content": "1, 2, 3, " * 3_000} for _ in range(40)]
    parsed = parsed_texts(monkeypatch)
    for length in range(2, 40):
        body = {"messages": talk[:length], "tools": [{"name": str(number)} for number in range(200)]}
        assert read(bodies, body)["messages"] == talk[:length]
    assert all(text.count(b"role") <= 3 for text in parsed)


def test_too_many_values_are_refused_also_if_most_are_known(bodies: Bodies, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.web.json_body.MOST_VALUES", 2_000)
    read(bodies, {"messages": [[0] * 1_500, 1]})
    with pytest.raises(InvalidRequest, match="more than 2,000 fields and items"):
        read(bodies, {"messages": [[0] * 1_500, 1, [0] * 1_000]})


def test_the_beginnings_used_longest_ago_are_forgotten(bodies: Bodies, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_beginnings, "MOST_BYTES", 40_000)
    talks = [[{"role": "user", "content": name * 3_000}, *TALK] for name in "abcdefgh"]
    for talk in talks:
        read(bodies, {"messages": talk})
        read(bodies, {"messages": talks[0]})
    known = bodies._beginnings
    assert sum(map(known_beginnings._size_of, known._known.values())) == known._size <= 40_000
    parsed = parsed_texts(monkeypatch)
    for talk in (talks[0], talks[-1], talks[1]):
        read(bodies, {"messages": talk})
    assert [text.count(b"role") for text in parsed] == [1, 1, 7]


def test_a_body_that_is_too_large_or_has_too_many_messages_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit, value in (("MOST_BYTES", 1_000), ("MOST_ITEMS", 4)):
        known = KnownBeginnings()
        with monkeypatch.context() as patched:
            patched.setattr(known_beginnings, limit, value)
            body = json.dumps({"messages": TALK}).encode()
            known.add(body, None, body, {"messages": TALK})
        assert not known._known
        assert known._size == 0


def test_a_short_body_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    known, body = KnownBeginnings(), json.dumps({"messages": TALK}).encode()
    known.add(body, None, body, {"messages": TALK})
    assert not known._known


@pytest.mark.parametrize("odd", ['"cut \\ud83d"', '{"\\ud83d": 1}'])
def test_a_transcript_with_half_an_emoji_is_read(bodies: Bodies, odd: str) -> None:
    """Clients cut texts in the middle of a pair of surrogates. msgspec refuses that, Python's own parser does not."""
    begun = json.dumps({"messages": TALK}).encode()
    read(bodies, begun)
    body = begun[:-2] + b', "more", ' + odd.encode() + b"]}"
    for _ in range(2):
        assert read(bodies, body) == json.loads(body)
        assert read(bodies, {"messages": [*TALK, "a", "b"]}) == {"messages": [*TALK, "a", "b"]}
