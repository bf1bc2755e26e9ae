"""Messages of earlier requests are recognised, and no message is taken for another one."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.dialects.openai import known_transcripts as module
from bridge.dialects.openai.known_transcripts import KnownTranscripts, digest_items
from bridge.errors import InvalidRequest
from bridge.turn import Message
from tests.memory import measured, memory_held
from tests.strategies import values

USER = {"role": "user", "content": "Hello"}
SAID = {"role": "assistant", "content": "Hi"}
MORE = {"role": "user", "content": "Well?"}


class Reader:
    """Reads transcripts as a dialect does. `places` are those of the items that were read anew."""

    def __init__(self) -> None:
        self.known = KnownTranscripts()
        self.places: list[int] = []

    def read(self, *items: Any) -> list[str]:
        """Returns the JSON of the items, as the messages tell it. They come as new objects, as from a request."""
        found = self.known.read(json.loads(json.dumps(items)), self._read)
        assert found.digests[-1] == digest_items([*items])
        return [message.text for message in found.messages]

    def _read(self, item: Any, place: int) -> Message:
        self.places.append(place)
        return Message("user", json.dumps(item, sort_keys=True))

    def new_places(self) -> list[int]:
        places, self.places = self.places, []
        return places


@pytest.fixture
def reader() -> Reader:
    return Reader()


def texts(*items: Any) -> list[str]:
    return [json.dumps(item, sort_keys=True) for item in items]


def test_only_what_is_new_is_read(reader: Reader) -> None:
    assert reader.read(USER, SAID) == texts(USER, SAID)
    assert reader.new_places() == [0, 1]
    assert reader.read(USER, SAID, MORE) == texts(USER, SAID, MORE)
    assert reader.new_places() == [2]
    assert reader.read(USER, SAID, MORE) == texts(USER, SAID, MORE)
    assert reader.new_places() == []


def test_the_same_messages_stay_the_same_objects(reader: Reader) -> None:
    first = reader.known.read([USER, SAID], reader._read).messages
    later = reader.known.read([dict(USER), dict(SAID), MORE], reader._read).messages
    assert all(one is other for one, other in zip(first, later, strict=False))


def test_behind_a_changed_message_all_are_read(reader: Reader) -> None:
    reader.read(USER, SAID, MORE, SAID)
    reader.new_places()
    changed = {**MORE, "content": "Well!"}
    assert reader.read(USER, SAID, changed, SAID, MORE) == texts(USER, SAID, changed, SAID, MORE)
    assert reader.new_places() == [2, 3, 4]


def test_a_transcript_that_was_cut_goes_on_from_there(reader: Reader) -> None:
    reader.read(USER, SAID, MORE, SAID, MORE)
    reader.new_places()
    assert reader.read(USER, SAID, MORE) == texts(USER, SAID, MORE)
    assert reader.new_places() == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"is_error": True}, {"is_error": 1}),
        ({"arguments": {"a": 1}}, {"arguments": {"a": 1.0}}),
        ({"arguments": {"a": 0}}, {"arguments": {"a": False}}),
        ({"arguments": {"a": 1, "b": 2}}, {"arguments": {"b": 2, "a": 1}}),
        ({"content": [{"text": "a", "n": [1]}]}, {"content": [{"text": "a", "n": [True]}]}),
    ],
)
def test_values_that_python_takes_for_equal_are_not_the_same(reader: Reader, old: Any, new: Any) -> None:
    reader.read(USER, SAID, {**MORE, **old})
    reader.new_places()
    reader.read(USER, SAID, {**MORE, **new})
    assert reader.new_places() == [2]


def test_a_message_alone_is_not_remembered(reader: Reader) -> None:
    for _ in range(2):
        assert reader.read(USER) == texts(USER)
        assert reader.new_places() == [0]


def test_what_is_refused_is_not_remembered(reader: Reader) -> None:
    def refuse(item: Any, place: int) -> Message:
        raise InvalidRequest(f"messages[{place}]")

    for _ in range(2):
        with pytest.raises(InvalidRequest, match=r"messages\[0\]"):
            reader.known.read([USER, SAID], refuse)
    assert reader.read(USER, SAID) == texts(USER, SAID)


items = st.one_of(st.sampled_from((USER, SAID, MORE)), values)


@given(st.lists(st.lists(items, min_size=1, max_size=5), max_size=6))
def test_whatever_is_sent_is_read_as_without_memory(transcripts: list[list[Any]]) -> None:
    reader = Reader()
    for transcript in transcripts:
        assert reader.read(*transcript) == texts(*transcript)


@pytest.mark.parametrize(
    "content",
    ["x" * 20_000, "é" * 10_000, [{}] * 2_000, [{"type": "text", "text": "x"}] * 500, {str(n): "" for n in range(500)}],
    ids=["text", "characters of two bytes", "empty objects", "parts", "fields"],
)
def test_all_transcripts_together_take_little_memory(
    reader: Reader, content: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 1_000_000)
    sent = json.dumps([{"role": "user", "content": content}, *([SAID, MORE] * 5)])

    def remember() -> int:
        for number in range(200):
            transcript = [{"n": number}, *json.loads(sent)]
            found = reader.known.read(transcript, lambda item, place: Message("user", str(item)))
            assert len(found.messages) == 12
        del found, transcript
        return memory_held()

    assert 100_000 < measured(remember) < 1_500_000


def test_a_transcript_that_is_too_large_is_read_again(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 10_000)
    large = {"role": "user", "content": "x" * 20_000}
    for _ in range(2):
        assert reader.read(USER, large) == texts(USER, large)
        assert reader.new_places() == [0, 1]


def test_the_transcripts_used_longest_ago_are_forgotten(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_TRANSCRIPTS", 2)
    for first in ("a", "b", "a", "c", "a", "b"):
        reader.read(first, SAID)
    assert reader.new_places() == [0, 1] * 4  # a, b, c, and b again


def test_threads_get_their_own_messages(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_TRANSCRIPTS", 3)

    def ask(number: int) -> bool:
        sent = [number % 5, *([SAID, MORE] * (number % 4)), number]
        return reader.read(*sent) == texts(*sent)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(400)))
